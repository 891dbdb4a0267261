#include "engine/aot/stage_node.h"

#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>

#include "engine/aot/executor_scope.h"
#include "engine/runtime/given_up_inputs.h"

namespace fusebox::aot {

using torch::autograd::variable_list;
using Shared = AotFunction::Shared;

const std::vector<Shared::Stage>& Shared::stages() {
  std::call_once(stagesOnce_, [&] {
    if (!module->backward) return;
    auto cut = cutAtBuckets(*module->backward, buckets);
    stageSlots_ = cut.slots;
    for (auto& stage : cut.stages) {
      auto reads = placeholdersUsed(stage.graph);
      stages_.push_back({std::move(stage), std::move(reads), nullptr});
    }
  });
  return stages_;
}

const Executor& Shared::executorOf(size_t index) {
  stages();
  std::lock_guard lock(mutex);
  auto& stage = stages_[index];
  if (stage.executor) return *stage.executor;
  ExecutorScope scope;
  auto made = compileBackward(*module, stage.cut.graph);
  TORCH_CHECK(made, "Fusebox could not compile the backward graph: ", made.error().text());
  stage.executor = std::make_shared<const Executor>(std::move(*made));
  stage.cut.graph = {};
  return *stage.executor;
}

CompiledNode::StagedPass* CompiledNode::stagedPassUnderWay() {
  const int task = torch::autograd::get_current_graph_task_id();
  const auto known = std::find_if(stagedPasses_.begin(), stagedPasses_.end(), [&](auto& pass) { return pass.task == task; });
  return task >= 0 && known != stagedPasses_.end() ? &*known : nullptr;
}

/// A whole pass whose gradients nobody differentiates goes by stages; any other is computed at once.
void CompiledNode::beginStages(StagedPass& staged, variable_list&& given) {
  staged.task = torch::autograd::get_current_graph_task_id();
  const bool isKept = torch::autograd::get_current_graph_task_keep_graph();
  latest_ = isKept ? std::nullopt : std::optional<Way>(std::in_place);
  const size_t results = shared_->module->gradInputs.size();
  const Pass pass = passOf(Gradients::OfInputs, given, results);
  if (std::find(pass.given.begin(), pass.given.end(), true) == pass.given.end()) {
    staged.made.resize(results);
    return;
  }
  const Way way{Positions(pass.given), Positions(pass.wanted)};
  refuse(way);
  if (latest_) latest_ = way;
  if (staged.task < 0 || !pass.isWhole() || c10::GradMode::is_enabled() || isTransformed(given)) {
    staged.made = compute(Gradients::OfInputs, std::move(given), pass, !isKept);
    return;
  }
  staged.isLast = !isKept;
  staged.slots.resize(shared_->stageSlots());
  const ForwardStreams::Scope streams(streams_);
  std::vector<bool> reads(saved_.size() + given.size());
  for (auto& stage : shared_->stages())
    for (size_t i = 0; i < reads.size(); ++i) reads[i] = reads[i] || stage.reads[i];
  for (size_t i = 0; i < saved_.size(); ++i) staged.inputs.push_back(reads[i] ? unpackSaved(i) : at::Tensor());
  if (staged.isLast) {
    spent_.push_back(way);
    giveUpSpent();
    latest_.emplace();
  }
  ExecutorScope scope;
  for (auto& t : prepare(shared_->interfaceOf(Gradients::OfInputs).given, given, reads, saved_.size())) staged.inputs.push_back(std::move(t));
}

variable_list CompiledNode::runStage(StagedPass& pass, size_t index) {
  auto& stages = shared_->stages();
  auto& stage = stages[index];
  const auto isReadLater = [&](auto&& reads) { return std::any_of(stages.begin() + static_cast<ptrdiff_t>(index) + 1, stages.end(), reads); };
  std::vector<at::Tensor> inputs;
  for (size_t i = 0; i < pass.inputs.size(); ++i) {
    inputs.push_back(stage.reads[i] ? pass.inputs[i] : at::Tensor());
    if (!isReadLater([&](auto& later) { return later.reads[i]; })) pass.inputs[i].reset();
  }
  for (size_t slot : stage.cut.received) {
    inputs.push_back(pass.slots[slot]);
    const auto receives = [&](auto& later) { return std::find(later.cut.received.begin(), later.cut.received.end(), slot) != later.cut.received.end(); };
    if (!isReadLater(receives)) pass.slots[slot].reset();
  }
  const ForwardStreams::Scope streams(streams_);
  const Executor& run = shared_->executorOf(index);
  ExecutorScope scope;
  const std::optional<runtime::GivenUpInputs> givenUp = pass.isLast ? std::optional<runtime::GivenUpInputs>(std::in_place, inputs) : std::nullopt;
  auto results = run(inputs, symbolValues_);
  const auto handedOn = results.begin() + static_cast<ptrdiff_t>(stage.cut.gradients.size());
  for (size_t i = 0; i < stage.cut.handedOn.size(); ++i) {
    // Whoever is given a gradient may write to it before the next stage reads.
    at::Tensor& value = handedOn[static_cast<ptrdiff_t>(i)];
    const bool isShared = value.has_storage() && std::any_of(results.begin(), handedOn, [&](const at::Tensor& gradient) {
      return gradient.defined() && gradient.has_storage() && gradient.storage().is_alias_of(value.storage());
    });
    pass.slots[stage.cut.handedOn[i]] = isShared ? value.clone() : std::move(value);
  }
  results.resize(stage.cut.gradients.size());
  return results;
}

/// What leads from a stage to the next, for the device and stream that libtorch's engine runs it on.
at::Tensor CompiledNode::stageToken() const {
  auto& first = input_metadata(0);
  return at::empty({}, first.options()).expand_symint(first.shape_as_dim_vector());
}

void CompiledNode::endStages() {
  const int task = torch::autograd::get_current_graph_task_id();
  std::erase_if(stagedPasses_, [&](auto& pass) { return pass.task == task; });
}

variable_list CompiledNode::applyStage(size_t index, variable_list&& given) {
  std::lock_guard lock(mutex_);
  auto& gradients = shared_->stages()[index].cut.gradients;
  const bool isEnd = index + 1 == shared_->stages().size();
  variable_list made(gradients.size());
  try {
    StagedPass* pass = stagedPassUnderWay();
    if (index == 0) {
      constexpr size_t kPassesAtOnce = 16;
      if (stagedPasses_.size() >= kPassesAtOnce) stagedPasses_.pop_front();
      pass = &stagedPasses_.emplace_back();
      beginStages(*pass, std::move(given));
    }
    if (pass && !pass->isAtOnce()) made = runStage(*pass, index);
    else if (pass) std::transform(gradients.begin(), gradients.end(), made.begin(), [&](int32_t k) { return std::move(pass->made[static_cast<size_t>(k)]); });
  } catch (...) {
    endStages();
    throw;
  }
  if (!isEnd) made.push_back(stageToken());
  else if (torch::autograd::get_current_graph_task_keep_graph()) endStages();
  return made;
}

/// What was saved is given up with the last stage, or with the first where that computed all. Nodes that die are on no walk.
void CompiledNode::stageWalked(size_t index) {
  {
    std::lock_guard lock(mutex_);
    const StagedPass* pass = stagedPassUnderWay();
    if (!pass) return;
    const bool isEnd = index + 1 == shared_->stages().size(), releases = pass->isAtOnce() ? index == 0 : isEnd;
    if (isEnd) endStages();
    if (!releases) return;
  }
  release_variables();
}

}  // namespace fusebox::aot
