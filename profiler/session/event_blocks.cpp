#include "profiler/session/event_blocks.h"

#include <fmt/format.h>

#include "profiler/session/reader.h"

namespace fusebox::session {

Result<void> writeEventBlocks(Database& database) {
  return database.execute(
      "DELETE FROM t_block WHERE track IN (3, 4);"
      "INSERT INTO t_block(track, first_id, last_id, start_ns, end_ns) SELECT 3, min(id), max(id), min(start_ns), max(start_ns + dur_ns) FROM t_cpu_event GROUP BY id / 1024;"
      "INSERT INTO t_block(track, first_id, last_id, start_ns, end_ns) SELECT 4, min(id), max(id), min(start_ns), max(start_ns + dur_ns) FROM t_gpu_event "
      "WHERE NOT EXISTS(SELECT 1 FROM t_block WHERE track = 2) GROUP BY id / 1024");
}

Result<std::string> eventsBetween(const Reader& reader, EventTable table, const std::string& from, const std::string& to) {
  const std::string name = table == EventTable::Cpu ? "t_cpu_event" : "t_gpu_event";
  int64_t track = 0;
  auto read = reader.each(fmt::format("SELECT max(track) AS track FROM t_block WHERE track IN ({})", table == EventTable::Cpu ? "3" : "2, 4"), {},
                          [&](const Statement& s) { track = s.integer("track"); });
  if (!read) return tl::unexpected(read.error());
  if (track == 0) return name + " e";
  return fmt::format("t_block b CROSS JOIN {0} e ON b.track = {1} AND b.start_ns <= {3} AND b.end_ns >= {2} AND e.id BETWEEN b.first_id AND b.last_id", name, track, from, to);
}

}  // namespace fusebox::session
