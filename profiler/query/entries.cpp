#include "profiler/query/entries.h"

namespace fusebox::query {

Result<std::map<int64_t, EntryNumber>> entryNumbers(const session::Reader& reader) {
  std::map<int64_t, EntryNumber> out;
  std::map<int64_t, int> entries;  // by frame
  auto read = reader.each(
      "SELECT c.compile_id AS c_compile_id, coalesce(c.frame_id, p.frame_id, 0) AS frame_id, p.compile_id AS p_compile_id, f.parent_frame_id IS NOT NULL AND f.resume_offset IS NOT NULL AS is_resumed, c.status "
      "FROM compiles c LEFT JOIN compiles p ON p.compile_id = c.parent_compile_id LEFT JOIN frames f ON f.frame_id = coalesce(c.frame_id, p.frame_id) ORDER BY c.compile_id",
      {}, [&](const session::Statement& s) {
        EntryNumber c{s.integer("frame_id"), 0, s.integer("is_resumed") != 0};
        const auto forward = s.isNull("p_compile_id") ? out.end() : out.find(s.integer("p_compile_id"));
        if (forward != out.end() && forward->second.frame == c.frame) c.entry = forward->second.entry;
        else if (s.text("status") != "failed") c.entry = entries[c.frame]++;  // entries are what can be called
        out[s.integer("c_compile_id")] = c;
      });
  if (!read) return tl::unexpected(read.error());
  for (auto& [compile, c] : out) c.isOnly = entries[c.frame] < 2;
  return out;
}

}  // namespace fusebox::query
