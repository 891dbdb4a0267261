#include "profiler/query/timeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "profiler/session/schema.h"

namespace fusebox::query {
namespace {

using session::Reader;
using session::Statement;

int64_t width(int level) { return session::kPyramidBaseNs << (2 * level); }

const char* table(Track track) {
  return track == Track::Calls ? "t_call" : track == Track::Gpu ? "(SELECT id, start_ns, dur_ns, lane FROM t_gpu_event)" : "t_launch";
}

int64_t publicId(Track track, int64_t id) { return track == Track::Calls && id > 0 ? id * 4 + 2 : id; }

// Single events, folded with their neighbours where both are narrower than a pixel.
Result<std::vector<Bar>> rawBars(const Reader& reader, Track track, int64_t thread, int64_t from, int64_t to,
                                 int64_t pixel) {
  std::vector<Bar> out;
  auto read = reader.each(
      fmt::format("SELECT l.start_ns, l.dur_ns, l.id FROM t_block b CROSS JOIN {} l ON l.id BETWEEN b.first_id AND b.last_id "
                  "WHERE b.track = ?1 AND b.thread = ?2 AND b.end_ns > ?3 AND b.start_ns < ?4 AND l.start_ns < ?4 "
                  "AND l.start_ns + l.dur_ns >= ?3{}",
                  // Blocks of one stream's events may hold those of others in between.
                  table(track), track == Track::Gpu ? " AND l.lane = ?2" : ""),
      {int64_t(track), thread, from, to}, [&](const Statement& row) {
        const int64_t start = row.integer("start_ns"), dur = row.integer("dur_ns"), end = start + dur;
        if (!out.empty() && start >= out.back().startNs && end - out.back().startNs <= pixel) {
          Bar& bar = out.back();
          bar.endNs = std::max(bar.endNs, end);
          bar.busyNs += dur;
          ++bar.count;
          if (dur > bar.maxDurNs) bar.maxDurNs = dur, bar.exampleId = publicId(track, row.integer("id"));
        } else {
          out.push_back({start, end, dur, 1, dur, publicId(track, row.integer("id"))});
        }
      });
  if (!read) return tl::unexpected(read.error());
  return out;
}

Result<void> summedBars(const Reader& reader, Track track, int64_t thread, int64_t from, int64_t to, int level,
                        std::vector<Bar>& out) {
  const int64_t w = width(level);
  auto buckets = reader.each(
      "SELECT bucket, count, busy_ns, max_dur_ns, example_id FROM t_pyramid WHERE track = ? AND thread = ? AND level = ? "
      "AND bucket BETWEEN ? AND ?",
      {int64_t(track), thread, int64_t{level}, from / w, to / w}, [&](const Statement& row) {
        const int64_t start = row.integer("bucket") * w;
        out.push_back({start, start + w, std::min(row.integer("busy_ns"), w), row.integer("count"), row.integer("max_dur_ns"),
                       publicId(track, row.integer("example_id"))});
      });
  if (!buckets) return buckets;
  for (int finer = level + 1; finer < session::kPyramidLevels; ++finer) {
    // An event first summed at level `finer` is at most this long (except at the last level, which takes all).
    const bool last = finer + 1 == session::kPyramidLevels;
    const int64_t reach = last ? from : session::kPyramidMaxSpan * width(finer);
    auto longer = reader.each(
        "SELECT start_ns, dur_ns, id FROM t_long WHERE track = ? AND thread = ? AND level = ? AND start_ns >= ? "
        "AND start_ns < ? AND start_ns + dur_ns > ?",
        {int64_t(track), thread, int64_t{finer}, from - reach, to, from}, [&](const Statement& row) {
          const int64_t start = row.integer("start_ns"), dur = row.integer("dur_ns");
          out.push_back({start, start + dur, dur, 1, dur, publicId(track, row.integer("id"))});
        });
    if (!longer) return longer;
  }
  return {};
}

}  // namespace

Result<TimeRange> timeRange(const Reader& reader) {
  TimeRange range;
  bool hasCpuBlocks = false, hasDeviceBlocks = false;
  auto read = reader.each("SELECT DISTINCT track FROM t_block", {}, [&](const Statement& row) {
    hasCpuBlocks |= row.integer("track") == 3;
    hasDeviceBlocks |= row.integer("track") == 2 || row.integer("track") == 4;
  });
  if (!read) return tl::unexpected(read.error());
  read = reader.each(
      std::string("SELECT min(a) AS first_ns, max(b) AS last_ns FROM (SELECT min(start_ns) AS a, max(end_ns) AS b FROM t_block "
      "UNION ALL SELECT min(start_ns), max(end_ns) FROM t_stage UNION ALL SELECT min(start_ns), max(end_ns) FROM t_compile "
      "UNION ALL SELECT min(first_ns), max(last_ns) FROM t_launch_stats ") +
          // Blocks hold a recording's launches and events of GPUs, and all events of a whole import.
          (hasCpuBlocks ? "" : "UNION ALL SELECT min(start_ns), max(start_ns + dur_ns) FROM t_cpu_event ") +
          (hasDeviceBlocks ? ")" : "UNION ALL SELECT min(start_ns), max(start_ns + dur_ns) FROM t_gpu_event)"),
      {}, [&](const Statement& row) { range = {row.integer("first_ns"), row.integer("last_ns")}; });
  if (!read) return tl::unexpected(read.error());
  return range;
}

Result<std::vector<Lane>> lanes(const Reader& reader) {
  std::vector<Lane> out;
  auto read = reader.each(
      "SELECT p.track, p.thread, t.name, sum(p.count) AS count FROM t_pyramid p LEFT JOIN threads t ON t.thread = p.thread "
      "WHERE p.level = ? GROUP BY p.track, p.thread ORDER BY p.thread, p.track DESC",
      {int64_t{session::kPyramidLevels - 1}}, [&](const Statement& row) {
        const auto track = std::clamp<int64_t>(row.integer("track"), 0, 2);
        out.push_back({static_cast<Track>(track), row.integer("thread"), row.string("name"), row.integer("count")});
      });
  if (!read) return tl::unexpected(read.error());
  return out;
}

Result<std::vector<Bar>> bars(const Reader& reader, Track track, int64_t thread, int64_t from, int64_t to, int pixels) {
  if (to <= from || pixels <= 0) return std::vector<Bar>{};
  const int64_t pixel = std::max<int64_t>(1, (to - from) / pixels);
  if (pixel < session::kPyramidBaseNs) return rawBars(reader, track, thread, from, to, pixel);
  int level = 0;
  while (level + 1 < session::kPyramidLevels && width(level + 1) <= pixel) ++level;
  std::vector<Bar> out;
  if (auto read = summedBars(reader, track, thread, from, to, level, out); !read) return tl::unexpected(read.error());
  std::sort(out.begin(), out.end(), [](const Bar& a, const Bar& b) { return a.startNs < b.startNs; });
  return out;
}

namespace {

Result<std::vector<Arrow>> arrowsWhere(const Reader& reader, const char* where, int64_t id) {
  std::vector<Arrow> out;
  // The two parts of the view `flows`, each by its index.
  auto read = reader.each(fmt::format("SELECT from_thread, from_ns, to_thread, to_ns, to_event FROM t_flow WHERE kind = 'launch' AND "
                                      "to_event IN (SELECT id FROM t_gpu_event WHERE {0}) UNION ALL SELECT thread, called_ns, lane, start_ns, id "
                                      "FROM t_gpu_event e WHERE {0} AND called_ns IS NOT NULL AND NOT EXISTS(SELECT 1 FROM t_flow f "
                                      "WHERE f.to_event = e.id AND f.kind = 'launch') LIMIT 200",
                                      where),
                          {id}, [&](const Statement& row) {
                            out.push_back({row.integer("from_thread"), row.integer("from_ns"), row.integer("to_thread"), row.integer("to_ns"), row.integer("to_event")});
                          });
  if (!read) return tl::unexpected(read.error());
  return out;
}

}  // namespace

Result<std::vector<Arrow>> arrowsOfLaunch(const Reader& reader, int64_t launch) { return arrowsWhere(reader, "launch_id = ?1", launch); }
Result<std::vector<Arrow>> arrowsOfGpuEvent(const Reader& reader, int64_t event) { return arrowsWhere(reader, "id = ?1", event); }

Result<GpuEvent> gpuEvent(const Reader& reader, int64_t id) {
  GpuEvent e;
  auto read = reader.each("SELECT event_id, kind, name, start_ns, dur_ns, device, stream, kernel_id, launch_id, bytes, file, line, "
                          "called_ns, call_dur_ns, operator, grid, block, registers, shared_bytes, local_bytes, occupancy, graph, "
                          "graph_node FROM gpu_events WHERE event_id = ?",
                          {id}, [&](const Statement& s) {
                            const auto sane = [&](const char* column) { return std::clamp<int64_t>(s.integer(column), 0, int64_t{1} << 60); };
                            e = {.id = s.integer("event_id"), .startNs = sane("start_ns"), .durNs = sane("dur_ns"), .device = s.integer("device"),
                                 .stream = s.integer("stream"), .kernel = s.integer("kernel_id"), .launch = s.integer("launch_id"), .bytes = s.integer("bytes"),
                                 .line = s.integer("line"), .calledNs = s.isNull("called_ns") ? -1 : sane("called_ns"), .callDurNs = sane("call_dur_ns"),
                                 .registers = s.integer("registers"), .sharedBytes = s.integer("shared_bytes"), .localBytes = s.integer("local_bytes"),
                                 .graph = s.integer("graph"), .graphNode = s.integer("graph_node"), .occupancy = s.real("occupancy"), .kind = s.string("kind"),
                                 .name = s.string("name"), .file = s.string("file"), .op = s.string("operator"), .grid = s.string("grid"), .block = s.string("block")};
                          });
  if (!read) return tl::unexpected(read.error());
  if (e.id == 0) return fail(ErrorCode::NotFound, fmt::format("there is no GPU event {}", id), reader.origin());
  return e;
}

Result<Launch> launch(const Reader& reader, int64_t id) {
  std::vector<Launch> out;
  auto read = reader.each("SELECT id, kernel_id, group_id, start_ns, dur_ns, bytes, thread FROM t_launch WHERE id = ?", {id},
                          [&](const Statement& row) {
                            out.push_back({row.integer("id"), row.integer("kernel_id"), row.integer("group_id"), row.integer("start_ns"), row.integer("dur_ns"),
                                           row.integer("bytes"), row.integer("thread")});
                          });
  if (!read) return tl::unexpected(read.error());
  if (out.empty()) return fail(ErrorCode::NotFound, fmt::format("there is no launch {}", id), reader.origin());
  return out.front();
}

}  // namespace fusebox::query
