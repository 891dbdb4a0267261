#include "engine/inductor/schedule/step_order.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

namespace fusebox::inductor {
namespace {

using Kind = LoweredBuffer::Kind;

constexpr int64_t kWorthReordering = int64_t{64} << 20;  ///< peak from which another order is looked for
constexpr double kWorthTaking = 0.9;                     ///< of the peak: less is not worth losing what caches hold
constexpr size_t kMostSteps = 1000;                     ///< another order is looked for among: its search is quadratic
constexpr int kMostSearches = 256;

size_t at(int32_t i) { return static_cast<size_t>(i); }

class StepOrder {
 public:
  StepOrder(const LoweredGraph& lowered, const std::vector<ScheduleNode>& nodes, const DependencyGraph& graph)
      : lowered_(lowered), nodes_(nodes), given_(graph.order()), after_(given_.size()) {
    std::vector<int32_t> position(nodes.size(), -1);
    for (size_t p = 0; p < given_.size(); ++p) position[at(given_[p])] = static_cast<int32_t>(p);
    for (size_t p = 0; p < given_.size(); ++p)
      for (int32_t next : graph.after(given_[p]))
        if (position[at(next)] >= 0) after_[p].push_back(position[at(next)]);
  }

  std::vector<int32_t> run() {
    for (const InputWrite& write : lowered_.inputWrites)
      if (write.refusal.empty()) readersFirst(write);
    std::vector<int32_t> order = walk([](int32_t step) { return static_cast<int64_t>(step); });
    if (given_.size() <= kMostSteps) {
      countUsers();
      if (const int64_t peak = peakOf(order); peak >= kWorthReordering) {
        std::vector<int32_t> late = walkLate(order), greedy = walkByMemory();
        std::vector<int32_t>& other = peakOf(greedy) < peakOf(late) ? greedy : late;
        if (static_cast<double>(peakOf(other)) < kWorthTaking * static_cast<double>(peak)) order = std::move(other);
      }
    }
    for (int32_t& step : order) step = given_[at(step)];
    return order;
  }

 private:
  const ScheduleNode& node(int32_t step) const { return nodes_[at(given_[at(step)])]; }
  int32_t steps() const { return static_cast<int32_t>(given_.size()); }
  static bool has(const std::vector<BufferId>& list, BufferId id) { return std::binary_search(list.begin(), list.end(), id); }

  bool leadsTo(int32_t from, int32_t to) const {
    std::vector<char> seen(given_.size(), 0);
    std::vector<int32_t> work{from};
    while (!work.empty()) {
      const int32_t step = work.back();
      work.pop_back();
      if (step == to) return true;
      for (int32_t next : after_[at(step)])
        if (!std::exchange(seen[at(next)], 1)) work.push_back(next);
    }
    return false;
  }

  void readersFirst(const InputWrite& write) {
    const auto* result = write.result < lowered_.results.size() ? lowered_.results[write.result].as<graph::ValueRef>() : nullptr;
    if (!result || lowered_.buffers[at(result->node)].kind != Kind::Computed) return;
    BufferId in = -1;
    for (const LoweredBuffer& buffer : lowered_.buffers)
      if (buffer.kind == Kind::Input && buffer.index == write.input) in = buffer.id;
    int32_t writer = 0;
    while (writer < steps() && !has(node(writer).writes, result->node)) ++writer;
    if (in < 0 || writer == steps()) return;
    for (int32_t reader = 0; reader < steps(); ++reader) {
      if (reader == writer || !has(node(reader).reads, in)) continue;
      // A reader that is earlier in the given order cannot wait for the writer, unless one was put after something later.
      if ((reader > writer || hasBackward_) && (++searches_ > kMostSearches || leadsTo(writer, reader))) continue;
      after_[at(reader)].push_back(writer);
      hasBackward_ |= reader > writer;
    }
  }

  std::vector<int32_t> waitingFor() const {
    std::vector<int32_t> count(given_.size(), 0);
    for (const auto& list : after_)
      for (int32_t next : list) ++count[at(next)];
    return count;
  }

  /// The steps by `rank`, as far as dependencies allow.
  std::vector<int32_t> walk(const std::function<int64_t(int32_t)>& rank) const {
    std::vector<int32_t> waits = waitingFor(), order;
    using Entry = std::pair<int64_t, int32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    for (int32_t step = 0; step < steps(); ++step)
      if (waits[at(step)] == 0) ready.emplace(rank(step), step);
    while (!ready.empty()) {
      const int32_t step = ready.top().second;
      ready.pop();
      order.push_back(step);
      for (int32_t next : after_[at(step)])
        if (--waits[at(next)] == 0) ready.emplace(rank(next), next);
    }
    return order;
  }

  // --- memory

  void countUsers() {
    const std::vector<char> isResult = resultBuffers(lowered_);
    users_.assign(lowered_.buffers.size(), 0);
    bytes_.assign(lowered_.buffers.size(), 0);
    touched_.resize(given_.size());
    for (int32_t step = 0; step < steps(); ++step) {
      for (const auto* list : {&node(step).reads, &node(step).writes}) touched_[at(step)].insert(touched_[at(step)].end(), list->begin(), list->end());
      std::sort(touched_[at(step)].begin(), touched_[at(step)].end());
      touched_[at(step)].erase(std::unique(touched_[at(step)].begin(), touched_[at(step)].end()), touched_[at(step)].end());
      for (BufferId id : touched_[at(step)]) ++users_[at(id)];
    }
    for (const LoweredBuffer& buffer : lowered_.buffers) {
      if (buffer.kind != Kind::Computed) continue;
      bytes_[at(buffer.id)] = bytesOf(buffer.meta);
      if (isResult[at(buffer.id)]) ++users_[at(buffer.id)];  // whoever gets it
    }
  }

  /// What is alive while `step` runs and what stays, as changes of what was alive before.
  struct Change {
    int64_t during = 0, afterwards = 0;
  };
  Change changeOf(int32_t step, const std::vector<int32_t>& left) const {
    Change change;
    for (BufferId id : touched_[at(step)]) {
      if (left[at(id)] == users_[at(id)]) change.during += bytes_[at(id)];
      if (left[at(id)] == 1) change.afterwards -= bytes_[at(id)];
    }
    change.afterwards += change.during;
    return change;
  }
  void take(int32_t step, std::vector<int32_t>& left) const {
    for (BufferId id : touched_[at(step)]) --left[at(id)];
  }

  int64_t peakOf(const std::vector<int32_t>& order) const {
    std::vector<int32_t> left = users_;
    int64_t alive = 0, peak = 0;
    for (int32_t step : order) {
      const Change change = changeOf(step, left);
      peak = std::max(peak, alive + change.during);
      alive += change.afterwards;
      take(step, left);
    }
    return peak;
  }

  /// `order`, but for steps that leave more behind than they end: those wait for the first that reads what they make.
  std::vector<int32_t> walkLate(const std::vector<int32_t>& order) const {
    std::vector<int32_t> left = users_;
    std::vector<char> grows(given_.size(), 0);
    for (int32_t step : order) {
      grows[at(step)] = changeOf(step, left).afterwards > 0;
      take(step, left);
    }
    const auto apart = static_cast<int64_t>(order.size()) + 1;  // so many may wait for one
    std::vector<int64_t> rank(given_.size(), 0);
    for (size_t p = order.size(); p-- > 0;) {
      const auto& readers = after_[at(order[p])];
      int64_t first = std::numeric_limits<int64_t>::max();
      for (int32_t next : readers) first = std::min(first, rank[at(next)]);
      rank[at(order[p])] = grows[at(order[p])] && !readers.empty() ? first - 1 : static_cast<int64_t>(p + 1) * apart;
    }
    return walk([&](int32_t step) { return rank[at(step)]; });
  }

  /// Always the step that leaves least behind; of equal ones the first.
  std::vector<int32_t> walkByMemory() const {
    std::vector<int32_t> waits = waitingFor(), order, left = users_, ready;
    for (int32_t step = 0; step < steps(); ++step)
      if (waits[at(step)] == 0) ready.push_back(step);
    while (!ready.empty()) {
      const auto best = std::min_element(ready.begin(), ready.end(), [&](int32_t a, int32_t b) {
        const int64_t x = changeOf(a, left).afterwards, y = changeOf(b, left).afterwards;
        return x != y ? x < y : a < b;
      });
      const int32_t step = *best;
      ready.erase(best);
      order.push_back(step);
      take(step, left);
      for (int32_t next : after_[at(step)])
        if (--waits[at(next)] == 0) ready.push_back(next);
    }
    return order;
  }

  const LoweredGraph& lowered_;
  const std::vector<ScheduleNode>& nodes_;
  std::vector<int32_t> given_;                  ///< nodes; a step is a position here
  std::vector<std::vector<int32_t>> after_;     ///< steps that must come after each
  std::vector<std::vector<BufferId>> touched_;  ///< by step
  std::vector<int32_t> users_;                  ///< by buffer: steps that touch it
  std::vector<int64_t> bytes_;
  int searches_ = 0;
  bool hasBackward_ = false;  ///< some step of `after_` comes before what it is after in the given order
};

}  // namespace

std::vector<int32_t> orderSteps(const LoweredGraph& lowered, const std::vector<ScheduleNode>& nodes, const DependencyGraph& graph) {
  return StepOrder(lowered, nodes, graph).run();
}

}  // namespace fusebox::inductor
