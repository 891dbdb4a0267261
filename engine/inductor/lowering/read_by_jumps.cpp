#include "engine/inductor/lowering/read_by_jumps.h"

#include <algorithm>
#include <string_view>

#include "engine/graph/operator_facts.h"

namespace fusebox::inductor {
namespace {

using graph::Node;
using graph::OutputMeta;

/// With or without an overload, their results are floats all the same.
constexpr std::string_view kJumping[] = {"aten::floor", "aten::ceil",       "aten::round", "aten::trunc", "aten::frac",     "aten::fmod", "aten::remainder",
                                         "aten::floor_divide", "aten::sign", "aten::sgn",   "aten::heaviside", "aten::nextafter"};
constexpr std::string_view kMoving[] = {"aten::_to_copy", "aten::clone", "aten::copy", "aten::cat",  "aten::stack", "aten::index",           "aten::index_select",
                                        "aten::gather",   "aten::flip",  "aten::roll", "aten::repeat", "aten::constant_pad_nd"};

template <size_t N>
bool isOneOf(std::string_view op, const std::string_view (&names)[N]) {
  return std::find(std::begin(names), std::end(names), op.substr(0, op.find('.'))) != std::end(names);
}

bool jumps(const Node& node) {
  if (isOneOf(node.op, kJumping) || node.op.ends_with("_mode")) return true;
  return std::any_of(node.outputs.begin(), node.outputs.end(), [](const OutputMeta& made) {
    return made.kind == OutputMeta::Kind::Tensor && (made.tensor.dtype == graph::DType::Bool || graph::isIntegral(made.tensor.dtype));
  });
}

bool handsOn(const Node& node) {
  const graph::OperatorFacts& facts = graph::factsOf(node);
  return facts.pointwise || facts.view || isOneOf(node.op, kMoving);
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
