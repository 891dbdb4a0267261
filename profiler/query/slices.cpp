// Slices of the timeline: found by name, summed up over a span of time.
#include "profiler/query/slices.h"

#include <fmt/format.h>

#include <algorithm>

#include "profiler/query/bounded.h"

namespace fusebox::query {
namespace {

using session::Reader;
using session::Statement;

// ?1 is a pattern. Names of kernels and functions are few: their ids are looked for first. What ran on the device of a profiler's trace is a
// launch on the device's row too, which is one slice.
const std::string& namedSlices() {
  static const std::string sql =
      "WITH slices AS (SELECT start_ns, dur_ns, name, 0 AS kind, thread, id * 4 AS id FROM t_cpu_event WHERE name LIKE ?1 ESCAPE '\\' "
      "UNION ALL SELECT start_ns, end_ns - start_ns, name, 0, thread, id * 4 + 1 FROM t_stage WHERE name LIKE ?1 ESCAPE '\\' AND end_ns IS NOT NULL "
      "UNION ALL SELECT start_ns, dur_ns, name, 0, thread, id * 4 + 3 FROM (" + std::string(kCompileSpans) + ") WHERE name LIKE ?1 ESCAPE '\\' "
      "UNION ALL SELECT start_ns, dur_ns, (SELECT k.name FROM t_kernel k WHERE k.id = kernel_id), 1, thread, id FROM t_launch "
      "WHERE kernel_id IN (SELECT id FROM t_kernel WHERE name LIKE ?1 ESCAPE '\\') "
      "UNION ALL SELECT start_ns, dur_ns, (SELECT c.frame FROM compiles c WHERE c.compile_id = l.compile_id), 2, thread, id FROM t_call l "
      "WHERE compile_id IN (SELECT compile_id FROM compiles WHERE frame LIKE ?1 ESCAPE '\\') "
      "UNION ALL SELECT start_ns, dur_ns, coalesce(name, (SELECT k.name FROM t_kernel k WHERE k.id = kernel_id)), 3, lane, id FROM t_gpu_event e "
      "WHERE (name LIKE ?1 ESCAPE '\\' OR kernel_id IN (SELECT id FROM t_kernel WHERE name LIKE ?1 ESCAPE '\\')) "
      "AND NOT EXISTS (SELECT 1 FROM t_launch l WHERE l.id = e.launch_id AND l.start_ns = e.start_ns AND l.dur_ns = e.dur_ns)) ";
  return sql;
}

std::string patternOf(const std::string& text) {
  std::string out = "%";
  for (const char c : text) {
    if (c == '%' || c == '_' || c == '\\') out += '\\';
    out += c;
  }
  return out + "%";
}

constexpr std::array<const char*, SliceSum::kDecades> kDecadeNames{"d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7"};

SliceSum sumOf(SliceSum::Kind kind, const Statement& s) {
  SliceSum sum{kind, s.string("name"), s.integer("kernel_id"), boundedAmount(s.integer("count")), boundedAmount(s.integer("ns")), boundedAmount(s.integer("shortest")), boundedAmount(s.integer("longest"))};
  for (size_t d = 0; d < sum.lengths.size(); ++d) sum.lengths[d] = boundedAmount(s.integer(kDecadeNames[d]));
  return sum;
}

constexpr int64_t kShortestDecade = 100;  // ns

/// Columns that count by decades of `length`.
std::string decadesOf(const char* length) {
  std::string out;
  int64_t end = kShortestDecade;
  for (size_t d = 0; d < SliceSum::kDecades; ++d, end *= 10) {
    if (d == 0) out += fmt::format(", sum({} < {}) AS {}", length, end, kDecadeNames[d]);
    else if (d + 1 < SliceSum::kDecades) out += fmt::format(", sum({0} >= {1} AND {0} < {2}) AS {3}", length, end / 10, end, kDecadeNames[d]);
    else out += fmt::format(", sum({} >= {}) AS {}", length, end / 10, kDecadeNames[d]);
  }
  return out;
}

}  // namespace

const char* const kCompileSpans =
    "SELECT c.compile_id AS id, c.start_ns, c.end_ns - c.start_ns AS dur_ns, c.frame || CASE c.kind WHEN 'backward' THEN ' (backward)' ELSE '' END || coalesce(' ' || c.log_id, '') AS name, "
    "c.status, c.thread FROM compiles c WHERE c.end_ns IS NOT NULL AND c.thread IS NOT NULL AND NOT EXISTS "
    "(SELECT 1 FROM t_stage s WHERE s.compile_id = c.compile_id AND s.start_ns <= c.start_ns AND s.end_ns >= c.end_ns)";

Result<SliceHit> findSlice(const Reader& reader, const std::string& text, const Slice& at, SliceDirection direction) {
  SliceHit out;
  const std::string pattern = patternOf(text), key = "(start_ns, -dur_ns, kind, id)", here = "(?2, ?3, ?4, ?5)";
  const bool isFrom = direction == SliceDirection::From, isBack = direction == SliceDirection::Previous;
  const int64_t longestFirst = isFrom ? INT64_MIN : at.startNs - at.endNs;
  int64_t before = 0, upTo = 0;
  auto read = reader.each(namedSlices() + "SELECT count(*) AS count, coalesce(sum(" + key + " < " + here + "), 0) AS before, coalesce(sum(" + key + " <= " + here + "), 0) AS up_to FROM slices",
                          {pattern, at.startNs, longestFirst, static_cast<int64_t>(at.kind), at.id}, [&](const Statement& s) {
                            out.count = s.integer("count");
                            before = s.integer("before");
                            upTo = s.integer("up_to");
                          });
  if (!read) return tl::unexpected(read.error());
  if (out.count == 0) return out;
  const bool wraps = isBack ? before == 0 : (isFrom ? before : upTo) == out.count;
  out.number = isBack ? (wraps ? out.count : before) : wraps ? 1 : (isFrom ? before : upTo) + 1;
  const char* side = isBack ? " < " : isFrom ? " >= " : " > ";
  const std::string order = isBack ? "start_ns DESC, dur_ns, kind DESC, id DESC" : "start_ns, dur_ns DESC, kind, id";
  read = reader.each(namedSlices() + "SELECT * FROM slices WHERE " + key + side + here + " ORDER BY " + order + " LIMIT 1",
                     {pattern, !wraps ? at.startNs : isBack ? INT64_MAX : INT64_MIN, longestFirst, static_cast<int64_t>(at.kind), at.id}, [&](const Statement& s) {
                       out.slice = {boundedTime(s.integer("start_ns")), boundedEnd(s.integer("start_ns"), s.integer("dur_ns")), s.string("name"),
                                    static_cast<Slice::Kind>(s.integer("kind")), s.integer("thread"), s.integer("id")};
                     });
  if (!read) return tl::unexpected(read.error());
  return out;
}

std::string lengthsText(const std::array<int64_t, SliceSum::kDecades>& lengths) {
  constexpr std::array<const char*, SliceSum::kDecades + 1> kBounds{"0", "100 ns", "1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "∞"};
  constexpr std::array<const char*, 9> kBars{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const int64_t most = *std::max_element(lengths.begin(), lengths.end());
  if (most <= 0) return {};
  size_t first = 0, last = lengths.size() - 1;
  while (lengths[first] <= 0) ++first;
  while (lengths[last] <= 0) --last;
  std::string bars;
  for (size_t d = first; d <= last; ++d) bars += kBars[static_cast<size_t>((std::max<int64_t>(lengths[d], 0) * 8 + most - 1) / most)];
  return fmt::format("{} {} {}", kBounds[first], bars, kBounds[last + 1]);
}

Result<std::vector<SliceSum>> sumSlices(const Reader& reader, int64_t from, int64_t to, int64_t most) {
  using Kind = SliceSum::Kind;
  struct Source {
    Kind kind;
    const char* sql;
    const char* length;
  };
  // Inside of [?1, ?2); {} is for how many there are of each decade of lengths.
  static constexpr Source kSources[] = {
      {Kind::Kernel,
       "SELECT (SELECT k.name FROM t_kernel k WHERE k.id = l.kernel_id) AS name, l.kernel_id, count(*) AS count, sum(min(l.start_ns + l.dur_ns, ?2) - max(l.start_ns, ?1)) AS ns, "
       "min(l.dur_ns) AS shortest, max(l.dur_ns) AS longest{} FROM t_block b JOIN t_launch l ON l.id BETWEEN b.first_id AND b.last_id WHERE b.track = 0 AND b.end_ns > ?1 AND b.start_ns < ?2 "
       "AND l.start_ns < ?2 AND l.start_ns + l.dur_ns > ?1 GROUP BY l.kernel_id ORDER BY ns DESC LIMIT ?3", "l.dur_ns"},
      {Kind::Device,
       "SELECT coalesce(e.name, k.name) AS name, coalesce(e.kernel_id, 0) AS kernel_id, count(*) AS count, sum(min(e.start_ns + e.dur_ns, ?2) - max(e.start_ns, ?1)) AS ns, min(e.dur_ns) AS shortest, max(e.dur_ns) AS longest{} "
       "FROM t_gpu_event e LEFT JOIN t_kernel k ON k.id = e.kernel_id WHERE e.start_ns < ?2 AND e.start_ns + e.dur_ns > ?1 GROUP BY 1, 2 ORDER BY ns DESC LIMIT ?3", "e.dur_ns"},
      {Kind::Operator,
       "SELECT name, 0 AS kernel_id, count(*) AS count, sum(min(start_ns + dur_ns, ?2) - max(start_ns, ?1)) AS ns, min(dur_ns) AS shortest, max(dur_ns) AS longest{} FROM t_cpu_event "
       "WHERE kind = 'cpu_op' AND start_ns < ?2 AND start_ns + dur_ns > ?1 GROUP BY name ORDER BY ns DESC LIMIT ?3", "dur_ns"},
      {Kind::Span,
       "SELECT name, 0 AS kernel_id, count(*) AS count, sum(min(start_ns + dur_ns, ?2) - max(start_ns, ?1)) AS ns, min(dur_ns) AS shortest, max(dur_ns) AS longest{} FROM (SELECT name, start_ns, dur_ns FROM t_cpu_event "
       "WHERE kind <> 'cpu_op' UNION ALL SELECT name, start_ns, end_ns - start_ns FROM t_stage WHERE end_ns IS NOT NULL) "
       "WHERE start_ns < ?2 AND start_ns + dur_ns > ?1 AND dur_ns > 0 GROUP BY name ORDER BY ns DESC LIMIT ?3", "dur_ns"},
  };
  bool isOnDevice = false;  // launches of a profiler's trace: what ran there, which is summed up as such
  if (!reader.info("imported_from").empty())
    if (auto any = reader.each("SELECT 1 FROM t_gpu_event LIMIT 1", {}, [&](const Statement&) { isOnDevice = true; }); !any) return tl::unexpected(any.error());
  std::vector<SliceSum> out;
  for (const Source& source : kSources) {
    if (source.kind == Kind::Kernel && isOnDevice) continue;
    const std::string sql = fmt::format(fmt::runtime(source.sql), decadesOf(source.length));
    auto read = reader.each(sql, {from, to, most}, [&](const Statement& s) { out.push_back(sumOf(source.kind, s)); });
    if (!read) return tl::unexpected(read.error());
  }
  return out;
}

Result<SlicePlace> placeOfSlice(const Reader& reader, int64_t event, int64_t thread, int64_t startNs, int64_t endNs) {
  SlicePlace out;
  // cpu_events numbers spans, stages and calls in turn (SCHEMA.md); the fourth are compilations.
  static constexpr const char* kTables[] = {"SELECT file, line, compile_id, detail FROM t_cpu_event WHERE id = ?",
                                            "SELECT c.file, c.line, s.compile_id, s.detail FROM t_stage s LEFT JOIN compiles c ON c.compile_id = s.compile_id WHERE s.id = ?",
                                            "SELECT c.file, c.line, l.compile_id, NULL AS detail FROM t_call l LEFT JOIN compiles c ON c.compile_id = l.compile_id WHERE l.id = ?",
                                            "SELECT file, line, compile_id, CASE status WHEN 'failed' THEN error END AS detail FROM compiles WHERE compile_id = ?"};
  if (event < 0) return out;
  auto read = reader.each(kTables[event % 4], {event / 4}, [&](const Statement& s) {
    out.file = s.string("file");
    out.line = s.integer("line");
    out.compile = s.integer("compile_id");
    out.detail = s.string("detail");
  });
  if (read) {
    read = reader.each(
        "SELECT count(*) AS count, coalesce(sum(l.dur_ns), 0) AS dur_ns FROM t_block b JOIN t_launch l ON l.id BETWEEN b.first_id AND b.last_id "
        "WHERE b.track = 0 AND b.thread = ?3 AND b.end_ns > ?1 AND b.start_ns < ?2 AND l.start_ns >= ?1 AND l.start_ns < ?2",
        {startNs, endNs, thread}, [&](const Statement& s) {
          out.launches = s.integer("count");
          out.kernelNs = boundedAmount(s.integer("dur_ns"));
        });
  }
  if (!read) return tl::unexpected(read.error());
  return out;
}

}  // namespace fusebox::query
