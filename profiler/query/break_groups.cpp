#include "profiler/query/break_groups.h"

#include <string_view>
#include <unordered_map>

namespace fusebox::query {
namespace {

using session::Statement;

void add(std::string& key, int64_t number) { key.append(reinterpret_cast<const char*>(&number), sizeof number); }
void add(std::string& key, std::string_view text) { key.append(text).push_back('\0'); }

/// The innermost place of a stack, if it is not the one at which the break is listed.
StackPlace placeInside(std::string_view stack, std::string_view file, int64_t line) {
  const auto places = parseStack(stack);
  return places.empty() || (places.back().file == file && places.back().line == line) ? StackPlace{} : places.back();
}

}  // namespace

Result<std::vector<BreakGroup>> breakGroups(const session::Reader& reader) {
  std::vector<BreakGroup> out;
  std::unordered_map<std::string, size_t> groups, rows;  // rows: as they are recorded, so that a stack that is known is not parsed again
  std::string key;  // kept, so that a row that is known costs no memory
  auto read = reader.each("SELECT id, frame_id, compile_id, line, kind, reason, hint, file, stack FROM t_graph_break ORDER BY id", {}, [&](const Statement& s) {
    key.clear();
    for (const char* column : {"frame_id", "line"}) add(key, s.integer(column));
    for (const char* column : {"kind", "reason", "hint", "file"}) add(key, s.text(column));
    const size_t group = key.size();
    add(key, s.text("stack"));
    const auto [row, isNewRow] = rows.try_emplace(key, 0);
    if (isNewRow) {
      StackPlace inside = placeInside(s.text("stack"), s.text("file"), s.integer("line"));
      key.resize(group);
      add(key, inside.file);
      add(key, inside.function);
      add(key, int64_t{inside.line});
      const auto [at, isNew] = groups.try_emplace(key, out.size());
      if (isNew) out.push_back({s.integer("id"), s.integer("frame_id"), s.integer("line"), 0, s.string("kind"), s.string("reason"), s.string("hint"), s.string("file"), std::move(inside), {}});
      row->second = at->second;
    }
    BreakGroup& found = out[row->second];
    ++found.count;
    found.met.emplace_back(s.integer("id"), s.integer("compile_id"));
  });
  if (!read) return tl::unexpected(read.error());
  return out;
}

}  // namespace fusebox::query
