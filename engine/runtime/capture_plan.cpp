#include "engine/runtime/capture_plan.h"

#include <algorithm>

#include "engine/graph/operator_facts.h"

namespace fusebox::runtime {
namespace {

using inductor::BufferId;
using Kind = inductor::ProgramBuffer::Kind;
using StepKind = RuntimePlan::StepKind;

bool hasBooleanIndex(const RuntimePlan& plan, const ExternCall& call) {
  const std::string& name = call.handle.operator_name().name;
  if (!name.starts_with("aten::index") && !name.starts_with("aten::_index_put") && !name.starts_with("aten::_unsafe_index"))
    return false;
  return std::any_of(call.arguments.begin(), call.arguments.end(), [&](const BoundArgument& argument) {
    return argument.kind == BoundArgument::Kind::OptionalTensorList &&
           std::any_of(argument.slots.begin(), argument.slots.end(), [&](int32_t slot) {
             return slot >= 0 && (plan.buffers[static_cast<size_t>(slot)].dtype == at::kBool ||
                                  plan.buffers[static_cast<size_t>(slot)].dtype == at::kByte);
           });
  });
}

/// Why the operator cannot be captured; empty: it can.
std::string refusalOf(const RuntimePlan& plan, const ExternCall& call) {
  const std::string name = toString(call.handle.operator_name());
  if (const std::string& why = graph::factsOf(name).notCapturable; !why.empty()) return why;
  if (hasBooleanIndex(plan, call)) return name + " with a mask waits for the device";
  for (const BoundArgument& argument : call.arguments)
    if (argument.kind == BoundArgument::Kind::Number || argument.kind == BoundArgument::Kind::NumberList)
      return name + " is given a number that the host reads in every run";
  for (const BoundArgument& argument : call.arguments)
    if (argument.kind == BoundArgument::Kind::Fixed && argument.fixed.isGenerator()) return name + " uses a generator of its own";
  return {};
}

class Cutter {
 public:
  Cutter(const RuntimePlan& plan, c10::DeviceType type) : plan_(plan), type_(type) {}

  CapturePlan cut() {
    made_.isResult.assign(plan_.buffers.size(), false);
    made_.isPinned.assign(plan_.buffers.size(), false);
    made_.isCapturedInput.assign(static_cast<size_t>(plan_.program().inputCount), false);
    if (!plan_.isStatic) return refuse("its sizes are dynamic");
    if (std::any_of(plan_.buffers.begin(), plan_.buffers.end(), [](const BufferPlan& buffer) { return buffer.isOpaque; }))
      return refuse("it keeps working memory whose size only a library knows");
    for (const graph::Argument& result : plan_.program().results)
      if (auto* value = result.as<graph::ValueRef>()) made_.isResult[static_cast<size_t>(baseOf(value->node))] = true;
    made_.isPinned = made_.isResult;
    for (size_t i = 0; i < plan_.steps.size(); ++i) add(i);
    if (!made_.refusal.empty()) return std::move(made_);
    if (!deviceKnown_) return refuse(plainReason_.empty() ? "it has no work for the GPU" : plainReason_);
    if (std::none_of(made_.stretches.begin(), made_.stretches.end(), [](const CaptureStretch& s) { return s.isCaptured; }))
      return refuse("nothing in it can be captured: " + plainReason_);
    return std::move(made_);
  }

 private:
  CapturePlan refuse(std::string reason) {
    made_.refusal = std::move(reason);
    return std::move(made_);
  }

  BufferId baseOf(BufferId id) const {
    while (plan_.buffers[static_cast<size_t>(id)].kind == Kind::View) id = plan_.buffers[static_cast<size_t>(id)].base;
    return id;
  }

  std::vector<BufferId> touched(const RuntimePlan::StepPlan& step) const {
    if (step.kind == StepKind::Launch) return plan_.launches[static_cast<size_t>(step.index)].buffers;
    if (step.kind == StepKind::Batch) {
      const BatchPlan& batch = plan_.batches[static_cast<size_t>(step.index)];
      std::vector<BufferId> all;
      for (int32_t i = 0; i < batch.count; ++i) {
        const auto& buffers = plan_.launches[static_cast<size_t>(batch.first + i)].buffers;
        all.insert(all.end(), buffers.begin(), buffers.end());
      }
      return all;
    }
    const ExternCall& call = plan_.externs[static_cast<size_t>(step.index)].call;
    std::vector<BufferId> ids = call.tensors;
    for (BufferId id : call.results)
      if (id >= 0) ids.push_back(id);
    return ids;
  }

  /// Why the step cannot be captured; empty: it can.
  std::string whyPlain(const RuntimePlan::StepPlan& step, const std::vector<BufferId>& ids) {
    if (ids.empty()) return "an operator without tensors";
    for (BufferId id : ids) {
      const c10::Device device = plan_.buffers[static_cast<size_t>(id)].device;
      if (device.type() != type_) return "works on " + device.str() + " memory";
      if (!deviceKnown_) {
        made_.device = device;
        deviceKnown_ = true;
      } else if (made_.device != device) {
        made_.refusal = "it uses more than one device";
      }
    }
    if (step.kind == StepKind::Launch || step.kind == StepKind::Batch) return {};
    return refusalOf(plan_, plan_.externs[static_cast<size_t>(step.index)].call);
  }

  void add(size_t position) {
    const RuntimePlan::StepPlan& step = plan_.steps[position];
    if (step.kind == StepKind::Allocate || step.kind == StepKind::Free) {
      // Memory is taken with the step that writes it, which follows, and given back with the one that read it last.
      if (step.kind == StepKind::Free && !made_.stretches.empty() && pending_ == position) {
        made_.stretches.back().end = position + 1;
        pending_ = position + 1;
      }
      return;
    }
    const std::vector<BufferId> ids = touched(step);
    std::string reason = whyPlain(step, ids);
    const bool captured = reason.empty();
    const bool random = step.kind == StepKind::Extern &&
                        graph::factsOf(toString(plan_.externs[static_cast<size_t>(step.index)].call.handle.operator_name())).random;
    if (made_.stretches.empty() || made_.stretches.back().isCaptured != captured)
      made_.stretches.push_back({pending_, pending_, captured, false, {}});
    CaptureStretch& stretch = made_.stretches.back();
    stretch.end = pending_ = position + 1;
    stretch.isRandom |= random;
    for (BufferId id : ids) {
      const BufferId base = baseOf(id);
      const BufferPlan& buffer = plan_.buffers[static_cast<size_t>(base)];
      if (!captured) made_.isPinned[static_cast<size_t>(base)] = true;
      else if (buffer.kind == Kind::Input) made_.isCapturedInput[static_cast<size_t>(buffer.index)] = true;
    }
    if (captured) return;
    if (plainReason_.empty()) plainReason_ = reason;
    if (stretch.reason.find(reason) == std::string::npos) stretch.reason += (stretch.reason.empty() ? "" : "; ") + reason;
  }

  const RuntimePlan& plan_;
  c10::DeviceType type_;
  CapturePlan made_;
  size_t pending_ = 0;       ///< first step that is in no stretch yet
  bool deviceKnown_ = false;
  std::string plainReason_;
};

}  // namespace

CapturePlan planCapture(const RuntimePlan& plan, c10::DeviceType type) { return Cutter(plan, type).cut(); }

}  // namespace fusebox::runtime
