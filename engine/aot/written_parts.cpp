#include "engine/aot/written_parts.h"

#include <algorithm>
#include <map>

#include "engine/aot/operator_kind.h"

namespace fusebox::aot {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueRef;

const std::map<std::string, std::string, std::less<>> kScatterOf = {
    {"aten::slice.Tensor", "aten::slice_scatter"}, {"aten::select.int", "aten::select_scatter"}, {"aten::diagonal", "aten::diagonal_scatter"}};

constexpr size_t kSource = 1;     // what scattering operators write
constexpr NodeId kFurthest = 16;  // nodes before the copy, among which its part was taken

bool scatters(const Node& n) {
  return n.op == "aten::as_strided_scatter" ||
         std::any_of(kScatterOf.begin(), kScatterOf.end(), [&](const auto& entry) { return entry.second == n.op; });
}

const Node* argument(const Graph& graph, const Node& n, size_t i, std::string_view op) {
  const auto* v = n.args.size() > i ? n.args[i].as<ValueRef>() : nullptr;
  return v && graph.node(v->node).op == op ? &graph.node(v->node) : nullptr;
}

/// Whether arguments size, stride and storage_offset from `first` on are this tensor's.
bool describe(const Node& n, size_t first, const graph::TensorMeta& t) {
  const auto number = [](const graph::Argument& a) -> std::optional<graph::SymExpr> {
    if (const auto* known = a.as<int64_t>()) return graph::SymExpr(*known);
    if (const auto* symbolic = a.as<graph::SymExpr>()) return *symbolic;
    return std::nullopt;
  };
  const auto isList = [&](const graph::Argument& a, const std::vector<graph::SymExpr>& wanted) {
    const auto* list = a.as<graph::ArgumentList>();
    return list && list->size() == wanted.size() && std::equal(list->begin(), list->end(), wanted.begin(), [&](const auto& e, const auto& w) { return number(e) == w; });
  };
  return n.args.size() > first + 2 && isList(n.args[first], t.sizes) && isList(n.args[first + 1], t.strides) && number(n.args[first + 2]) == t.storageOffset;
}

/// The view that the part which `scatter` writes was taken by, of a tensor that is as `made` and lies in the memory that was copied.
const Node* partOf(const Graph& graph, const Node& scatter, const Node& copy, const Node& made) {
  const ValueRef memory = storageRoot(graph, *copy.args[0].as<ValueRef>());
  for (NodeId id = copy.id; id-- > std::max<NodeId>(0, copy.id - kFurthest);) {
    const Node& part = graph.node(id);
    if (!kScatterOf.contains(part.op) || !describe(scatter, 2, part.outputs[0].tensor)) continue;
    const auto* whole = part.args[0].as<ValueRef>();
    if (whole && describe(made, 1, graph.meta(*whole).tensor) && storageRoot(graph, *whole) == memory) return &part;
  }
  return nullptr;
}

}  // namespace

void keepToWrittenParts(Graph& graph, const std::vector<ValueRef>& seen) {
  const auto isWriting = [](const Node& n) { return n.op == "aten::as_strided_scatter"; };
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), isWriting)) return;
  std::vector<bool> isLookedAt(graph.nodes().size());
  for (ValueRef v : seen)
    if (v.node >= 0) isLookedAt[static_cast<size_t>(v.node)] = true;
  for (const Node& n : graph.nodes()) {
    const ValueRef* source = scatters(n) ? n.args[kSource].as<ValueRef>() : nullptr;
    int uses = 0;
    Graph::forEachValue(n.args, [&](ValueRef v) {
      if (!source || v.node != source->node || ++uses > 1) isLookedAt[static_cast<size_t>(v.node)] = true;
    });
  }
  for (const Node& n : graph.nodes()) {
    if (n.op != "aten::as_strided" || isLookedAt[static_cast<size_t>(n.id)]) continue;
    const Node* scatter = argument(graph, n, 0, "aten::as_strided_scatter");
    const Node* copy = scatter ? argument(graph, *scatter, 0, "aten::clone") : nullptr;
    const Node* part = copy && argument(graph, *copy, 0, "aten::as_strided") ? partOf(graph, *scatter, *copy, n) : nullptr;
    if (!part) continue;
    graph::ArgumentList args = part->args;
    args.insert(args.begin() + kSource, scatter->args[kSource]);
    Node& written = graph.node(n.id);
    written.op = kScatterOf.at(part->op);
    written.args = std::move(args);
    graph::TensorMeta& made = written.outputs[0].tensor;
    made.strides = graph::contiguousStrides(made.sizes);
    made.storageOffset = 0;
  }
}

}  // namespace fusebox::aot
