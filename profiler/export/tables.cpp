#include "profiler/export/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace fusebox::exporting {
namespace {

using session::Cell;
using session::Table;

// Columns on a screen: UTF-8 continuation bytes take none. Wide characters count as one, which is good enough here.
size_t displayWidth(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

// One line, without anything that moves a terminal's cursor.
std::string oneLine(const Cell& cell) {
  std::string out;
  for (const char c : session::cellText(cell)) {
    if (c == '\n') {
      out += "⏎";
    } else {
      out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
    }
  }
  return out;
}

/// A spreadsheet takes a text that begins so for a formula, and computes it.
bool isFormula(std::string_view text) { return !text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos; }

std::string csvField(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

std::string toAlignedText(const Table& table) {
  const size_t columns = table.columns.size();
  std::vector<size_t> widths(columns);
  std::vector<bool> numeric(columns, true);
  std::vector<std::vector<std::string>> lines;
  for (size_t c = 0; c < columns; ++c) widths[c] = displayWidth(table.columns[c]);
  for (const auto& row : table.rows) {
    auto& line = lines.emplace_back();
    for (size_t c = 0; c < columns; ++c) {
      line.push_back(oneLine(row[c]));
      widths[c] = std::max(widths[c], displayWidth(line[c]));
      if (std::holds_alternative<std::string>(row[c])) numeric[c] = false;
    }
  }
  const auto put = [&](std::string& out, const std::vector<std::string>& line) {
    for (size_t c = 0; c < columns; ++c) {
      const std::string pad(widths[c] - displayWidth(line[c]), ' ');
      const bool last = c + 1 == columns;
      out += numeric[c] ? pad + line[c] : line[c] + (last ? "" : pad);
      out += last ? "\n" : "  ";
    }
  };
  std::string out;
  put(out, table.columns);
  for (size_t c = 0; c < columns; ++c) out += std::string(widths[c], '-') + (c + 1 == columns ? "\n" : "  ");
  for (const auto& line : lines) put(out, line);
  return out + fmt::format("({} row{}{})\n", lines.size(), lines.size() == 1 ? "" : "s",
                           table.truncated ? ", cut by --limit" : "");
}

std::string toCsv(const Table& table) {
  std::string out;
  for (size_t c = 0; c < table.columns.size(); ++c) out += (c ? "," : "") + csvField(table.columns[c]);
  out += "\r\n";
  for (const auto& row : table.rows) {
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string text = session::cellText(row[c]);
      const bool isHarmful = std::holds_alternative<std::string>(row[c]) && isFormula(text);
      out += (c ? "," : "") + csvField((isHarmful ? "'" : "") + text);
    }
    out += "\r\n";
  }
  return out;
}

std::string toJson(const Table& table) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const auto& row : table.rows) {
    auto& object = out.emplace_back(nlohmann::ordered_json::object());
    for (size_t c = 0; c < row.size(); ++c) {
      auto& value = object[table.columns[c]];
      std::visit(
          [&](const auto& v) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(v)>, std::monostate>) value = v;
          },
          row[c]);
    }
  }
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Result<int64_t> writeCsv(const session::Reader& reader, std::string_view sql, std::ostream& out) {
  int64_t rows = 0;
  auto header = reader.prepare(sql);
  if (!header) return tl::unexpected(header.error());
  for (int c = 0; c < header->columns(); ++c) out << (c ? "," : "") << csvField(header->columnName(c));
  out << "\r\n";
  auto written = reader.each(sql, {}, [&](const session::Statement& row) {
    for (int c = 0; c < row.columns(); ++c) out << (c ? "," : "") << csvField(row.textAt(c));
    out << "\r\n";
    ++rows;
  });
  if (!written) return tl::unexpected(written.error());
  return rows;
}

}  // namespace fusebox::exporting
