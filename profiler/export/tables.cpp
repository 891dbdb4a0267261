#include "profiler/export/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace fusebox::exporting {
namespace {

using session::Cell;

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

using Columns = std::vector<std::string>;
using Row = std::vector<Cell>;

/// Widths are those of the first rows; a wider cell further down moves what stands behind it.
class AlignedText final : public TableWriter {
 public:
  using TableWriter::TableWriter;
  void columns(const Columns& names) override { names_ = names; }
  void row(Row cells) override {
    ++rows_;
    if (!widths_.empty()) return put(lineOf(cells));
    first_.push_back(std::move(cells));
    if (first_.size() == kMeasured) begin();
  }
  void end(bool truncated) override {
    if (widths_.empty()) begin();
    out(fmt::format("({} row{}{})\n", rows_, rows_ == 1 ? "" : "s", truncated ? ", cut by --limit" : ""));
  }

 private:
  static constexpr size_t kMeasured = 10'000;

  static Columns lineOf(const Row& cells) {
    Columns line;
    for (const Cell& cell : cells) line.push_back(oneLine(cell));
    return line;
  }

  void begin() {
    widths_.resize(names_.size());
    numeric_.assign(names_.size(), true);
    for (size_t c = 0; c < names_.size(); ++c) widths_[c] = displayWidth(names_[c]);
    std::vector<Columns> lines;
    for (const Row& cells : first_) {
      const Columns& line = lines.emplace_back(lineOf(cells));
      for (size_t c = 0; c < line.size(); ++c) {
        widths_[c] = std::max(widths_[c], displayWidth(line[c]));
        if (std::holds_alternative<std::string>(cells[c])) numeric_[c] = false;
      }
    }
    first_.clear();
    put(names_);
    Columns rule;
    for (const size_t width : widths_) rule.emplace_back(width, '-');
    put(rule);
    for (const Columns& line : lines) put(line);
  }

  void put(const Columns& line) {
    std::string text;
    for (size_t c = 0; c < line.size(); ++c) {
      const size_t width = displayWidth(line[c]);
      const std::string pad(widths_[c] > width ? widths_[c] - width : 0, ' ');
      const bool last = c + 1 == line.size();
      text += numeric_[c] ? pad + line[c] : line[c] + (last ? "" : pad);
      text += last ? "\n" : "  ";
    }
    out(std::move(text));
  }

  Columns names_;
  std::vector<Row> first_;
  std::vector<size_t> widths_;
  std::vector<bool> numeric_;
  int64_t rows_ = 0;
};

class Csv final : public TableWriter {
 public:
  using TableWriter::TableWriter;
  void columns(const Columns& names) override {
    std::string line;
    for (size_t c = 0; c < names.size(); ++c) line += (c ? "," : "") + csvField(names[c]);
    out(line + "\r\n");
  }
  void row(Row cells) override {
    std::string line;
    for (size_t c = 0; c < cells.size(); ++c) {
      const std::string text = session::cellText(cells[c]);
      const bool isHarmful = std::holds_alternative<std::string>(cells[c]) && isFormula(text);
      line += (c ? "," : "") + csvField((isHarmful ? "'" : "") + text);
    }
    out(line + "\r\n");
  }
  void end(bool) override {}
};

class Json final : public TableWriter {
 public:
  using TableWriter::TableWriter;
  void columns(const Columns& names) override {
    for (const std::string& name : names) {
      std::string key = name;
      for (int other = 1; std::find(names_.begin(), names_.end(), key) != names_.end(); ++other) key = fmt::format("{}:{}", name, other);
      names_.push_back(std::move(key));
    }
  }
  void row(Row cells) override {
    auto object = nlohmann::ordered_json::object();
    for (size_t c = 0; c < cells.size(); ++c) {
      auto& value = object[names_[c]];
      std::visit(
          [&](const auto& v) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(v)>, std::monostate>) value = v;
          },
          cells[c]);
    }
    std::string text = began_ ? ",\n  " : "[\n  ";
    for (const char c : object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace)) text += c == '\n' ? std::string("\n  ") : std::string(1, c);
    out(std::move(text));
    began_ = true;
  }
  void end(bool) override { out(began_ ? "\n]\n" : "[]\n"); }

 private:
  Columns names_;
  bool began_ = false;
};

}  // namespace

std::unique_ptr<TableWriter> TableWriter::of(std::string_view format, Output output) {
  if (format == "json") return std::make_unique<Json>(std::move(output));
  if (format == "csv") return std::make_unique<Csv>(std::move(output));
  return std::make_unique<AlignedText>(std::move(output));
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
