#include "profiler/importers/stack_sources.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <vector>

#include "profiler/importers/trace_names.h"

namespace fusebox::importing {
namespace {

constexpr size_t kMostFiles = 200, kMostFunctions = 20'000;
constexpr std::uintmax_t kMostFileBytes = 4 << 20;
constexpr size_t kMostBytes = size_t{32} << 20;
constexpr int kMostDecoratorLines = 20;

using Functions = std::set<std::pair<int64_t, std::string>>;  ///< line and name

std::string_view lineAt(std::string_view text, int64_t line) {
  for (int64_t at = 1; at < line; ++at) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

std::string_view unindented(std::string_view line) {
  const size_t from = line.find_first_not_of(" \t");
  return from == std::string_view::npos ? std::string_view() : line.substr(from);
}

bool defines(std::string_view line, std::string_view function) {
  line = unindented(line);
  if (line.starts_with("async ")) line = unindented(line.substr(6));
  if (!line.starts_with("def ")) return false;
  line = unindented(line.substr(4));
  return line.starts_with(function) && line.size() > function.size() && (line[function.size()] == '(' || line[function.size()] == ' ' || line[function.size()] == '[');
}

/// The file's text, if all functions of which a `def` is known begin where the stacks say; at least one must be.
std::string textOf(const std::filesystem::path& path, const Functions& functions) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error) || std::filesystem::file_size(path, error) > kMostFileBytes || error) return {};
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  bool any = false;
  for (const auto& [line, function] : functions) {
    if (!beginsAt(text, line, function)) return {};
    any = any || function.front() != '<';
  }
  return any ? text : std::string();
}

}  // namespace

bool beginsAt(std::string_view text, int64_t line, std::string_view function) {
  if (line < 1 || line > 1'000'000) return false;
  const std::string_view first = lineAt(text, line);
  if (function.starts_with('<')) return !first.empty();  // a module, a lambda, a comprehension: any line
  if (defines(first, function)) return true;
  if (!unindented(first).starts_with('@')) return false;
  for (int below = 1; below <= kMostDecoratorLines; ++below) {
    if (defines(lineAt(text, line + below), function)) return true;
  }
  return false;
}

Result<void> addStackSources(SessionBuilder& session, const std::string& folder) {
  // Those that launched kernels; without any (on a processor) all.
  auto rows = session.database().prepare("WITH placed AS (SELECT DISTINCT file FROM t_kernel WHERE file IS NOT NULL) SELECT DISTINCT name FROM t_cpu_event "
                                         "WHERE kind = 'python_function' AND file IS NOT NULL AND (file IN placed OR NOT EXISTS(SELECT 1 FROM placed))");
  if (!rows) return tl::unexpected(rows.error());
  std::map<std::string, Functions> files;
  size_t functions = 0;
  for (;;) {
    auto row = rows->step();
    if (!row) return tl::unexpected(row.error());
    if (!*row || ++functions > kMostFunctions) break;
    const auto place = pythonFunction(rows->text("name"));
    if (!place || place->function.empty() || !isUsersFile(place->file)) continue;
    if (files.size() >= kMostFiles && !files.contains(std::string(place->file))) continue;
    files[std::string(place->file)].emplace(place->line, place->function);
  }
  size_t bytes = 0;
  for (const auto& [file, known] : files) {
    std::string text;
    for (const std::filesystem::path& place : {std::filesystem::path(folder) / file, std::filesystem::path(file)}) {  // an absolute one stays as it is
      if (bytes < kMostBytes && text.empty()) text = textOf(place, known);
    }
    bytes += text.size();
    if (text.empty()) session.put(rows::SourceFile{.id = session.newId(RowKind::SourceFile), .path = file});
    else session.sourceText(file, text);
  }
  return {};
}

}  // namespace fusebox::importing
