#pragma once

#include <nlohmann/json.hpp>

#include "views/common/table.h"

/// Answers of a stopped program as rows of tables. No Qt; missing fields are empty cells.
namespace fusebox::window {

views::TableRows localRows(const nlohmann::json& answer);     ///< name, value, source
views::TableRows stackRows(const nlohmann::json& answer);     ///< index, value, source
views::TableRows frameRows(const nlohmann::json& answer);     ///< function, place, instruction
views::TableRows guardRowsOf(const nlohmann::json& answer);   ///< number, kind, source, expected, place
views::TableRows fusionRows(const nlohmann::json& answer);    ///< order, a, b, kind, bytes saved
views::TableRows argumentRows(const nlohmann::json& answer);  ///< name, role, type, first values
views::TableRows optionRows(const nlohmann::json& answer);    ///< name, value
/// Bytecode as text; `currentLine` is set to the 1-based line of the current instruction.
std::string codeListing(const nlohmann::json& answer, int* currentLine);

}  // namespace fusebox::window
