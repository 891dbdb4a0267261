#include "profiler/query/operators.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "engine/support/bounded_json.h"
#include "profiler/query/bounded.h"

namespace fusebox::query {
namespace {

using session::Statement;

// Of events that start together the longer one holds the others. Calls of compiled regions have the names that profilers give them. What
// a device did for no operator stands where it was asked for, its time there in place of the id: a replayed graph's kernels are the region's.
constexpr const char* kEvents =
    "SELECT name, kind, start_ns, dur_ns, thread, detail, file, line, id FROM t_cpu_event WHERE kind IN ('cpu_op', 'user_annotation', 'cuda_runtime', 'cuda_driver', 'overhead') "
    "AND dur_ns IS NOT NULL UNION ALL SELECT 'Torch-Compiled Region: ' || substr(f.name, 17), 'call', l.start_ns, l.dur_ns, l.thread, '', NULL, NULL, 0 "
    "FROM t_call l JOIN t_compile c ON c.id = l.compile_id JOIN t_frame f ON f.id = c.frame_id WHERE f.name LIKE 'compiled region %' "
    "UNION ALL SELECT '', 'device', called_ns, 0, thread, '', NULL, NULL, dur_ns FROM t_gpu_event WHERE cpu_event IS NULL AND called_ns IS NOT NULL AND thread IS NOT NULL "
    "ORDER BY thread, start_ns, dur_ns DESC, id";
constexpr const char* kDevice = "SELECT operator, sum(dur_ns) AS dur_ns FROM gpu_events WHERE operator IS NOT NULL GROUP BY operator";
constexpr size_t kMostShapes = 1000, kMostPlaces = 1000;

/// An event that is not over yet at the present place of the walk.
struct Open {
  size_t row = 0;
  int64_t endNs = 0, childNs = 0, durNs = 0;
  std::string shape = {};
  OperatorTotals::Place* place = nullptr;
  int64_t children = 0;
  /// An only child of the same operator is the same call on its way (sum to sum.dim), which PyTorch counts once: held back until another
  /// child shows that it is none.
  std::optional<std::pair<int64_t, std::string>> same = {};  ///< its time and sizes
};

std::string shapesIn(std::string_view detail) {
  if (detail.find("Input Dims") == std::string_view::npos) return {};
  const auto parsed = parseBounded(detail);
  if (!parsed.is_object()) return {};
  const auto found = parsed.find("Input Dims");
  return found == parsed.end() ? std::string() : found->dump();
}

}  // namespace

bool hasOperators(const session::Reader& reader) {
  bool any = false;
  (void)reader.each("SELECT 1 FROM t_cpu_event WHERE kind = 'cpu_op' LIMIT 1", {}, [&](const Statement&) { any = true; });
  return any;
}

bool knowsOperators(const session::Reader& reader) {
  const std::string engine = reader.info("engine");
  const bool isRecording = reader.info("imported_format").empty() && (engine == "stock" || engine == "eager");
  return isRecording || reader.info("operators") == "on" || hasOperators(reader);
}

Result<std::vector<OperatorTotals>> operatorTotals(const session::Reader& reader) {
  std::vector<OperatorTotals> rows;
  std::vector<std::set<std::string>> shapes;
  std::vector<std::map<std::pair<std::string, int64_t>, OperatorTotals::Place>> places;
  std::unordered_map<std::string, size_t> known;
  std::vector<Open> open;
  int64_t thread = -1;
  const auto count = [&](size_t at, int64_t duration, std::string shape) {
    OperatorTotals& row = rows[at];
    row.leastNs = row.calls == 0 ? duration : std::min(row.leastNs, duration);
    row.mostNs = std::max(row.mostNs, duration);
    ++row.calls;
    row.totalNs += duration;
    if (!shape.empty() && shapes[at].size() < kMostShapes) shapes[at].insert(std::move(shape));
  };
  const auto close = [&] {
    Open done = std::move(open.back());
    open.pop_back();
    const int64_t self = std::max<int64_t>(0, done.durNs - done.childNs);
    rows[done.row].selfNs += self;
    if (done.place) done.place->selfNs += self;
    if (!open.empty() && open.back().row == done.row && open.back().children == 1) open.back().same = {done.durNs, std::move(done.shape)};
    else count(done.row, done.durNs, std::move(done.shape));
  };
  auto read = reader.each(kEvents, {}, [&](const Statement& s) {
    const std::string name = s.string("name"), kind = s.string("kind");
    const int64_t start = boundedTime(s.integer("start_ns")), end = boundedEnd(s.integer("start_ns"), s.integer("dur_ns")), duration = end - start;
    if (s.integer("thread") != thread) {
      while (!open.empty()) close();
      thread = s.integer("thread");
    }
    while (!open.empty() && open.back().endNs <= start) close();
    if (kind == "device") {
      const auto caller = std::find_if(open.rbegin(), open.rend(), [&](const Open& o) { return rows[o.row].kind == "call" || rows[o.row].kind == "cpu_op"; });
      if (caller != open.rend() && rows[caller->row].kind == "call") addBounded(rows[caller->row].deviceNs, boundedAmount(s.integer("id")));
      return;
    }
    if (!open.empty()) {
      Open& parent = open.back();
      parent.childNs += std::min(end, parent.endNs) - start;
      ++parent.children;
      if (auto sibling = std::exchange(parent.same, std::nullopt)) count(parent.row, sibling->first, std::move(sibling->second));
    }
    const auto [at, isNew] = known.try_emplace(kind + '\n' + name, rows.size());
    if (isNew) {
      rows.push_back({name, kind});
      shapes.emplace_back();
      places.emplace_back();
    }
    const bool isCounted = kind == "cpu_op" && shapes[at->second].size() < kMostShapes;
    open.push_back({at->second, end, 0, duration, isCounted ? shapesIn(s.text("detail")) : std::string()});
    if (auto& known = places[at->second]; kind == "cpu_op" && !s.isNull("file") && known.size() < kMostPlaces) {
      OperatorTotals::Place& place = known[{s.string("file"), s.integer("line")}];
      place.file = s.string("file");
      place.line = s.integer("line");
      ++place.calls;
      open.back().place = &place;
    }
  });
  if (!read) return tl::unexpected(read.error());
  while (!open.empty()) close();
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].shapes = static_cast<int64_t>(shapes[i].size());
    if (rows[i].shapes == 1) rows[i].shape = *shapes[i].begin();
    for (auto& [key, place] : places[i]) rows[i].places.push_back(std::move(place));
    std::stable_sort(rows[i].places.begin(), rows[i].places.end(), [](const auto& a, const auto& b) { return a.selfNs > b.selfNs; });
  }
  read = reader.each(kDevice, {}, [&](const Statement& s) {
    if (const auto at = known.find("cpu_op\n" + s.string("operator")); at != known.end()) rows[at->second].deviceNs = s.integer("dur_ns");
  });
  if (!read) return tl::unexpected(read.error());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.selfNs > b.selfNs; });
  return rows;
}

}  // namespace fusebox::query
