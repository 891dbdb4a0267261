#include "engine/aot/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "engine/aot/graph_extract.h"
#include "engine/aot/min_cut.h"
#include "engine/aot/operator_kind.h"
#include "engine/graph/operator_facts.h"

namespace fusebox::aot {
namespace {

using graph::Node;
using graph::NodeKind;
using graph::ValueRef;

bool keepForward(const JointGraph& joint, const Node& node) {
  return (!node.isBackward && graph::isKept(node)) || std::binary_search(joint.kept.begin(), joint.kept.end(), node.id);
}
bool keepBackward(const Node& node) { return node.isBackward && graph::isOrdered(node); }

std::vector<Boundary> inputBoundaries(const JointGraph& joint) {
  std::vector<Boundary> made;
  for (auto id : joint.inputs) made.push_back({{id, 0}, joint.graph->node(id).name});
  return made;
}

std::vector<std::optional<ValueRef>> optionals(const std::vector<ValueRef>& values) { return {values.begin(), values.end()}; }

/// At capture, where sizes are symbolic.
int64_t bytesOf(const graph::OutputMeta& meta, const JointGraph& joint) {
  const auto numel = meta.tensor.numel();
  auto elements = joint.shapes ? joint.shapes->hint(numel) : numel.maybeConstant().value_or(1);
  return std::max<int64_t>(1, elements * graph::elementSize(meta.tensor.dtype));
}

/// Whether a generated loop makes the value, or nobody does.
bool isInLoop(const JointGraph& joint, const Node& node) {
  if (node.kind != NodeKind::Call || kindOf(node.op).isView) return true;
  return joint.isGenerated && joint.isGenerated(node);
}

/// Which values of the forward graph lie in memory whatever is kept: what operators outside of generated loops make or read, and what is
/// read again behind such an operator, in another loop than the one that made it.
class InMemory {
 public:
  explicit InMemory(const JointGraph& joint) : joint_(joint), graph_(*joint.graph), yes_(graph_.nodes().size()) {
    const auto& nodes = graph_.nodes();
    std::vector<bool> live(nodes.size());
    for (auto& r : joint.results) live[static_cast<size_t>(r.node)] = true;
    std::vector<int> stage(nodes.size());  // operators outside of loops on the longest way to here
    for (auto& node : nodes) {
      if (node.isBackward) continue;
      auto& mine = stage[static_cast<size_t>(node.id)];
      graph::Graph::forEachValue(node.args, [&](ValueRef v) { mine = std::max(mine, stage[static_cast<size_t>(v.node)]); });
      mine += !isInLoop(joint_, node);
    }
    for (size_t i = nodes.size(); i-- > 0;) {
      auto& node = nodes[i];
      if (node.isBackward || node.kind != NodeKind::Call || !(live[i] || keepForward(joint_, node))) continue;
      yes_[i] = yes_[i] || !isInLoop(joint_, node);
      const bool throughView = yes_[i] && kindOf(node.op).isView;
      graph::Graph::forEachValue(node.args, [&](ValueRef v) {
        live[static_cast<size_t>(v.node)] = true;
        if (throughView || stage[i] > stage[static_cast<size_t>(v.node)]) yes_[static_cast<size_t>(v.node)] = true;
      });
    }
  }
  bool operator()(ValueRef v) const { return yes_[static_cast<size_t>(v.node)]; }

 private:
  const JointGraph& joint_;
  const graph::Graph& graph_;
  std::vector<bool> yes_;
};

/// Chooses what to keep. Every forward value is split into an entry and an exit joined by an edge as dear as keeping it; a value that
/// cannot be computed again hangs on the source, a value that backward reads hangs on the sink. Some values are written to memory where
/// they are computed again: what a product of backward reads (a weight in another type), and what is made of several values and read
/// here and there (the sums of residual connections). An edge from the source is as dear as that.
class SavedChoice {
 public:
  explicit SavedChoice(const JointGraph& joint) : joint_(joint), graph_(*joint.graph), inMemory_(joint) {
    for (auto r : joint.results) results_.insert(r);
    findBackwardNodes();
    noteReadRoots();
    gather();
    findSpans();
  }

  std::vector<ValueRef> choose() {
    if (order_.empty()) return {};
    if (joint_.keepsWhatIsRead) return whatIsRead();
    int source = 2 * static_cast<int>(order_.size()), sink = source + 1;
    MinCut cut(sink + 1);
    for (size_t i = 0; i < order_.size(); ++i) {
      auto v = order_[i];
      int entry = 2 * static_cast<int>(i), leave = entry + 1;
      cut.addEdge(entry, leave, cost(v));
      if (readByBackward_.count(v)) cut.addEdge(leave, sink, MinCut::kInfinite);
      if (!recomputable(v)) {
        cut.addEdge(source, entry, MinCut::kInfinite);
        continue;
      }
      if (isWrittenAgain(v)) cut.addEdge(source, entry, bytesOf(graph_.meta(v), joint_) * 3 / 2);  // written, and read: half as dear as kept
      graph::Graph::forEachValue(graph_.node(v.node).args, [&](ValueRef from) {
        if (auto it = position_.find(from); it != position_.end())
          cut.addEdge(2 * it->second + 1, entry, MinCut::kInfinite);
      });
    }
    const auto side = cut.sourceSide(source, sink);
    std::vector<ValueRef> saved;
    for (size_t i = 0; i < order_.size(); ++i)
      if (side[2 * i] && !side[2 * i + 1]) saved.push_back(order_[i]);
    std::sort(saved.begin(), saved.end());
    return saved;
  }

  /// Whether an input or a result is kept as a copy. Where eager keeps what is computed from it, the program may write to it before backward: to a
  /// counter, a schedule or a running mean, which are small. A large one is kept as it is, and such a write is an error.
  bool isCopied(ValueRef v) const {
    constexpr int64_t kSmall = 4096;
    const bool isSeen = graph_.node(v.node).kind == NodeKind::Placeholder || results_.count(v);
    return isSeen && !readRoots_.count(v) && bytesOf(graph_.meta(v), joint_) <= kSmall;
  }

 private:
  /// What views are of in their place.
  std::vector<ValueRef> whatIsRead() const {
    std::set<ValueRef> kept;
    std::vector<ValueRef> work(readByBackward_.begin(), readByBackward_.end());
    while (!work.empty()) {
      const ValueRef v = work.back();
      work.pop_back();
      const Node& node = graph_.node(v.node);
      if (isFree(v)) continue;
      if (!recomputable(v) || !kindOf(node.op).isView) kept.insert(v);
      else graph::Graph::forEachValue(node.args, [&](ValueRef from) { work.push_back(from); });
    }
    return {kept.begin(), kept.end()};
  }

  bool isFree(ValueRef v) const {  // in both graphs without being kept
    auto& node = graph_.node(v.node);
    return node.kind == NodeKind::Constant || (node.kind == NodeKind::Call && kindOf(node.op).isFactory);
  }
  bool recomputable(ValueRef v) const {
    auto& node = graph_.node(v.node);
    if (node.kind != NodeKind::Call || graph::isOrdered(node)) return false;
    auto& kind = kindOf(node.op);
    if (kind.isMoved) return !inMemory_(v) && isInLoop(joint_, node);  // then it is only another index in the loops that read it
    const bool isCheap = kind.isCheap || (kind.isHeavy && isInLoop(joint_, node) && graph_.meta(v).tensor.device.kind == graph::DeviceKind::Cuda);
    return kind.isView || (isCheap && !crossesDevices(v));
  }
  /// Whether it is written to memory where it is computed again. What was only widened is multiplied as it was.
  bool isWrittenAgain(ValueRef v) const {
    const Node& node = graph_.node(v.node);
    if (const Span& span = spans_[static_cast<size_t>(v.node)]; span.first < span.last) {
      int large = 0;
      graph::Graph::forEachValue(node.args, [&](ValueRef from) { large += 2 * bytesOf(graph_.meta(from), joint_) >= bytesOf(graph_.meta(v), joint_); });
      if (large > 1) return true;
    }
    if (!writtenAgain_.count(v)) return false;
    const auto* source = node.op == "aten::_to_copy" ? node.args[0].as<ValueRef>() : nullptr;
    return !source || graph::elementSize(graph_.meta(*source).tensor.dtype) >= graph::elementSize(graph_.meta(v).tensor.dtype);
  }
  /// A copy between devices costs more than what it is kept in, and waits for both.
  bool crossesDevices(ValueRef v) const {
    auto& made = graph_.meta(v).tensor;
    bool crosses = false;
    graph::Graph::forEachValue(graph_.node(v.node).args, [&](ValueRef read) {
      auto& meta = graph_.meta(read);
      crosses |= meta.kind == graph::OutputMeta::Kind::Tensor && !meta.tensor.sizes.empty() && !(meta.tensor.device == made.device);
    });
    return crosses;
  }
  // The bytes that are kept, those that backward reads, and those that forward writes for it alone. A view is never kept: its base is,
  // so that version checks see writes through any alias.
  int64_t cost(ValueRef v) const {
    auto& node = graph_.node(v.node);
    if (node.kind == NodeKind::Call && kindOf(node.op).isView && recomputable(v)) return MinCut::kInfinite;
    auto bytes = bytesOf(graph_.meta(v), joint_);
    const bool aliveAnyway = node.kind == NodeKind::Placeholder ? !isCopied(v) : results_.count(v) && readRoots_.count(v);
    if (aliveAnyway) return 1 + bytes / 2;
    return bytes * (inMemory_(v) ? 2 : 3);
  }

  void noteReadRoots() {
    for (auto v : readByBackward_) readRoots_.insert(storageRoot(graph_, v));
  }

  // Backward nodes that lead to a gradient.
  void findBackwardNodes() {
    needed_.assign(graph_.nodes().size(), false);
    for (auto& g : joint_.gradients)
      if (g) visitBackwardRead(*g);
    for (size_t i = graph_.nodes().size(); i-- > 0;) {
      auto& node = graph_.nodes()[i];
      if (node.kind == NodeKind::Call && keepBackward(node)) needed_[i] = true;
      if (!needed_[i]) continue;
      const bool readsMemory = joint_.isGenerated && !isInLoop(joint_, node);
      graph::Graph::forEachValue(node.args, [&](ValueRef v) {
        visitBackwardRead(v);
        if (readsMemory) writtenAgain_.insert(storageRoot(graph_, v));
      });
    }
  }
  void visitBackwardRead(ValueRef v) {
    auto& node = graph_.node(v.node);
    if (node.isBackward)
      needed_[static_cast<size_t>(v.node)] = true;
    else if (!isFree(v))
      readByBackward_.insert(v);
  }
  // Forward values from which the read ones could be computed.
  void gather() {
    std::vector<ValueRef> work(readByBackward_.begin(), readByBackward_.end());
    while (!work.empty()) {
      auto v = work.back();
      work.pop_back();
      if (!position_.try_emplace(v, static_cast<int>(order_.size())).second) continue;
      order_.push_back(v);
      if (recomputable(v))
        graph::Graph::forEachValue(graph_.node(v.node).args, [&](ValueRef from) {
          if (!isFree(from)) work.push_back(from);
        });
    }
  }

  /// Between which operators of backward outside of loops a forward value is read, were nothing kept.
  struct Span {
    int first = std::numeric_limits<int>::max(), last = -1;
    void widen(const Span& by) {
      first = std::min(first, by.first);
      last = std::max(last, by.last);
    }
  };
  void findSpans() {
    const auto& nodes = graph_.nodes();
    spans_.resize(nodes.size());
    std::vector<int> stage(nodes.size());  // operators outside of loops on the longest way to here
    for (auto& node : nodes) {
      if (!node.isBackward) continue;
      auto& mine = stage[static_cast<size_t>(node.id)];
      graph::Graph::forEachValue(node.args, [&](ValueRef v) { mine = std::max(mine, stage[static_cast<size_t>(v.node)]); });
      mine += !isInLoop(joint_, node);
    }
    for (size_t i = nodes.size(); i-- > 0;) {
      auto& node = nodes[i];
      const bool reads = node.isBackward ? needed_[i] : position_.count({node.id, 0}) && recomputable({node.id, 0});
      if (!reads) continue;
      const Span own = node.isBackward ? Span{stage[i], stage[i]} : spans_[i];
      graph::Graph::forEachValue(node.args, [&](ValueRef v) { spans_[static_cast<size_t>(v.node)].widen(own); });
    }
  }

  const JointGraph& joint_;
  const graph::Graph& graph_;
  const InMemory inMemory_;
  std::vector<Span> spans_;  ///< by node
  std::set<ValueRef> results_;
  std::vector<bool> needed_;
  std::set<ValueRef> readByBackward_;
  std::set<ValueRef> writtenAgain_;  ///< what backward has in memory, even if it computes it again
  std::set<ValueRef> readRoots_;  ///< what these are, or are views of: eager's formulas read it
  std::map<ValueRef, int> position_;
  std::vector<ValueRef> order_;
};

}  // namespace

graph::Graph extractForward(const JointGraph& joint) {
  return extractGraph(*joint.graph, inputBoundaries(joint), optionals(joint.results), [&](const Node& node) { return keepForward(joint, node); });
}

Partition partition(const JointGraph& joint) {
  Partition made;
  SavedChoice choice(joint);
  const auto savedValues = choice.choose();
  auto results = joint.results;
  std::map<graph::NodeId, int32_t> inputPosition;
  for (size_t i = 0; i < joint.inputs.size(); ++i) inputPosition[joint.inputs[i]] = static_cast<int32_t>(i);

  std::vector<Boundary> boundaries;
  std::vector<size_t> copies;  // results that forward must return a copy of
  for (auto v : savedValues) {
    SavedValue saved;
    saved.joint = v;
    auto input = inputPosition.find(v.node);
    saved.isInput = input != inputPosition.end() && !joint.inputIsWritten[static_cast<size_t>(input->second)] && !choice.isCopied(v);
    if (saved.isInput) {
      saved.index = input->second;
    } else {
      auto known = std::find(results.begin(), results.end(), v);
      saved.isCopy = input != inputPosition.end() || choice.isCopied(v);
      saved.index = static_cast<int32_t>(known == results.end() || saved.isCopy ? results.size() : known - results.begin());
      if (saved.index == static_cast<int32_t>(results.size())) {
        if (saved.isCopy) copies.push_back(results.size());
        results.push_back(v);
      }
    }
    made.saved.push_back(saved);
    boundaries.push_back({v, "saved_" + joint.graph->node(v.node).name, saved.isCopy});
  }
  for (size_t i = 0; i < joint.tangents.size(); ++i)
    boundaries.push_back({{joint.tangents[i], 0}, fmt::format("tangent_{}", i)});

  made.forward = extractGraph(*joint.graph, inputBoundaries(joint), optionals(results), [&](const Node& node) { return keepForward(joint, node); }, copies);
  made.backward = extractGraph(*joint.graph, boundaries, joint.gradients, keepBackward);
  made.forwardResults = static_cast<int32_t>(results.size());
  return made;
}

}  // namespace fusebox::aot
