#include "engine/inductor/schedule/dependency_graph.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

namespace fusebox::inductor {
namespace {

/// The world outside as a value that effects read and write one after another, draws of random numbers too; what may raise reads it.
class EffectChain {
 public:
  template <class Edge>
  void add(const LoweredGraph& lowered, const ScheduleNode& node, Edge&& edge) {
    using Order = Operation::Order;
    const Order order = lowered.operations[static_cast<size_t>(node.firstOperation())].order;
    if (order == Order::Effect) {
      edge(lastDraw_, node.id);
      for (int32_t earlier : mayRaise_) edge(earlier, node.id);
      mayRaise_.clear();
      lastDraw_ = lastEffect_ = node.id;
      return;
    }
    if (order == Order::Draws) edge(std::exchange(lastDraw_, node.id), node.id);
    if (!node.isExtern && !hasChecks(node.kernel)) return;
    edge(lastEffect_, node.id);
    mayRaise_.push_back(node.id);
  }

 private:
  int32_t lastDraw_ = -1, lastEffect_ = -1;
  std::vector<int32_t> mayRaise_;  ///< since the last effect
};

}  // namespace

DependencyGraph::DependencyGraph(const LoweredGraph& lowered, const std::vector<ScheduleNode>& nodes)
    : parent_(nodes.size()), successors_(nodes.size()), position_(nodes.size()), sequence_(nodes.size()), mark_(nodes.size(), 0) {
  std::iota(parent_.begin(), parent_.end(), 0);
  std::iota(position_.begin(), position_.end(), 0);
  std::iota(sequence_.begin(), sequence_.end(), 0);
  struct Last {
    std::vector<int32_t> readers;  ///< since the last write
    int32_t writer = -1;
  };
  std::vector<Last> last(lowered.buffers.size());
  auto edge = [&](int32_t from, int32_t to) {
    if (from >= 0 && from != to) successors_[static_cast<size_t>(from)].push_back(to);
  };
  EffectChain chain;
  for (const ScheduleNode& node : nodes) {
    if (node.isDead) {
      sequence_[static_cast<size_t>(node.id)] = -1;
      continue;
    }
    for (BufferId id : node.reads) edge(last[static_cast<size_t>(id)].writer, node.id);
    for (BufferId id : node.writes) {
      Last& state = last[static_cast<size_t>(id)];
      edge(state.writer, node.id);
      for (int32_t reader : state.readers) edge(reader, node.id);
      state.readers.clear();
      state.writer = node.id;
    }
    for (BufferId id : node.reads)
      if (last[static_cast<size_t>(id)].writer != node.id) last[static_cast<size_t>(id)].readers.push_back(node.id);
    chain.add(lowered, node, edge);
  }
}

int32_t DependencyGraph::find(int32_t id) const {
  int32_t root = id;
  while (parent_[static_cast<size_t>(root)] != root) root = parent_[static_cast<size_t>(root)];
  while (parent_[static_cast<size_t>(id)] != root) id = std::exchange(parent_[static_cast<size_t>(id)], root);
  return root;
}

int32_t DependencyGraph::distance(int32_t a, int32_t b) const { return std::abs(position(a) - position(b)); }

std::vector<int32_t> DependencyGraph::between(int32_t a, int32_t b, int32_t limit, bool* reachesB) {
  std::vector<int32_t> found, work{a};
  ++stamp_;
  mark_[static_cast<size_t>(a)] = stamp_;
  while (!work.empty()) {
    const int32_t node = work.back();
    work.pop_back();
    for (int32_t& next : successors(node)) {
      next = find(next);
      if (next == b && node != a) *reachesB = true;
      if (next == b || mark_[static_cast<size_t>(next)] == stamp_ || position(next) >= limit) continue;
      mark_[static_cast<size_t>(next)] = stamp_;
      found.push_back(next);
      work.push_back(next);
    }
  }
  return found;
}

bool DependencyGraph::merge(int32_t a, int32_t b) {
  const int32_t first = position(a), last = position(b);
  bool reachesB = false;
  std::vector<int32_t> after = between(a, b, last, &reachesB);
  if (reachesB) return false;
  // New order of the stretch: what does not depend on a, then the merged node, then what does.
  std::vector<int32_t> before;
  for (int32_t p = first + 1; p < last; ++p) {
    const int32_t node = sequence_[static_cast<size_t>(p)];
    if (node >= 0 && mark_[static_cast<size_t>(node)] != stamp_) before.push_back(node);
  }
  std::sort(after.begin(), after.end(), [&](int32_t x, int32_t y) { return position(x) < position(y); });
  int32_t p = first;
  auto put = [&](int32_t node) {
    sequence_[static_cast<size_t>(p)] = node;
    if (node >= 0) position_[static_cast<size_t>(node)] = p;
    ++p;
  };
  for (int32_t node : before) put(node);
  put(a);
  for (int32_t node : after) put(node);
  while (p <= last) put(-1);
  parent_[static_cast<size_t>(b)] = a;
  auto& mine = successors(a);
  auto& theirs = successors(b);
  mine.insert(mine.end(), theirs.begin(), theirs.end());
  for (int32_t& next : mine) next = find(next);
  std::sort(mine.begin(), mine.end());
  mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
  std::erase(mine, a);
  theirs.clear();
  return true;
}

std::vector<int32_t> DependencyGraph::after(int32_t id) const {
  std::vector<int32_t> found;
  for (int32_t next : successors_[static_cast<size_t>(id)])
    if (const int32_t node = find(next); node != id) found.push_back(node);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<int32_t> DependencyGraph::order() const {
  std::vector<int32_t> live;
  for (int32_t node : sequence_)
    if (node >= 0) live.push_back(node);
  return live;
}

}  // namespace fusebox::inductor
