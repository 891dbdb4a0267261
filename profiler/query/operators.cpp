#include "profiler/query/operators.h"

#include <algorithm>
#include <functional>
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
// a device did stands where it was asked for, its time there in place of the id; of what no operator asked for (`loose`), a replayed graph's
// kernels are the region's.
constexpr const char* kEvents =
    "SELECT name, kind, start_ns, dur_ns, thread, detail, file, line, id FROM t_cpu_event WHERE kind IN ('cpu_op', 'user_annotation', 'cuda_runtime', 'cuda_driver', 'overhead') "
    "AND dur_ns IS NOT NULL UNION ALL SELECT 'Torch-Compiled Region: ' || substr(f.name, 17), 'call', l.start_ns, l.dur_ns, l.thread, '', NULL, NULL, 0 "
    "FROM t_call l JOIN t_compile c ON c.id = l.compile_id JOIN t_frame f ON f.id = c.frame_id WHERE f.name LIKE 'compiled region %' "
    "UNION ALL SELECT '', CASE WHEN cpu_event IS NULL THEN 'loose' ELSE 'device' END, called_ns, 0, thread, '', NULL, NULL, dur_ns FROM t_gpu_event "
    "WHERE called_ns IS NOT NULL AND thread IS NOT NULL "
    "ORDER BY thread, start_ns, dur_ns DESC, id";
constexpr const char* kDevice = "SELECT operator, sum(dur_ns) AS dur_ns FROM gpu_events WHERE operator IS NOT NULL GROUP BY operator";
constexpr size_t kMostShapes = 1000, kMostPlaces = 1000;

/// What torch's allocators gave out and took back, in order of time. As in PyTorch's own table a record is of all calls that were under way,
/// whichever thread it came from: what a backward pass allocates is also of the call that waits for it.
class MemoryRecords {
 public:
  struct Bytes {
    int64_t cpu = 0, device = 0;
  };
  struct Record {
    int64_t ns = 0;
    Bytes before = {};  ///< the sum of those before
    Bytes bytes = {};
  };

  Result<void> read(const session::Reader& reader) {
    Bytes sum;
    auto outcome = reader.each("SELECT start_ns, detail FROM t_cpu_event WHERE kind = 'cpu_instant_event' AND name = '[memory]' ORDER BY start_ns", {}, [&](const Statement& s) {
      const auto parsed = parseBounded(s.text("detail"));
      const auto number = [&](const char* key) {
        const auto found = parsed.is_object() ? parsed.find(key) : parsed.end();
        return parsed.is_object() && found != parsed.end() && found->is_number_integer() ? std::clamp(found->get<int64_t>(), -kMost, kMost) : 0;
      };
      const bool isCpu = number("Device Type") == 0;
      records_.push_back({boundedTime(s.integer("start_ns")), sum, {isCpu ? number("Bytes") : 0, isCpu ? 0 : number("Bytes")}});
      sum.cpu = std::clamp(sum.cpu + records_.back().bytes.cpu, -kMostAll, kMostAll);
      sum.device = std::clamp(sum.device + records_.back().bytes.device, -kMostAll, kMostAll);
    });
    covered_.resize(records_.size() + 1);
    records_.push_back({INT64_MAX, sum});
    return outcome;
  }
  Bytes within(int64_t start, int64_t end) const {
    const Record &first = records_[from(start)], &behind = records_[from(end + 1)];
    return {behind.before.cpu - first.before.cpu, behind.before.device - first.before.device};
  }
  /// Those within belong to a call.
  void cover(int64_t start, int64_t end) { ++covered_[from(start)], --covered_[from(end + 1)]; }
  void eachUncovered(const std::function<void(Bytes)>& visit) const {
    int64_t depth = 0;
    for (size_t i = 0; i + 1 < records_.size(); ++i) {
      depth += covered_[i];
      if (depth == 0) visit(records_[i].bytes);
    }
  }

 private:
  static constexpr int64_t kMost = int64_t{1} << 48, kMostAll = int64_t{1} << 60;
  size_t from(int64_t ns) const {
    return static_cast<size_t>(std::partition_point(records_.begin(), records_.end() - 1, [&](const Record& r) { return r.ns < ns; }) - records_.begin());
  }
  std::vector<Record> records_;
  std::vector<int64_t> covered_;
};

/// What one call took, with what it called.
struct Taken {
  int64_t ns = 0, deviceNs = 0, cpuBytes = 0, deviceBytes = 0;
};

/// An event that is not over yet at the present place of the walk.
struct Open {
  size_t row = 0;
  int64_t endNs = 0, childNs = 0;
  Taken taken = {};
  MemoryRecords::Bytes childBytes = {};
  std::string shape = {};
  OperatorTotals::Place* place = nullptr;
  int64_t children = 0;
  /// An only child of the same operator is the same call on its way (sum to sum.dim), which PyTorch counts once: held back until another
  /// child shows that it is none.
  std::optional<std::pair<Taken, std::string>> same = {};  ///< with its sizes
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
  const auto rowOf = [&](const std::string& name, const std::string& kind) {
    const auto [at, isNew] = known.try_emplace(kind + '\n' + name, rows.size());
    if (isNew) {
      rows.push_back({name, kind});
      shapes.emplace_back();
      places.emplace_back();
    }
    return at->second;
  };
  const auto count = [&](size_t at, const Taken& taken, std::string shape) {
    OperatorTotals& row = rows[at];
    row.leastNs = row.calls == 0 ? taken.ns : std::min(row.leastNs, taken.ns);
    row.mostNs = std::max(row.mostNs, taken.ns);
    ++row.calls;
    row.totalNs += taken.ns;
    addBounded(row.deviceTotalNs, taken.deviceNs);
    addBounded(row.cpu.bytes, taken.cpuBytes);
    addBounded(row.device.bytes, taken.deviceBytes);
    if (!shape.empty() && shapes[at].size() < kMostShapes) shapes[at].insert(std::move(shape));
  };
  const auto close = [&] {
    Open done = std::move(open.back());
    open.pop_back();
    const int64_t self = std::max<int64_t>(0, done.taken.ns - done.childNs);
    rows[done.row].selfNs += self;
    if (done.place) done.place->selfNs += self;
    addBounded(rows[done.row].cpu.ownBytes, done.taken.cpuBytes - done.childBytes.cpu);
    addBounded(rows[done.row].device.ownBytes, done.taken.deviceBytes - done.childBytes.device);
    if (!open.empty()) {
      addBounded(open.back().taken.deviceNs, done.taken.deviceNs);
      addBounded(open.back().childBytes.cpu, done.taken.cpuBytes);
      addBounded(open.back().childBytes.device, done.taken.deviceBytes);
    }
    if (!open.empty() && open.back().row == done.row && open.back().children == 1) open.back().same = {done.taken, std::move(done.shape)};
    else count(done.row, done.taken, std::move(done.shape));
  };
  MemoryRecords memory;
  auto read = memory.read(reader);
  if (!read) return tl::unexpected(read.error());
  read = reader.each(kEvents, {}, [&](const Statement& s) {
    const std::string name = s.string("name"), kind = s.string("kind");
    const int64_t start = boundedTime(s.integer("start_ns")), end = boundedEnd(s.integer("start_ns"), s.integer("dur_ns")), duration = end - start;
    if (s.integer("thread") != thread) {
      while (!open.empty()) close();
      thread = s.integer("thread");
    }
    while (!open.empty() && open.back().endNs <= start) close();
    if (kind == "device" || kind == "loose") {
      const auto caller = std::find_if(open.rbegin(), open.rend(), [&](const Open& o) { return rows[o.row].kind == "call" || rows[o.row].kind == "cpu_op"; });
      const int64_t took = boundedAmount(s.integer("id"));
      if (caller == open.rend()) return;
      if (kind == "loose" && rows[caller->row].kind == "call") addBounded(rows[caller->row].deviceNs, took);
      addBounded(caller->taken.deviceNs, took);
      return;
    }
    if (!open.empty()) {
      Open& parent = open.back();
      parent.childNs += std::min(end, parent.endNs) - start;
      ++parent.children;
      if (auto sibling = std::exchange(parent.same, std::nullopt)) count(parent.row, sibling->first, std::move(sibling->second));
    }
    const size_t at = rowOf(name, kind);
    const bool isCounted = kind == "cpu_op" && shapes[at].size() < kMostShapes;
    if (open.empty()) memory.cover(start, end);
    const auto [cpuBytes, deviceBytes] = memory.within(start, end);
    open.push_back({at, end, 0, {duration, 0, cpuBytes, deviceBytes}, {}, isCounted ? shapesIn(s.text("detail")) : std::string()});
    if (auto& known = places[at]; kind == "cpu_op" && !s.isNull("file") && known.size() < kMostPlaces) {
      OperatorTotals::Place& place = known[{s.string("file"), s.integer("line")}];
      place.file = s.string("file");
      place.line = s.integer("line");
      ++place.calls;
      open.back().place = &place;
    }
  });
  if (!read) return tl::unexpected(read.error());
  while (!open.empty()) close();
  memory.eachUncovered([&](MemoryRecords::Bytes bytes) {
    const size_t at = rowOf("[memory]", "memory");
    addBounded(rows[at].cpu.ownBytes, bytes.cpu);
    addBounded(rows[at].device.ownBytes, bytes.device);
    count(at, {.cpuBytes = bytes.cpu, .deviceBytes = bytes.device}, {});
  });
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
