#include "engine/inductor/lowering/lowering.h"
#include "engine/inductor/passes/joint_graph.h"

/// Where an intermediate tensor lies otherwise than in eager because of who reads it.
namespace fusebox::inductor {
namespace {

using graph::Node;
using graph::OutputMeta;
using graph::TensorMeta;

constexpr int kFarthest = 3;         ///< operators between a tensor and the reduction that decides
constexpr int64_t kShortestRow = 16;

/// Whether a call takes rows together: of its operand's dimensions the last is gone or 1, and no other.
bool reducesRows(const IndexList& operand, const Node& node) {
  if (node.outputs.empty() || node.outputs[0].kind != OutputMeta::Kind::Tensor) return false;
  IndexList left(operand.begin(), operand.end() - 1);
  const IndexList& made = node.outputs[0].tensor.sizes;
  if (made == left) return true;
  left.emplace_back(1);
  return made == left;
}

}  // namespace

/// Votes of the readers of `node`, through what keeps its sizes; nullopt where one of them, a call or the program, needs the layout of the trace.
std::optional<int> Lowering::readersOfRows(const Node& node, const IndexList& sizes, int distance) const {
  int votes = 0;
  for (graph::NodeId id : users_[static_cast<size_t>(node.id)]) {
    const Node& user = graph_.node(id);
    if (user.kind == graph::NodeKind::Output && !isSeen({node.id, 0})) continue;  // kept for backward, which takes it as it lies
    if (user.kind != graph::NodeKind::Call || !hasCode(user.op)) return std::nullopt;
    if (reducesRows(sizes, user)) {
      ++votes;
      continue;
    }
    const bool isSame = user.outputs.size() == 1 && user.outputs[0].kind == OutputMeta::Kind::Tensor && user.outputs[0].tensor.sizes == sizes;
    if (!isSame || distance >= kFarthest) continue;
    const auto further = readersOfRows(user, sizes, distance + 1);
    if (!further) return std::nullopt;
    votes += *further;
  }
  return votes;
}

/// Eager's results of elementwise operators lie as their first operand does: behind a convolution whose channels became the last dimension, a
/// transformer's whole residual stream has its rows scattered over memory. What rows are reduced from is better row-major; nobody sees it.
bool Lowering::liesBetterInRows(const TensorMeta& meta) const {
  if (!current_ || meta.sizes.size() < 2 || meta.sizes.size() > 3 || current_->outputs.size() != 1) return false;
  const OutputMeta& traced = current_->outputs[0];
  if (traced.kind != OutputMeta::Kind::Tensor || traced.tensor.sizes != meta.sizes || traced.tensor.strides != meta.strides) return false;
  if (meta.isContiguous() || meta.strides.back() == SymExpr(1) || graph::hint(meta.sizes.back()) < kShortestRow) return false;
  return readersOfRows(*current_, meta.sizes, 0).value_or(0) > 0;
}

}  // namespace fusebox::inductor
