#include "profiler/query/graphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "profiler/query/holdings.h"

namespace fusebox::query {
namespace {

using session::Reader;
using session::Statement;

constexpr const char* kGraphColumns =
    "SELECT g.graph_id, g.compile_id, g.parent_graph_id, g.node_count, g.stage, g.direction, g.name, f.name AS frame, g.file, g.line, g.log_id "
    "FROM graphs g LEFT JOIN frames f ON f.frame_id = g.frame_id ";

GraphRow graphOf(const Statement& row) {
  return {row.integer("graph_id"), row.integer("compile_id"), row.integer("parent_graph_id"), row.integer("node_count"), row.string("stage"), row.string("direction"),
          row.string("name"), row.string("frame"), row.string("file"), row.integer("line"), row.string("log_id")};
}

Result<void> readNodes(const Reader& reader, GraphData& data) {
  return reader.each(
      "SELECT node_id, position, bytes, line, name, kind, op, args, dtype, shape, stride, device, module_path, file, function, "
      "is_backward FROM nodes WHERE graph_id = ? ORDER BY position",
      {data.row.id}, [&](const Statement& row) {
        GraphNode node;
        node.id = row.integer("node_id"), node.position = row.integer("position"), node.bytes = row.integer("bytes"), node.line = row.integer("line");
        const std::pair<const char*, std::string*> texts[] = {
            {"name", &node.name}, {"kind", &node.kind}, {"op", &node.op}, {"args", &node.args}, {"dtype", &node.dtype}, {"shape", &node.shape},
            {"stride", &node.stride}, {"device", &node.device}, {"module_path", &node.modulePath}, {"file", &node.file}, {"function", &node.function}};
        for (const auto& [column, text] : texts) *text = row.string(column);
        node.isBackward = row.integer("is_backward") != 0;
        data.nodes.push_back(std::move(node));
      });
}

/// What `fusebox numerics` measured: the worst of each node's outputs.
Result<void> readErrors(const Reader& reader, GraphData& data) {
  std::unordered_map<int64_t, std::pair<double, bool>> errors;
  auto read = reader.each("SELECT node_id, max(compiled_rel) AS compiled_rel, max(is_divergent) AS is_divergent FROM t_numerics WHERE graph_id = ? GROUP BY node_id",
                          {data.row.id}, [&](const Statement& row) {
                            errors[row.integer("node_id")] = {row.isNull("compiled_rel") ? -1.0 : row.real("compiled_rel"), row.integer("is_divergent") != 0};
                          });
  if (!read) return read;
  for (GraphNode& node : data.nodes)
    if (const auto found = errors.find(node.id); found != errors.end()) std::tie(node.error, node.isDivergent) = found->second;
  return {};
}

// Groups that contain nodes of this graph, or nodes of another graph of the same compile that were made from them
// (`origin`), so that a captured graph shows its fusions too.
Result<void> readGroups(const Reader& reader, GraphData& data) {
  std::unordered_map<int64_t, size_t> position;
  for (size_t i = 0; i < data.nodes.size(); ++i) position[data.nodes[i].id] = i;
  std::set<int64_t> groups;
  std::map<int64_t, int64_t> members;
  const auto note = [&](const Statement& row) {
    const auto it = position.find(row.integer("node_id"));
    if (it == position.end()) return;
    GraphNode& node = data.nodes[it->second];
    const int64_t group = row.integer("group_id");
    groups.insert(group);
    ++members[group];
    if (node.group == 0) node.group = group;
  };
  auto direct = reader.each(
      "SELECT m.node_id, m.group_id FROM t_node n JOIN t_fusion_member m ON m.node_id = n.id WHERE n.graph_id = ?",
      {data.row.id}, note);
  if (!direct) return direct;
  if (groups.empty()) {
    auto descended = reader.each(
        "WITH RECURSIVE made(origin, node) AS (SELECT id, id FROM t_node WHERE graph_id = ?1 UNION "
        "SELECT made.origin, o.node_id FROM made CROSS JOIN t_node_origin o ON o.origin_id = made.node) "
        "SELECT made.origin AS node_id, m.group_id FROM made JOIN t_fusion_member m ON m.node_id = made.node",
        {data.row.id}, note);
    if (!descended) return descended;
  }
  auto read = reader.each(
      "SELECT group_id, kernel_id, position, total_ns, launches, bytes_saved, read_bytes, write_bytes, name, kind, reason "
      "FROM fusion_groups WHERE compile_id = ? OR graph_id = ? ORDER BY position",
      {data.row.compile, data.row.id}, [&](const Statement& row) {
        if (!groups.contains(row.integer("group_id"))) return;
        data.groups.push_back({row.integer("group_id"), row.integer("kernel_id"), row.integer("position"), row.integer("total_ns"), row.integer("launches"), row.integer("bytes_saved"),
                               row.integer("read_bytes"), row.integer("write_bytes"), row.string("name"), row.string("kind"), row.string("reason")});
      });
  if (!read) return read;
  std::map<int64_t, int64_t> time;
  for (const auto& group : data.groups) time[group.id] = group.timeNs;
  for (auto& node : data.nodes) {
    if (node.group) node.timeNs = time[node.group] / std::max<int64_t>(1, members[node.group]);
  }
  return {};
}

}  // namespace

Result<std::vector<GraphRow>> graphs(const Reader& reader) {
  std::vector<GraphRow> out;
  auto read = reader.each(std::string(kGraphColumns) + "ORDER BY g.graph_id", {},
                          [&](const Statement& row) { out.push_back(graphOf(row)); });
  if (!read) return tl::unexpected(read.error());
  return out;
}

Result<GraphData> loadGraph(const Reader& reader, int64_t graph) {
  GraphData data;
  auto head = reader.each(std::string(kGraphColumns) + "WHERE g.graph_id = ?", {graph},
                          [&](const Statement& row) { data.row = graphOf(row); });
  if (!head) return tl::unexpected(head.error());
  if (data.row.id == 0) return fail(ErrorCode::NotFound, fmt::format("there is no graph {}", graph), reader.origin());
  auto text = reader.each("SELECT text FROM graphs WHERE graph_id = ?", {graph},
                          [&](const Statement& row) { data.text = row.string("text"); });
  if (!text) return tl::unexpected(text.error());
  if (auto nodes = readNodes(reader, data); !nodes) return tl::unexpected(nodes.error());
  auto edges = reader.each("SELECT src_node_id, dst_node_id, output, arg FROM edges WHERE graph_id = ?", {graph},
                           [&](const Statement& row) {
                             data.edges.push_back({row.integer("src_node_id"), row.integer("dst_node_id"), row.integer("output"), row.integer("arg")});
                           });
  if (!edges) return tl::unexpected(edges.error());
  if (auto groups = readGroups(reader, data); !groups) return tl::unexpected(groups.error());
  if (auto errors = readErrors(reader, data); !errors) return tl::unexpected(errors.error());
  auto symbols = symbolsOf(reader, data.row.compile);
  if (!symbols) return tl::unexpected(symbols.error());
  data.symbols = std::move(*symbols);
  return data;
}

static std::string whyNoGraph(const Reader& reader) {
  const Holdings holdings = holdingsOf(reader);
  if (holdings.has(Holding::Graphs)) return "the session holds no graph: nothing was compiled while it was recorded";
  if (holdings.source == "eager") return "it was recorded without a compiler, so there is no graph; `fusebox run script.py` records the program with one";
  if (holdings.source == "stock") return "PyTorch's own compiler told of no graph while it was recorded; `fusebox run script.py` records the graphs of Fusebox's engine";
  return fmt::format("it is of a format that holds no graphs ({}); `fusebox run script.py` records the program with them, and TORCH_TRACE logs hold them, too", holdings.source);
}

Result<int64_t> findGraph(const Reader& reader, const std::string& stage, int64_t near) {
  auto all = graphs(reader);
  if (!all) return tl::unexpected(all.error());
  const auto at = std::find_if(all->begin(), all->end(), [&](const GraphRow& g) { return g.id == near; });
  const GraphRow* best = nullptr;
  for (const GraphRow& g : *all) {
    if (g.stage != stage) continue;
    if (at != all->end() && g.compile != at->compile) continue;
    const bool better = at != all->end() && best && best->direction != at->direction && g.direction == at->direction;
    if (!best || better) best = &g;
  }
  if (best) return best->id;
  if (all->empty()) return fail(ErrorCode::NotFound, whyNoGraph(reader), reader.origin());
  std::set<std::string> stages;
  for (const GraphRow& g : *all) stages.insert(g.stage);
  std::string list;
  for (const auto& s : stages) list += (list.empty() ? "" : ", ") + s;
  return fail(ErrorCode::NotFound, fmt::format("the session holds no graph of stage {}; it has {}", stage, list), reader.origin());
}

}  // namespace fusebox::query
