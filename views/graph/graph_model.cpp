#include "views/graph/graph_model.h"

#include <algorithm>
#include <map>

#include "profiler/query/entries.h"
#include "profiler/query/operator_families.h"
#include "profiler/session/reader.h"

namespace fusebox::views {
namespace {

using session::Statement;

constexpr double kCharWidth = 7.1;
constexpr double kNodeHeight = 40;
constexpr size_t kLongestText = 34;
constexpr int kFoldFrom = 220;
constexpr int kHideInputsFrom = 24;

bool isInput(const query::GraphNode& node) { return node.kind == "placeholder" || node.kind == "constant"; }

std::string cut(std::string text) {
  if (text.size() <= kLongestText) return text;
  size_t end = kLongestText - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // whole letters
  return text.substr(0, end) + "\u2026";
}

std::string titleOf(const query::GraphNode& node) {
  if (node.kind == "call" && !node.op.empty()) return shortOp(node.op);
  return node.name.empty() ? node.kind : node.name;
}

std::string dtypeShort(const std::string& dtype) {
  static const std::map<std::string, std::string> kShort = {
      {"float32", "f32"}, {"float64", "f64"}, {"float16", "f16"}, {"bfloat16", "bf16"}, {"int64", "i64"},
      {"int32", "i32"},   {"int16", "i16"},   {"int8", "i8"},     {"uint8", "u8"},      {"bool", "bool"}};
  const size_t dot = dtype.rfind('.');
  const std::string plain = dot == std::string::npos ? dtype : dtype.substr(dot + 1);
  const auto found = kShort.find(plain);
  return found == kShort.end() ? plain : found->second;
}

/// Extern calls of one operator share their name but not their kernel.
std::string groupPath(const query::GraphGroup& g) {
  std::string path = (g.name.empty() ? "kernel" : g.name) + " #" + std::to_string(g.position);
  std::replace(path.begin(), path.end(), '.', '_');
  return path;
}

std::string foldPath(const GraphPicture& picture, const query::GraphNode& node) {
  switch (picture.folding) {
    case GraphFolding::Nothing: return {};
    case GraphFolding::Module: return node.modulePath;
    case GraphFolding::Fusion: {
      const auto group = picture.groupById.find(node.group);
      if (group == picture.groupById.end()) return {};
      return groupPath(picture.data.groups[static_cast<size_t>(group->second)]);
    }
  }
  return {};
}

void chooseDrawn(GraphPicture& picture, bool showInputs) {
  picture.drawnIndex.assign(picture.data.nodes.size(), -1);
  for (size_t i = 0; i < picture.data.nodes.size(); ++i) {
    if (!showInputs && isInput(picture.data.nodes[i])) continue;
    picture.drawnIndex[i] = static_cast<int>(picture.drawn.size());
    picture.drawn.push_back(static_cast<int>(i));
  }
  picture.inputBadges.assign(picture.drawn.size(), 0);
}

void connect(GraphPicture& picture) {
  for (const auto& edge : picture.data.edges) {
    const auto from = picture.byId.find(edge.from), to = picture.byId.find(edge.to);
    if (from == picture.byId.end() || to == picture.byId.end()) continue;
    const int a = picture.drawnIndex[static_cast<size_t>(from->second)];
    const int b = picture.drawnIndex[static_cast<size_t>(to->second)];
    if (b < 0) continue;
    if (a < 0) {
      ++picture.inputBadges[static_cast<size_t>(b)];
    } else {
      picture.layout.edges.push_back({a, b});
    }
  }
}

}  // namespace

OpFamily opFamily(const std::string& kind, const std::string& op) {
  if (kind == "placeholder" || kind == "constant") return OpFamily::Input;
  if (kind == "output") return OpFamily::Output;
  using query::OperatorFamily;
  switch (query::operatorFamily(shortOp(op))) {
    case OperatorFamily::Matrix: return OpFamily::Matrix;
    case OperatorFamily::Convolution: return OpFamily::Convolution;
    case OperatorFamily::Pointwise: return OpFamily::Pointwise;
    case OperatorFamily::Reduction: return OpFamily::Reduction;
    case OperatorFamily::View: return OpFamily::View;
    case OperatorFamily::Normalisation: return OpFamily::Normalisation;
    case OperatorFamily::Memory: return OpFamily::Memory;
    case OperatorFamily::Other: break;
  }
  return OpFamily::Other;
}

std::string shortOp(const std::string& op) {
  std::string name = op;
  if (const size_t colons = name.rfind("::"); colons != std::string::npos) {
    name = name.substr(colons + 2);
    if (const size_t dot = name.find('.'); dot != std::string::npos && dot > 0) name.resize(dot);
    return name;
  }
  const size_t first = name.find('.');
  if (first == std::string::npos) return name;
  const size_t second = name.find('.', first + 1);
  const std::string space = name.substr(0, first);
  // Python's own functions have no overloads: their name is the last word, behind that of their module.
  if (space == "operator" || space == "_operator" || space == "math" || space == "builtins" || name.starts_with("torch.nn.") ||
      name.starts_with("torch._C.") || name.starts_with("torch.Tensor.")) {
    return name.substr(name.rfind('.') + 1);
  }
  if (name.starts_with("torch.ops.")) return shortOp(name.substr(std::string_view("torch.ops.").size()));
  if (space == "aten" || space == "prims" || space == "prim" || space == "torch" || space == "torchvision") {
    return second == std::string::npos ? name.substr(first + 1) : name.substr(first + 1, second - first - 1);
  }
  return name.substr(0, first);
}

int GraphPicture::drawnOf(int64_t id) const {
  const auto found = byId.find(id);
  return found == byId.end() ? -1 : drawnIndex[static_cast<size_t>(found->second)];
}

Result<std::vector<GraphChoice>> loadGraphChoices(const session::Reader& reader) {
  auto rows = query::graphs(reader);
  if (!rows) return tl::unexpected(rows.error());
  auto entries = query::entryNumbers(reader);
  if (!entries) return tl::unexpected(entries.error());
  std::vector<GraphChoice> choices;
  for (auto& row : *rows) {
    const query::EntryNumber c = (*entries)[row.compile];
    choices.push_back({std::move(row), c.entry, c.isOnly, c.isRest});
  }
  return choices;
}

GraphOptions defaultOptions(const query::GraphData& data) {
  GraphOptions options;
  int inputs = 0;
  bool modules = false;
  for (const auto& node : data.nodes) {
    inputs += isInput(node) ? 1 : 0;
    modules = modules || !node.modulePath.empty();
  }
  options.showInputs = inputs < kHideInputsFrom;
  if (static_cast<int>(data.nodes.size()) - (options.showInputs ? 0 : inputs) >= kFoldFrom) {
    options.folding = modules ? GraphFolding::Module : GraphFolding::Fusion;
  }
  if (data.row.stage == "post_fusion" && !data.groups.empty()) options.folding = GraphFolding::Fusion;
  return options;
}

std::shared_ptr<const GraphPicture> makePicture(query::GraphData data, const GraphOptions& options) {
  auto picture = std::make_shared<GraphPicture>();
  picture->data = std::move(data);
  picture->folding = options.folding;
  for (size_t i = 0; i < picture->data.nodes.size(); ++i) {
    picture->byId[picture->data.nodes[i].id] = static_cast<int>(i);
    picture->slowestNs = std::max(picture->slowestNs, picture->data.nodes[i].timeNs);
  }
  for (size_t g = 0; g < picture->data.groups.size(); ++g) {
    picture->groupById[picture->data.groups[g].id] = static_cast<int>(g);
    if (options.folding == GraphFolding::Fusion) picture->kernelOfFold[groupPath(picture->data.groups[g])] = picture->data.groups[g].name;
  }
  chooseDrawn(*picture, options.showInputs);
  std::vector<std::string> paths;
  for (int index : picture->drawn) {
    const auto& node = picture->data.nodes[static_cast<size_t>(index)];
    std::string title = cut(titleOf(node));
    std::string subtitle = cut(dtypeShort(node.dtype) + node.shape);
    const double chars = static_cast<double>(std::max(title.size() + 3, subtitle.size()));
    picture->layout.nodes.push_back({std::max(86.0, chars * kCharWidth + 20), kNodeHeight});
    picture->titles.push_back(std::move(title));
    picture->subtitles.push_back(std::move(subtitle));
    paths.push_back(foldPath(*picture, node));
  }
  connect(*picture);
  picture->tree = buildGroupTree(paths);
  return picture;
}

Result<GraphTarget> graphTarget(const session::Reader& reader, const Location& location) {
  GraphTarget target;
  const char* sql = nullptr;
  switch (location.kind) {
    case ObjectKind::Graph:
      target.graph = location.id;
      return target;
    case ObjectKind::Node: sql = "SELECT graph_id, node_id FROM nodes WHERE node_id = ?"; break;
    case ObjectKind::Compile: sql = "SELECT graph_id, 0 AS node_id FROM graphs WHERE compile_id = ? LIMIT 1"; break;
    case ObjectKind::Group:
      sql = "SELECT n.graph_id, n.node_id FROM fusion_members m JOIN nodes n ON n.node_id = m.node_id "
            "WHERE m.group_id = ? ORDER BY m.position LIMIT 1";
      break;
    case ObjectKind::Kernel:
      sql = "SELECT n.graph_id, n.node_id FROM fusion_groups g JOIN fusion_members m ON m.group_id = g.group_id "
            "JOIN nodes n ON n.node_id = m.node_id WHERE g.kernel_id = ? ORDER BY m.position LIMIT 1";
      break;
    default: return target;
  }
  const auto outcome = reader.each(sql, {location.id}, [&](const Statement& s) {
    target = {s.integer("graph_id"), s.integer("node_id")};
  });
  if (!outcome) return tl::unexpected(outcome.error());
  return target;
}

Result<NodeRelations> loadRelations(const session::Reader& reader, int64_t node) {
  NodeRelations relations;
  constexpr const char* kOrigins = R"(SELECT n.node_id, n.name, n.op, g.stage FROM node_origins o
    JOIN nodes n ON n.node_id = o.origin_node_id JOIN graphs g ON g.graph_id = n.graph_id WHERE o.node_id = ? LIMIT 60)";
  constexpr const char* kLater = R"(SELECT n.node_id, n.name, n.op, g.stage FROM node_origins o
    JOIN nodes n ON n.node_id = o.node_id JOIN graphs g ON g.graph_id = n.graph_id WHERE o.origin_node_id = ? LIMIT 60)";
  constexpr const char* kDecided = R"(SELECT fused, a, b, reason, detail, CASE WHEN a_node_id = ?1 THEN b_node_id ELSE
    a_node_id END AS other_node FROM fusion_decisions WHERE graph_id = (SELECT graph_id FROM t_node WHERE id = ?1) AND (a_node_id = ?1 OR b_node_id = ?1)
    ORDER BY position LIMIT 60)";
  const auto other = [](const Statement& s) {
    return NodeFact{s.string("stage"), s.string("name") + (s.text("op").empty() ? "" : "  " + shortOp(s.string("op"))),
                    Location::of(ObjectKind::Node, s.integer("node_id"))};
  };
  auto outcome = reader.each(kOrigins, {node}, [&](const Statement& s) { relations.origins.push_back(other(s)); });
  if (outcome) outcome = reader.each(kLater, {node}, [&](const Statement& s) { relations.users.push_back(other(s)); });
  if (outcome) {
    outcome = reader.each(kDecided, {node}, [&](const Statement& s) {
      relations.decisions.push_back({s.integer("fused") != 0 ? "fused" : "refused",
                                     s.string("a") + " + " + s.string("b") + ": " + s.string("reason"),
                                     Location::of(ObjectKind::Node, s.integer("other_node"))});
    });
  }
  if (outcome) {
    outcome = reader.each("SELECT stack FROM nodes WHERE node_id = ?", {node},
                          [&](const Statement& s) { relations.stack = s.string("stack"); });
  }
  if (!outcome) return tl::unexpected(outcome.error());
  return relations;
}

}  // namespace fusebox::views
