#include "profiler/importers/qualified_names.h"

#include <vector>

#include "profiler/importers/stack_sources.h"
#include "profiler/importers/text_lines.h"
#include "profiler/session/sqlite.h"

namespace fusebox::importing {
namespace {

constexpr int64_t kMostFrames = 100'000;

/// "Net" of `class Net(Module):`, "step" of `def step(x):`; empty for other lines.
std::string_view nameAfter(std::string_view line, std::string_view keyword) {
  if (!line.starts_with(keyword)) return {};
  line.remove_prefix(keyword.size());
  return line.substr(0, line.find_first_of("(:[ "));
}

}  // namespace

std::string qualifiedName(std::string_view text, int64_t line, std::string_view name) {
  std::string out(name);
  if (!beginsAt(text, line, name) || name.starts_with('<')) return out;
  std::vector<std::string_view> above;
  std::string_view one;
  while (static_cast<int64_t>(above.size()) < line && nextLine(text, one)) above.push_back(one);
  const auto depthOf = [](std::string_view l) { return l.find_first_not_of(" \t\r"); };
  size_t depth = depthOf(above.back());
  for (size_t i = above.size() - 1; i-- > 0 && depth > 0;) {
    const size_t at = depthOf(above[i]);
    if (at >= depth || above[i][at] == '#') continue;  // npos, of an empty line, is deeper than all
    depth = at;
    std::string_view code = above[i].substr(at);
    if (code.starts_with("async ")) code.remove_prefix(6);
    if (const auto outer = nameAfter(code, "class "); !outer.empty()) out = std::string(outer) + "." + out;
    else if (const auto maker = nameAfter(code, "def "); !maker.empty()) out = std::string(maker) + ".<locals>." + out;
  }
  return out;
}

Result<void> qualifyNames(session::Database& database) {
  auto frames = database.prepare("SELECT f.id, f.name, f.line, s.text FROM t_frame f JOIN t_source_file s ON s.path = f.file AND coalesce(s.truncated, 0) = 0 AND s.text IS NOT NULL "
                                 "WHERE f.line > 0 AND coalesce(f.qualname, '') NOT LIKE '%.' || f.name || '%' LIMIT ?");
  if (!frames) return tl::unexpected(frames.error());
  frames->bind(1, kMostFrames);
  std::vector<std::pair<int64_t, std::string>> found;
  for (;;) {
    auto row = frames->step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) break;
    std::string name = qualifiedName(frames->text("text"), frames->integer("line"), frames->text("name"));
    if (name != frames->text("name")) found.emplace_back(frames->integer("id"), std::move(name));
  }
  // A name that was made longer, as by the rank, keeps what was added.
  auto update = database.prepare("UPDATE t_frame SET qualname = ? || substr(coalesce(nullif(qualname, ''), name), length(name) + 1) WHERE id = ?");
  if (!update) return tl::unexpected(update.error());
  for (const auto& [id, name] : found) {
    update->bindAll(std::string_view(name), id);
    if (auto done = update->run(); !done) return done;
  }
  return {};
}

}  // namespace fusebox::importing
