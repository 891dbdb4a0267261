#include "app/window/debug_rows.h"

#include <fmt/format.h>

#include "app/debug/debug_text.h"

namespace fusebox::window {
namespace {

using debugging::flagField;
using debugging::numberField;
using debugging::textField;
using nlohmann::json;
using views::textCell;

constexpr int kFaint = 4;

const json& listOf(const json& answer, const char* key) {
  static const json kNone = json::array();
  if (!key) return answer.is_array() ? answer : kNone;
  const auto found = answer.is_object() ? answer.find(key) : answer.end();
  return answer.is_object() && found != answer.end() && found->is_array() ? *found : kNone;
}

views::Location placeOf(const json& row) {
  const std::string file = textField(row, "file");
  return file.empty() ? views::Location{}
                      : views::Location::sourceLine(file, static_cast<int>(numberField(row, "line")));
}

views::TableRows rowsOf(const json& list, const std::function<void(const json&, views::TableRow&)>& fill) {
  views::TableRows rows;
  for (const json& entry : list) {
    views::TableRow row;
    fill(entry, row);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

views::TableRows localRows(const json& answer) {
  return rowsOf(listOf(answer, nullptr), [](const json& entry, views::TableRow& row) {
    std::string source = textField(entry, "source");
    if (flagField(entry, "unread")) source += " (not read yet)";
    row.cells = {textCell(textField(entry, "name")), textCell(textField(entry, "value")), textCell(std::move(source))};
    row.tooltip = textField(entry, "type");
    if (textField(entry, "value") == "(unbound)") row.tone = kFaint;
  });
}

views::TableRows stackRows(const json& answer) {
  return rowsOf(listOf(answer, nullptr), [](const json& entry, views::TableRow& row) {
    row.cells = {views::countCell(numberField(entry, "index")), textCell(textField(entry, "value")),
                 textCell(textField(entry, "source"))};
    row.tooltip = textField(entry, "type");
  });
}

views::TableRows frameRows(const json& answer) {
  int64_t up = 0;
  return rowsOf(listOf(answer, nullptr), [&](const json& entry, views::TableRow& row) {
    row.cells = {views::countCell(up++), textCell(textField(entry, "function")),
                 textCell(views::shortPlace(textField(entry, "file"), numberField(entry, "line"))),
                 textCell(textField(entry, "instruction"))};
    row.location = placeOf(entry);
  });
}

views::TableRows guardRowsOf(const json& answer) {
  int64_t number = numberField(answer, "count") - static_cast<int64_t>(listOf(answer, "guards").size());
  return rowsOf(listOf(answer, "guards"), [&](const json& entry, views::TableRow& row) {
    row.cells = {views::countCell(++number), textCell(textField(entry, "kind")), textCell(textField(entry, "source")),
                 textCell(textField(entry, "expected")),
                 textCell(views::shortPlace(textField(entry, "file"), numberField(entry, "line")))};
    row.location = placeOf(entry);
  });
}

views::TableRows fusionRows(const json& answer) {
  int64_t order = 0;
  return rowsOf(listOf(answer, "pending"), [&](const json& entry, views::TableRow& row) {
    row.cells = {views::countCell(++order), textCell(textField(entry, "a")), textCell(textField(entry, "b")),
                 textCell(textField(entry, "kind")),
                 views::bytesCell(static_cast<double>(numberField(entry, "score_bytes")))};
  });
}

views::TableRows argumentRows(const json& answer) {
  return rowsOf(listOf(answer, nullptr), [](const json& entry, views::TableRow& row) {
    std::string type = textField(entry, "dtype"), values;
    if (const auto sizes = entry.find("sizes"); sizes != entry.end()) type += sizes->dump();
    for (const json& value : listOf(entry, "first_values"))
      values += (values.empty() ? "" : " ") + (value.is_string() ? value.get<std::string>() : value.dump());
    row.cells = {textCell(textField(entry, "name")), textCell(textField(entry, "role")), textCell(std::move(type)),
                 textCell(std::move(values))};
    row.tooltip = textField(entry, "device");
  });
}

views::TableRows optionRows(const json& answer) {
  views::TableRows rows;
  if (!answer.is_object()) return rows;
  for (const auto& [name, value] : answer.items()) {
    views::TableRow row;
    row.cells = {textCell(name), textCell(value.dump())};
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string codeListing(const json& answer, int* currentLine) {
  *currentLine = 0;
  return debugging::codeText(listOf(answer, nullptr), currentLine);
}

}  // namespace fusebox::window
