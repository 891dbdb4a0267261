#include "engine/inductor/schedule/program_emit.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "engine/inductor/schedule/batching.h"
#include "engine/inductor/schedule/buffer_places.h"
#include "engine/inductor/schedule/kernel_finish.h"
#include "engine/inductor/schedule/kernel_places.h"

namespace fusebox::inductor {
namespace {

class Emitter {
 public:
  Emitter(const LoweredGraph& lowered, std::vector<ScheduleNode>& nodes, const std::vector<int32_t>& order)
      : lowered_(lowered), nodes_(nodes), order_(order), places_(placeBuffers(lowered, nodes, order)) {}

  Schedule emit() {
    Program& program = schedule_.program;
    program.name = lowered_.name;
    program.inputCount = lowered_.inputCount;
    program.results = lowered_.results;
    program.buffers = std::move(places_.buffers);
    program.poolBytes = places_.poolBytes;
    program.devicePoolBytes = places_.devicePoolBytes;
    program.poolDevice = places_.poolDevice;
    program.places = std::move(places_.places);
    for (size_t step = 0; step < order_.size(); ++step) emitNode(static_cast<int32_t>(step));
    addDecisions(lowered_.writes);
    addDecisions(places_.writes);
    return std::move(schedule_);
  }

 private:
  ScheduleNode& nodeAt(int32_t step) { return nodes_[static_cast<size_t>(order_[static_cast<size_t>(step)])]; }
  const Operation& operation(const ScheduleNode& node) const {
    return lowered_.operations[static_cast<size_t>(node.firstOperation())];
  }

  void addDecisions(const std::vector<WriteDecision>& writes) {
    for (const WriteDecision& write : writes)
      if (write.operation >= 0 && static_cast<size_t>(write.operation) < lowered_.operations.size())
        schedule_.decisions.push_back({write.operation, write.operation, write.inPlace, "in place", write.reason, write.bytes});
  }

  void emitNode(int32_t step) {
    ScheduleNode& node = nodeAt(step);
    FusionGroup group;
    group.id = static_cast<int32_t>(schedule_.groups.size());
    group.operations = node.operations;
    group.bytesSaved = node.bytesSaved;
    if (places_.isUnrepeatable[static_cast<size_t>(step)] && schedule_.program.firstUnrepeatable < 0)
      schedule_.program.firstUnrepeatable = static_cast<int32_t>(schedule_.program.steps.size());
    if (node.isExtern) {
      ExternStep call = operation(node).call;
      call.group = group.id;
      group.name = call.op;
      if (!call.outVariant.empty()) allocateWrites(node, step);
      schedule_.program.steps.push_back(std::move(call));
    } else {
      allocateWrites(node, step);
      std::vector<LaunchStep> launches;
      launches.push_back(launchOf(node, group, !node.beside.empty()));
      for (int32_t id : node.beside) {
        ScheduleNode& other = nodes_[static_cast<size_t>(id)];
        schedule_.groups.push_back(std::exchange(group, {}));
        group.id = static_cast<int32_t>(schedule_.groups.size());
        group.operations = other.operations;
        group.bytesSaved = other.bytesSaved;
        launches.push_back(launchOf(other, group, true));
      }
      if (launches.size() > 1) numberBatches(launches);
      std::ranges::move(launches, std::back_inserter(schedule_.program.steps));
    }
    freeDead(node, step);
    schedule_.groups.push_back(std::move(group));
  }

  LaunchStep launchOf(ScheduleNode& node, FusionGroup& group, bool hasOthersBeside) {
    FinishedKernel finished = finishKernel(lowered_, std::move(node.kernel));
    if (hasOthersBeside) {
      // On the CPU a kernel for its sizes alone is better code; one that reads a number at a place of its own would be code of its own.
      FinishedKernel general = finished;
      if (batchForm(general) && (general.kernel.device.kind != graph::DeviceKind::Cpu || general.sizes.size() > 1)) finished = std::move(general);
    }
    takePlaces(finished);
    nameOverwritten(finished);
    // Equal kernels on two devices share code, but each launch says where by its kernel.
    std::string text = finished.kernel.device.str() + " " + canonicalText(finished.kernel);
    auto [entry, isNew] = kernelOf_.emplace(std::move(text), static_cast<int32_t>(schedule_.program.kernels.size()));
    if (isNew) {
      finished.kernel.name = fusedName(lowered_, node.operations, schedule_.program.kernels.size());
      schedule_.program.kernels.push_back(std::move(finished.kernel));
    }
    group.kernel = entry->second;
    group.name = schedule_.program.kernels[static_cast<size_t>(entry->second)].name;
    return LaunchStep{entry->second, std::move(finished.buffers), group.id, std::move(finished.sizes), -1};
  }

  /// Launches that may run at once. One launch of a GPU has one code, and what writes over an input has another than what does not.
  void numberBatches(std::vector<LaunchStep>& launches) {
    const bool isOneCode = schedule_.program.kernels[static_cast<size_t>(launches[0].kernel)].device.kind != graph::DeviceKind::Cpu;
    if (isOneCode) std::ranges::stable_sort(launches, {}, &LaunchStep::kernel);
    for (size_t i = 0; i < launches.size(); ++i)
      launches[i].batch = i > 0 && (!isOneCode || launches[i].kernel == launches[i - 1].kernel) ? launches[i - 1].batch : batches_++;
  }

  void nameOverwritten(FinishedKernel& finished) const {
    std::unordered_map<BufferId, BufferId> numbers;  // of the graph's buffers in the kernel
    auto forEachArgument = [&](auto&& visit) {
      auto id = finished.buffers.begin();
      for (KernelBuffer& buffer : finished.kernel.buffers)
        if (buffer.role != BufferRole::Scratch) visit(*id++, buffer);
    };
    forEachArgument([&](BufferId id, KernelBuffer& buffer) { numbers.emplace(id, buffer.id); });
    forEachArgument([&](BufferId id, KernelBuffer& buffer) {
      auto found = numbers.find(places_.overwrites[static_cast<size_t>(id)]);
      if (buffer.role == BufferRole::Output && found != numbers.end()) buffer.overwrites = found->second;
    });
  }

  bool isOwned(BufferId id) const {
    return schedule_.program.buffers[static_cast<size_t>(id)].kind == ProgramBuffer::Kind::Owned;
  }

  void allocateWrites(const ScheduleNode& node, int32_t step) {
    for (BufferId id : node.writes)
      if (isOwned(id) && places_.lifetimes[static_cast<size_t>(id)].first == step) schedule_.program.steps.push_back(AllocateStep{id});
  }

  void freeDead(const ScheduleNode& node, int32_t step) {
    std::vector<BufferId> touched;
    for (const auto* list : {&node.reads, &node.writes})
      for (BufferId id : *list) touched.push_back(places_.memory[static_cast<size_t>(id)]);
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    for (BufferId id : touched)
      if (isOwned(id) && !places_.isHandedOut[static_cast<size_t>(id)] && places_.lastUse[static_cast<size_t>(id)] == step)
        schedule_.program.steps.push_back(FreeStep{id});
  }

  const LoweredGraph& lowered_;
  std::vector<ScheduleNode>& nodes_;
  const std::vector<int32_t>& order_;
  BufferPlaces places_;
  std::unordered_map<std::string, int32_t> kernelOf_;  ///< canonical text -> position in Program::kernels
  int32_t batches_ = 0;
  Schedule schedule_;
};

}  // namespace

Schedule emitProgram(const LoweredGraph& lowered, std::vector<ScheduleNode>& nodes, const std::vector<int32_t>& order,
                     const ScheduleOptions& options) {
  return Emitter(lowered, nodes, order).emit();
}

}  // namespace fusebox::inductor
