#include "profiler/query/entries.h"

namespace fusebox::query {

Result<std::map<int64_t, EntryNumber>> entryNumbers(const session::Reader& reader) {
  std::map<int64_t, EntryNumber> out;
  std::map<int64_t, int> entries;  // by frame
  auto read = reader.each(
      "SELECT c.compile_id, coalesce(c.frame_id, p.frame_id, 0), p.compile_id, f.parent_frame_id IS NOT NULL AND f.resume_offset IS NOT NULL, c.status "
      "FROM compiles c LEFT JOIN compiles p ON p.compile_id = c.parent_compile_id LEFT JOIN frames f ON f.frame_id = coalesce(c.frame_id, p.frame_id) ORDER BY c.compile_id",
      {}, [&](const session::Statement& s) {
        EntryNumber c{s.integer(1), 0, s.integer(3) != 0};
        const auto forward = s.isNull(2) ? out.end() : out.find(s.integer(2));
        if (forward != out.end() && forward->second.frame == c.frame) c.entry = forward->second.entry;
        else if (s.text(4) != "failed") c.entry = entries[c.frame]++;  // entries are what can be called
        out[s.integer(0)] = c;
      });
  if (!read) return tl::unexpected(read.error());
  for (auto& [compile, c] : out) c.isOnly = entries[c.frame] < 2;
  return out;
}

}  // namespace fusebox::query
