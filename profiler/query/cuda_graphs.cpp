#include "profiler/query/cuda_graphs.h"

#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <unordered_map>

#include "profiler/session/reader.h"

namespace fusebox::query {
namespace {

using session::Reader;
using session::Statement;

// Of the view `kernels` those rows alone: joined as it is, SQLite makes all of it first.
constexpr const char* kEvents = R"(SELECT g.id, g.compile_id, c.frame, CASE c.kind WHEN 'backward' THEN 'backward' ELSE 'forward' END AS direction, g.event,
  g.reason, g.device, g.plain_reason, c.file, c.line, g.number, g.replaces, g.nodes, g.stretches, g.plain_steps, g.static_inputs, g.copied_inputs,
  g.copied_bytes, g.kept_bytes, g.pool_bytes, g.time_ns, g.dur_ns, g.kernel_id, k.launches, k.host_ns, k.timed_launches,
  CASE WHEN k.timed_launches > 0 THEN k.total_ns END AS device_ns
  FROM t_cuda_graph g LEFT JOIN compiles c ON c.compile_id = g.compile_id LEFT JOIN (SELECT kernel_id, launches, host_ns, timed_launches, total_ns
    FROM kernels WHERE kernel_id IN (SELECT kernel_id FROM t_cuda_graph)) k ON k.kernel_id = g.kernel_id AND g.event = 'recorded'
  ORDER BY g.compile_id, g.id)";
constexpr const char* kNodes = R"(SELECT n.stretch, n.first_node, n.node_count, n.kernel_id, n.group_id, k.name, k.kind, k.op, k.file, k.line,
  k.device_function FROM t_cuda_graph_node n LEFT JOIN (SELECT kernel_id, name, kind, op, file, line, device_function FROM kernels
    WHERE kernel_id IN (SELECT kernel_id FROM t_cuda_graph_node WHERE graph_id = ?1)) k ON k.kernel_id = n.kernel_id WHERE n.graph_id = ?1
  ORDER BY n.stretch, n.first_node)";
// Only what was replayed: the same kernels run plainly in the first call.
constexpr const char* kTimes = R"(SELECT e.kernel_id, count(*) AS count, sum(e.dur_ns) AS dur_ns FROM t_gpu_event e
  WHERE e.launch_id IN (SELECT id FROM t_launch WHERE kernel_id = ?) AND e.graph IS NOT NULL GROUP BY 1)";
constexpr const char* kReplays = R"(SELECT l.id, l.start_ns, l.dur_ns, min(e.start_ns) AS first_ns, sum(e.dur_ns) AS device_ns, max(e.start_ns + e.dur_ns) AS ended_ns
  FROM t_launch l LEFT JOIN t_gpu_event e ON e.launch_id = l.id AND e.graph IS NOT NULL WHERE l.kernel_id = ?
  GROUP BY l.id ORDER BY l.start_ns LIMIT ?)";

int64_t orMinus(const Statement& s, const char* column) { return s.isNull(column) ? -1 : s.integer(column); }

}  // namespace

Result<std::vector<CudaGraphEvent>> cudaGraphs(const Reader& reader) {
  std::vector<CudaGraphEvent> out;
  auto read = reader.each(kEvents, {}, [&](const Statement& s) {
    CudaGraphEvent e;
    e.id = s.integer("id");
    e.compile = s.integer("compile_id");
    e.line = s.integer("line");
    const std::pair<const char*, std::string*> texts[] = {{"frame", &e.function}, {"direction", &e.direction}, {"event", &e.event}, {"reason", &e.reason},
                                                          {"device", &e.device}, {"plain_reason", &e.plainReason}, {"file", &e.file}};
    for (const auto& [column, text] : texts) *text = s.string(column);
    const std::pair<const char*, int64_t*> numbers[] = {
        {"number", &e.number}, {"replaces", &e.replaces}, {"nodes", &e.nodes}, {"stretches", &e.pieces}, {"plain_steps", &e.plainSteps}, {"static_inputs", &e.staticInputs},
        {"copied_inputs", &e.copiedInputs}, {"copied_bytes", &e.copiedBytes}, {"kept_bytes", &e.keptBytes}, {"pool_bytes", &e.poolBytes}};
    for (const auto& [column, number] : numbers) *number = orMinus(s, column);
    const std::pair<const char*, int64_t*> sums[] = {{"time_ns", &e.timeNs}, {"dur_ns", &e.durNs}, {"kernel_id", &e.kernel}, {"launches", &e.replays},
                                                     {"host_ns", &e.hostNs}, {"timed_launches", &e.timedReplays}, {"device_ns", &e.deviceNs}};
    for (const auto& [column, sum] : sums) *sum = s.integer(column);
    out.push_back(std::move(e));
  });
  if (!read) return tl::unexpected(read.error());
  return out;
}

Result<std::vector<CudaGraphNode>> cudaGraphNodes(const Reader& reader, const CudaGraphEvent& recording) {
  std::vector<CudaGraphNode> out;
  auto read = reader.each(kNodes, {recording.id}, [&](const Statement& s) {
    out.push_back({s.integer("stretch"), s.integer("first_node"), s.integer("node_count"), s.integer("kernel_id"), s.integer("group_id"), s.string("name"), s.string("kind"), s.string("op"), s.string("device_function"),
                   s.string("file"), s.integer("line")});
  });
  if (!read || recording.kernel == 0) return read ? Result<std::vector<CudaGraphNode>>(std::move(out)) : tl::unexpected(read.error());
  std::unordered_map<int64_t, std::pair<int64_t, int64_t>> times;
  read = reader.each(kTimes, {recording.kernel}, [&](const Statement& s) { times[s.integer("kernel_id")] = {s.integer("count"), s.integer("dur_ns")}; });
  if (!read) return tl::unexpected(read.error());
  // A kernel that stands in several places is timed as one: its time is shown at the first.
  std::set<int64_t> told;
  for (CudaGraphNode& node : out) {
    const auto time = times.find(node.kernel);
    if (time == times.end() || !told.insert(node.kernel).second) continue;
    std::tie(node.events, node.deviceNs) = time->second;
  }
  return out;
}

Result<std::vector<CudaGraphReplay>> cudaGraphReplays(const Reader& reader, const CudaGraphEvent& recording, int64_t most) {
  std::vector<CudaGraphReplay> out;
  if (recording.kernel == 0) return out;
  auto read = reader.each(kReplays, {recording.kernel, most}, [&](const Statement& s) {
    CudaGraphReplay r{s.integer("id"), s.integer("start_ns"), s.integer("dur_ns"), orMinus(s, "first_ns"), orMinus(s, "device_ns")};
    if (r.deviceStartNs >= 0) r.spanNs = s.integer("ended_ns") - r.deviceStartNs;
    out.push_back(r);
  });
  if (!read) return tl::unexpected(read.error());
  return out;
}

Result<int> recordingOfKernel(const Reader& reader, const std::vector<CudaGraphEvent>& events, int64_t kernel) {
  std::set<int64_t> holding;
  if (auto read = reader.each("SELECT cuda_graph_id FROM cuda_graph_nodes WHERE kernel_id = ?", {kernel},
                              [&](const Statement& s) { holding.insert(s.integer("cuda_graph_id")); });
      !read) {
    return tl::unexpected(read.error());
  }
  int best = -1;
  for (size_t i = 0; i < events.size(); ++i) {
    const CudaGraphEvent& e = events[i];
    if (!e.isRecording() || (e.kernel != kernel && !holding.contains(e.id))) continue;
    if (best < 0 || e.replays > events[static_cast<size_t>(best)].replays) best = static_cast<int>(i);
  }
  return best;
}

nlohmann::json toJson(const CudaGraphEvent& e, const std::vector<CudaGraphNode>& nodes) {
  using nlohmann::json;
  json out = {{"cuda_graph_id", e.id}, {"compile_id", e.compile}, {"function", e.function}, {"direction", e.direction}, {"event", e.event},
              {"reason", e.reason},    {"device", e.device},      {"file", e.file},         {"line", e.line}};
  if (e.number >= 0) out["number"] = e.number;
  if (!e.isRecording()) return out;
  const auto known = [](int64_t value) { return value >= 0 ? json(value) : json(); };
  out.update({{"replaces", known(e.replaces)}, {"nodes", known(e.nodes)}, {"pieces", known(e.pieces)}, {"plain_steps", known(e.plainSteps)},
              {"plain_reason", e.plainReason}, {"static_inputs", known(e.staticInputs)}, {"copied_inputs", known(e.copiedInputs)},
              {"copied_bytes", known(e.copiedBytes)}, {"kept_bytes", known(e.keptBytes)}, {"pool_bytes", known(e.poolBytes)}, {"record_ns", e.durNs}, {"kernel_id", e.kernel},
              {"replays", e.replays}, {"host_ns", e.hostNs}, {"timed_replays", e.timedReplays}, {"device_ns", e.deviceNs}});
  json list = json::array();
  for (const CudaGraphNode& n : nodes) {
    list.push_back({{"piece", n.piece}, {"first_node", n.first}, {"node_count", n.count}, {"kernel_id", n.kernel}, {"group_id", n.group},
                    {"kernel", n.name}, {"kind", n.kind}, {"op", n.op}, {"device_function", n.function}, {"events", n.events},
                    {"device_ns", n.deviceNs}, {"file", n.file}, {"line", n.line}});
  }
  out["node_list"] = std::move(list);
  return out;
}

}  // namespace fusebox::query
