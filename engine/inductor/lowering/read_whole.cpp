#include "engine/inductor/lowering/read_whole.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "engine/graph/operator_facts.h"
#include "engine/inductor/passes/joint_graph.h"

namespace fusebox::inductor {
namespace {

using graph::Node;
using graph::NodeKind;
using graph::ValueRef;

bool beginsWithOneOf(std::string_view name, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// Views of every element.
bool isWholeView(std::string_view op) {
  static const std::unordered_set<std::string_view> kNames = {
      "aten::view",    "aten::_unsafe_view", "aten::reshape", "aten::_reshape_alias", "aten::unsqueeze", "aten::squeeze", "aten::squeeze.dim",
      "aten::squeeze.dims", "aten::alias", "aten::detach", "aten::expand", "aten::permute", "aten::transpose.int", "aten::t", "aten::view.dtype"};
  return kNames.contains(op);
}

}  // namespace

bool readsAtPlaces(const Node& node) {
  const std::string_view op = node.op;
  return op == "aten::index.Tensor" || op == "aten::_unsafe_index.Tensor" || op == "aten::embedding" ||
         beginsWithOneOf(op, {"aten::index_select", "aten::gather", "aten::take"});
}

namespace {

/// Whether a call may leave out elements of its argument `position`.
bool readsPart(const Node& node, size_t position) {
  if (node.kind != NodeKind::Call || graph::isOrdered(node)) return false;
  const std::string_view op = node.op;
  if (op.find("_like") != std::string_view::npos || op.starts_with("aten::new_")) return true;
  if (position > 0) return false;
  if (graph::factsOf(node).view) return !isWholeView(op);
  return op.find("_scatter") != std::string_view::npos || op.find("pool") != std::string_view::npos || op.find("pad") != std::string_view::npos ||
         readsAtPlaces(node) ||
         beginsWithOneOf(op, {"aten::index", "aten::_unsafe_index", "aten::embedding", "aten::scatter", "aten::put", "aten::upsample", "aten::_upsample", "aten::grid_sampler",
                              "aten::im2col", "aten::convolution", "aten::tril", "aten::triu", "aten::split", "aten::unsafe_split"});
}

}  // namespace

std::vector<char> readWhole(const graph::Graph& graph) {
  const auto& nodes = graph.nodes();
  std::vector<char> whole(nodes.size(), 0);
  for (size_t i = nodes.size(); i-- > 0;) {
    const Node& node = nodes[i];
    const bool isCarriedOut = node.kind == NodeKind::Output || (node.kind == NodeKind::Call && graph::isKept(node));
    if (!isCarriedOut && !whole[i]) continue;
    for (size_t position = 0; position < node.args.size(); ++position)
      if (!readsPart(node, position))
        graph::Graph::forEachValue(graph::ArgumentList{node.args[position]}, [&](ValueRef v) { whole[static_cast<size_t>(v.node)] = 1; });
  }
  return whole;
}

std::vector<char> neededInMemory(const graph::Graph& graph) {
  const auto& nodes = graph.nodes();
  std::vector<char> needed(nodes.size(), 0);
  for (size_t i = nodes.size(); i-- > 0;) {
    const Node& node = nodes[i];
    const bool isConvolution = beginsWithOneOf(node.op, {"aten::convolution"});  // which has operands laid as it likes
    const bool isCall = node.kind == NodeKind::Call && !graph::factsOf(node).view && !hasCode(node.op) && !isConvolution;
    const bool isNeededView = node.kind == NodeKind::Call && needed[i] && isWholeView(node.op);
    if (node.kind == NodeKind::Output || isCall || isNeededView)
      graph::Graph::forEachValue(node.args, [&](ValueRef v) { needed[static_cast<size_t>(v.node)] = 1; });
  }
  return needed;
}

}  // namespace fusebox::inductor
