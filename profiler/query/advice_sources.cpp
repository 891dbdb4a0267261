// What advice reads: stacks and the recorded text of the program.
#include <nlohmann/json.hpp>

#include "engine/support/bounded_json.h"
#include "engine/support/file_owner.h"
#include "profiler/query/advice.h"
#include "profiler/query/python_line.h"

namespace fusebox::query {

bool StackPlace::isUsers() const { return isProgramFile(file); }

std::vector<StackPlace> parseStack(std::string_view json) {
  constexpr size_t kDeepest = 500;
  std::vector<StackPlace> out;
  const auto parsed = parseBounded(json);
  if (!parsed.is_array()) return out;
  const auto text = [](const nlohmann::json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  for (const auto& one : parsed) {
    if (!one.is_object() || out.size() == kDeepest) continue;
    const auto line = one.find("line");
    out.push_back({text(one, "file"), text(one, "function"),
                   line != one.end() && line->is_number_integer() ? line->get<int>() : 0});
  }
  return out;
}

Sources::Sources(const session::Reader& reader) : reader_(reader), partial_(!reader.info("imported_format").empty()) {
  (void)reader.each("SELECT file FROM source_files WHERE text IS NOT NULL ORDER BY file_id", {},
                    [&](const session::Statement& row) {
                      if (StackPlace{row.string("file"), {}, 0}.isUsers()) paths_.push_back(row.string("file"));
                    });
}

const std::string& Sources::text(const std::string& path) {
  const auto [entry, isNew] = texts_.try_emplace(path);
  if (isNew && !path.empty()) {
    (void)reader_.each("SELECT text FROM source_files WHERE file = ? AND text IS NOT NULL", {path},
                       [&](const session::Statement& row) { entry->second = row.string("text"); });
  }
  return entry->second;
}

std::vector<std::string_view> Sources::lines(const std::string& path) { return splitLines(text(path)); }

std::string Sources::line(const std::string& path, int number) {
  const auto all = lines(path);
  return number >= 1 && number <= static_cast<int>(all.size()) ? std::string(all[static_cast<size_t>(number) - 1])
                                                               : std::string();
}

std::string Sources::diff(const std::string& path, std::vector<LineEdit> edits) {
  if (!isProgramFile(path)) return {};  // nobody edits an installed library
  const std::string out = unifiedDiff(path, text(path), std::move(edits), partial_ ? 0 : 3);
  return out.empty() || !partial_ ? out : "# lines as the trace quotes them, without their indentation\n" + out;
}

std::vector<LineEdit> afterTorchImport(const std::vector<std::string_view>& lines, const std::string& text) {
  int last = 0;
  bool torch = false;
  for (int i = 0; i < static_cast<int>(lines.size()); ++i) {
    const auto line = lines[static_cast<size_t>(i)];
    if (line.starts_with("import torch")) torch = true;
    if (line.starts_with("import ") || line.starts_with("from ")) {
      // A bracketed list of names ends on a later line.
      int end = i;
      if (line.find('(') != std::string_view::npos) {
        while (end + 1 < static_cast<int>(lines.size()) &&
               lines[static_cast<size_t>(end)].find(')') == std::string_view::npos)
          ++end;
      }
      last = end + 1;
    } else if (torch && (line.starts_with("def ") || line.starts_with("class ") || line.starts_with("@"))) {
      break;
    }
  }
  if (!torch || last >= static_cast<int>(lines.size())) return {};
  return {{LineEdit::Kind::InsertBefore, last + 1, text}};
}

}  // namespace fusebox::query
