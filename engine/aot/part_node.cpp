#include "engine/aot/part_node.h"

#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>

namespace fusebox::aot {

using torch::autograd::Edge;
using torch::autograd::variable_list;

namespace {

/// Where `k` stands in one of several ascending lists: which list, and its place there; {-1, 0}: in none.
template <class Lists, class List>
std::pair<int, size_t> placeOf(const Lists& lists, List&& list, size_t k) {
  for (size_t p = 0; p < lists.size(); ++p) {
    const std::vector<int32_t>& members = list(lists[p]);
    const auto at = std::lower_bound(members.begin(), members.end(), static_cast<int32_t>(k));
    if (at != members.end() && *at == static_cast<int32_t>(k)) return {static_cast<int>(p), static_cast<size_t>(at - members.begin())};
  }
  return {-1, 0};
}

}  // namespace

std::pair<std::shared_ptr<torch::autograd::Node>, size_t> CompiledNode::leavesFrom(size_t k) const {
  const auto [at, place] = isStaged() ? placeOf(shared_->stages(), [](auto& stage) -> auto& { return stage.cut.gradients; }, k)
                                      : placeOf(shared_->parts(), [](auto& part) -> auto& { return part.gradients; }, k);
  if (at < 0) return {nullptr, 0};
  return {(isStaged() ? stageNodes_ : partNodes_)[static_cast<size_t>(at)].lock(), place};
}

Edge CompiledNode::edgeOf(size_t k) const {
  if (!isSplit() && !isStaged()) return next_edge(k);
  const auto [node, place] = leavesFrom(k);
  return node ? node->next_edge(place) : Edge();
}

torch::autograd::edge_list CompiledNode::edges() const {
  torch::autograd::edge_list made;
  for (size_t k = 0; k < shared_->module->gradInputs.size(); ++k) made.push_back(edgeOf(k));
  return made;
}

/// What leads nowhere counts as wanted, so that it makes no difference.
bool CompiledNode::isWanted(size_t k) const {
  if (!isSplit() && !isStaged()) return !next_edge(k).is_valid() || task_should_compute_output(k);
  const auto [node, place] = leavesFrom(k);
  return !node || !node->next_edge(place).is_valid() || node->task_should_compute_output(place);
}

CompiledNode::Walk& CompiledNode::walkUnderWay() {
  const int task = torch::autograd::get_current_graph_task_id();
  const auto known = std::find_if(walks_.begin(), walks_.end(), [&](auto& walk) { return walk.task == task; });
  if (known != walks_.end() && task >= 0) return *known;
  constexpr size_t kWalksAtOnce = 16;
  if (walks_.size() >= kWalksAtOnce) walks_.pop_front();
  auto& made = walks_.emplace_back();
  made.task = task;
  made.given.resize(shared_->module->tangents.size());
  return made;
}

void CompiledNode::note(size_t tangent, const at::Tensor& gradient) {
  std::lock_guard lock(mutex_);
  walkUnderWay().given[tangent] = gradient;
}

variable_list CompiledNode::applyPart(size_t index, const variable_list& given) {
  const bool watched = innerWatched();
  const auto which = watched ? Gradients::OfInputsCut : Gradients::OfInputs;
  std::lock_guard lock(mutex_);
  auto& parts = shared_->parts();
  auto& part = parts[index];
  variable_list made(part.gradients.size());
  if (std::none_of(given.begin(), given.end(), [](auto& g) { return g.defined(); })) return made;
  auto& walk = walkUnderWay();
  const auto of = [&](const variable_list& all) {
    for (size_t j = 0; j < made.size(); ++j) made[j] = all[static_cast<size_t>(part.gradients[j])];
    return made;
  };
  const auto isAsGiven = [&](size_t i) { return walk.given[static_cast<size_t>(part.tangents[i])].defined() == given[i].defined(); };
  bool isWhole = true;
  for (size_t i = 0; i < part.tangents.size(); ++i) isWhole = isWhole && isAsGiven(i);
  if (isWhole && walk.made.empty()) {
    // All that was created after the region has been walked by now, so that no other tangent comes; if one does, the parts that it leads to are
    // computed by themselves.
    const Pass pass = passOf(which, walk.given, shared_->module->gradInputs.size());
    const Way way{Positions(pass.given), Positions(pass.wanted)};
    refuse(way);
    walk.way = way;
    walk.isComputed = pass.given;
    auto all = compute(which, walk.given, pass, false);
    walk.isAwaited.assign(parts.size(), false);
    for (size_t p = 0; p < parts.size(); ++p)
      walk.isAwaited[p] = !partNodes_[p].expired() &&
                          std::any_of(parts[p].tangents.begin(), parts[p].tangents.end(), [&](auto t) { return pass.given[static_cast<size_t>(t)]; }) &&
                          std::any_of(parts[p].gradients.begin(), parts[p].gradients.end(), [&](auto k) { return pass.wanted[static_cast<size_t>(k)]; });
    walk.made = std::move(all);
  }
  isWhole = isWhole && walk.isAwaited[index];
  for (size_t i = 0; isWhole && i < part.tangents.size(); ++i) isWhole = walk.isComputed[static_cast<size_t>(part.tangents[i])] == given[i].defined();
  if (isWhole) {
    of(walk.made);
    for (auto k : part.gradients) walk.made[static_cast<size_t>(k)].reset();
    if (torch::autograd::get_current_graph_task_keep_graph()) partWalkedLocked(index, true);
    return made;
  }
  variable_list own(walk.given.size());
  for (size_t i = 0; i < part.tangents.size(); ++i) own[static_cast<size_t>(part.tangents[i])] = given[i];
  Pass pass = passOf(which, own, shared_->module->gradInputs.size());
  for (size_t k = 0; k < pass.wanted.size(); ++k)
    pass.wanted[k] = pass.wanted[k] && std::binary_search(part.gradients.begin(), part.gradients.end(), static_cast<int32_t>(k));
  return of(compute(which, std::move(own), pass, false));
}

void CompiledNode::partWalked(size_t index) {
  std::lock_guard lock(mutex_);
  partWalkedLocked(index, false);
}

/// The pass is over, as far as this region goes, with the last part that waits for its gradients.
void CompiledNode::partWalkedLocked(size_t index, bool isKept) {
  const int task = torch::autograd::get_current_graph_task_id();
  const auto walk = std::find_if(walks_.begin(), walks_.end(), [&](auto& w) { return w.task == task; });
  if (walk == walks_.end() || walk->made.empty() || !walk->isAwaited[index]) return;
  walk->isAwaited[index] = false;
  if (std::find(walk->isAwaited.begin(), walk->isAwaited.end(), true) != walk->isAwaited.end()) return;
  if (!isKept) {
    spent_.push_back(std::move(walk->way));
    giveUpSpent();
  }
  walks_.erase(walk);
}

}  // namespace fusebox::aot
