#include "engine/inductor/lowering/read_by_jumps.h"

#include <algorithm>

#include "engine/graph/operator_facts.h"

namespace fusebox::inductor {
namespace {

using graph::Node;
using graph::OutputMeta;

bool jumps(const Node& node) {
  if (graph::factsOf(node).jumps) return true;
  return std::any_of(node.outputs.begin(), node.outputs.end(), [](const OutputMeta& made) {
    return made.kind == OutputMeta::Kind::Tensor && (made.tensor.dtype == graph::DType::Bool || graph::isIntegral(made.tensor.dtype));
  });
}

bool handsOn(const Node& node) {
  const graph::OperatorFacts& facts = graph::factsOf(node);
  return facts.pointwise || facts.view || facts.moves;
}

}  // namespace

std::vector<char> readByJumps(const graph::Graph& graph, const std::vector<std::vector<graph::NodeId>>& users) {
  const auto& nodes = graph.nodes();
  std::vector<char> made(nodes.size());
  for (size_t i = nodes.size(); i-- > 0;)
    made[i] = std::any_of(users[i].begin(), users[i].end(), [&](graph::NodeId user) {
      const Node& reader = nodes[static_cast<size_t>(user)];
      return reader.kind == graph::NodeKind::Call && (jumps(reader) || (made[static_cast<size_t>(user)] && handsOn(reader)));
    });
  return made;
}

}  // namespace fusebox::inductor
