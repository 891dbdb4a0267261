#include "profiler/query/break_groups.h"

#include <string_view>
#include <unordered_map>

namespace fusebox::query {

StackPlace placeInside(std::string_view innermost, std::string_view file, int64_t line) {
  const auto places = parseStack("[" + std::string(innermost) + "]");
  return places.empty() || (places[0].file == file && places[0].line == line) ? StackPlace{} : places[0];
}

Result<std::vector<BreakGroup>> breakGroups(const session::Reader& reader) {
  std::vector<BreakGroup> out;
  std::unordered_map<std::string, size_t> known;
  std::string key;  // kept, so that a row that is known costs no memory
  auto read = reader.each("SELECT id, frame_id, line, kind, reason, hint, file, " + std::string(kInnermost) + " AS innermost FROM t_graph_break ORDER BY id", {}, [&](const session::Statement& s) {
    key.clear();
    for (const char* column : {"frame_id", "line", "kind", "reason", "hint", "file", "innermost"}) key.append(s.text(column)).push_back('\0');
    const auto [at, isNew] = known.try_emplace(key, out.size());
    if (isNew) out.push_back({s.integer("id"), s.integer("frame_id"), s.integer("line"), 0, s.string("kind"), s.string("reason"), s.string("hint"), s.string("file"), placeInside(s.text("innermost"), s.text("file"), s.integer("line"))});
    ++out[at->second].count;
  });
  if (!read) return tl::unexpected(read.error());
  return out;
}

}  // namespace fusebox::query
