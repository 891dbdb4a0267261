#include "engine/inductor/schedule/program_emit.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "engine/graph/operator_facts.h"
#include "engine/inductor/schedule/kernel_finish.h"
#include "engine/inductor/schedule/memory_plan.h"

namespace fusebox::inductor {
namespace {

using Kind = LoweredBuffer::Kind;

/// First and last step (position in the order of execution) that touch a buffer's memory.
struct Lifetime {
  int32_t first = -1, last = -1;
  void extend(int32_t step) {
    if (first < 0) first = step;
    last = step;
  }
};

class Emitter {
 public:
  Emitter(const LoweredGraph& lowered, std::vector<ScheduleNode>& nodes, const std::vector<int32_t>& order)
      : lowered_(lowered), nodes_(nodes), order_(order), isResult_(resultBuffers(lowered)), lifetimes_(lowered.buffers.size()) {}

  Schedule emit() {
    Program& program = schedule_.program;
    program.name = lowered_.name;
    program.inputCount = lowered_.inputCount;
    program.results = lowered_.results;
    findLifetimes();
    placeBuffers();
    for (size_t step = 0; step < order_.size(); ++step) emitNode(static_cast<int32_t>(step));
    return std::move(schedule_);
  }

 private:
  ScheduleNode& nodeAt(int32_t step) { return nodes_[static_cast<size_t>(order_[static_cast<size_t>(step)])]; }
  const Operation& operation(const ScheduleNode& node) const {
    return lowered_.operations[static_cast<size_t>(node.firstOperation())];
  }

  void findLifetimes() {
    for (int32_t step = 0; step < static_cast<int32_t>(order_.size()); ++step)
      for (const auto* list : {&nodeAt(step).reads, &nodeAt(step).writes})
        for (BufferId id : *list) lifetimes_[static_cast<size_t>(id)].extend(step);
    for (const Lifetime& lifetime : lifetimes_) lastUse_.push_back(lifetime.last);
  }

  /// Buffers that an operator hands back itself, or whose memory may outlive the call, cannot lie in the pool.
  std::vector<char> unpoolable() {
    std::vector<char> owned = isResult_;
    for (int32_t id : order_) {
      const ScheduleNode& node = nodes_[static_cast<size_t>(id)];
      if (!node.isExtern) continue;
      const ExternStep& call = operation(node).call;
      if (call.outVariant.empty())
        for (BufferId result : call.results)
          if (result >= 0) owned[static_cast<size_t>(result)] = 1;
      // Operators of other libraries may keep a reference to what they are given.
      if (graph::factsOf(call.op).foreign)
        for (BufferId read : node.reads) owned[static_cast<size_t>(read)] = 1;
    }
    return owned;
  }

  /// Constant bytes of memory for a buffer that may lie in the pool; nullopt for others.
  std::optional<int64_t> poolableBytes(const LoweredBuffer& buffer, const std::vector<char>& owned) const {
    const auto i = static_cast<size_t>(buffer.id);
    if (buffer.kind != Kind::Computed || owned[i] || lifetimes_[i].first < 0) return std::nullopt;
    if (buffer.meta.device.kind != graph::DeviceKind::Cpu) return std::nullopt;
    return (reachableElements(buffer.meta) * graph::elementSize(buffer.meta.dtype)).maybeConstant();
  }

  void placeBuffers() {
    const std::vector<char> owned = unpoolable();
    for (const LoweredBuffer& buffer : lowered_.buffers) {
      poolBytes_.push_back(poolableBytes(buffer, owned).value_or(-1));
      sharesWith_.push_back(buffer.id);
      overwrites_.push_back(-1);
    }
    for (int32_t step = 0; step < static_cast<int32_t>(order_.size()); ++step) reuseInPlace(step);
    std::vector<PoolRequest> requests;
    std::vector<int32_t> requestOf(lowered_.buffers.size(), -1);
    for (const LoweredBuffer& buffer : lowered_.buffers) {
      const auto i = static_cast<size_t>(buffer.id);
      if (poolBytes_[i] < 0 || sharesWith_[i] != buffer.id) continue;
      requestOf[i] = static_cast<int32_t>(requests.size());
      requests.push_back({poolBytes_[i], lifetimes_[i].first, lastUse_[i]});
    }
    const PoolPlan plan = planPool(requests);
    schedule_.program.poolBytes = plan.bytes;
    for (const LoweredBuffer& buffer : lowered_.buffers) {
      ProgramBuffer placed{buffer.id, buffer.name, buffer.meta, kindOf(buffer), buffer.index, 0, -1};
      if (buffer.kind == Kind::View) placed.base = buffer.base;
      if (placed.kind == ProgramBuffer::Kind::Planned)
        placed.poolOffset = plan.offsets[static_cast<size_t>(requestOf[static_cast<size_t>(memoryOf(buffer.id))])];
      schedule_.program.buffers.push_back(std::move(placed));
    }
  }

  ProgramBuffer::Kind kindOf(const LoweredBuffer& buffer) const {
    switch (buffer.kind) {
      case Kind::Input: return ProgramBuffer::Kind::Input;
      case Kind::Constant: return ProgramBuffer::Kind::Constant;
      case Kind::View: return ProgramBuffer::Kind::View;
      case Kind::Computed: break;
    }
    return poolBytes_[static_cast<size_t>(buffer.id)] >= 0 ? ProgramBuffer::Kind::Planned : ProgramBuffer::Kind::Owned;
  }

  /// The buffer whose place in the pool `id` takes.
  BufferId memoryOf(BufferId id) const {
    while (sharesWith_[static_cast<size_t>(id)] != id) id = sharesWith_[static_cast<size_t>(id)];
    return id;
  }

  /// Lets results of a kernel overwrite operands that die there, where every point reads no other element than it writes.
  void reuseInPlace(int32_t step) {
    const ScheduleNode& node = nodeAt(step);
    if (node.isExtern) return;
    std::vector<BufferId> taken;
    for (BufferId out : node.writes) {
      if (poolBytes_[static_cast<size_t>(out)] < 0 || lifetimes_[static_cast<size_t>(out)].first != step) continue;
      for (BufferId in : node.reads) {
        const BufferId memory = memoryOf(in);
        if (poolBytes_[static_cast<size_t>(in)] != poolBytes_[static_cast<size_t>(out)]) continue;
        if (lastUse_[static_cast<size_t>(memory)] != step || !samePoints(node, in, out)) continue;
        if (std::find(taken.begin(), taken.end(), memory) != taken.end()) continue;
        taken.push_back(memory);
        sharesWith_[static_cast<size_t>(out)] = memory;
        overwrites_[static_cast<size_t>(out)] = in;
        lastUse_[static_cast<size_t>(memory)] = lifetimes_[static_cast<size_t>(out)].last;
        break;
      }
    }
  }

  /// `out` is stored once, and `in` is loaded only there, in that section, with elements of the same size.
  bool samePoints(const ScheduleNode& node, BufferId in, BufferId out) const {
    const auto sizeOf = [&](BufferId id) { return graph::elementSize(lowered_.buffers[static_cast<size_t>(id)].meta.dtype); };
    if (sizeOf(in) != sizeOf(out)) return false;
    const Access* store = nullptr;
    for (const Access& access : node.accesses) {
      if (access.buffer != out) continue;
      if (!access.isStore || !access.isPlain || store) return false;
      store = &access;
    }
    return store && std::all_of(node.accesses.begin(), node.accesses.end(), [&](const Access& access) {
             return access.buffer != in ||
                    (!access.isStore && access.section == store->section && access.index == store->index);
           });
  }

  void emitNode(int32_t step) {
    ScheduleNode& node = nodeAt(step);
    FusionGroup group;
    group.id = static_cast<int32_t>(schedule_.groups.size());
    group.operations = node.operations;
    group.bytesSaved = node.bytesSaved;
    if (node.isExtern) {
      ExternStep call = operation(node).call;
      call.group = group.id;
      group.name = call.op;
      if (!call.outVariant.empty()) allocateWrites(node, step);
      schedule_.program.steps.push_back(std::move(call));
    } else {
      allocateWrites(node, step);
      emitLaunch(node, group);
    }
    freeDead(node, step);
    schedule_.groups.push_back(std::move(group));
  }

  void emitLaunch(ScheduleNode& node, FusionGroup& group) {
    FinishedKernel finished = finishKernel(lowered_, std::move(node.kernel));
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
    schedule_.program.steps.push_back(
        LaunchStep{entry->second, std::move(finished.buffers), group.id, std::move(finished.sizes)});
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
      auto found = numbers.find(overwrites_[static_cast<size_t>(id)]);
      if (buffer.role == BufferRole::Output && found != numbers.end()) buffer.overwrites = found->second;
    });
  }

  bool isOwned(BufferId id) const {
    return schedule_.program.buffers[static_cast<size_t>(id)].kind == ProgramBuffer::Kind::Owned;
  }

  void allocateWrites(const ScheduleNode& node, int32_t step) {
    for (BufferId id : node.writes)
      if (isOwned(id) && lifetimes_[static_cast<size_t>(id)].first == step) schedule_.program.steps.push_back(AllocateStep{id});
  }

  void freeDead(const ScheduleNode& node, int32_t step) {
    std::vector<BufferId> touched = node.reads;
    touched.insert(touched.end(), node.writes.begin(), node.writes.end());
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    for (BufferId id : touched)
      if (isOwned(id) && !isResult_[static_cast<size_t>(id)] && lifetimes_[static_cast<size_t>(id)].last == step)
        schedule_.program.steps.push_back(FreeStep{id});
  }

  const LoweredGraph& lowered_;
  std::vector<ScheduleNode>& nodes_;
  const std::vector<int32_t>& order_;
  std::vector<char> isResult_;
  std::vector<Lifetime> lifetimes_;
  std::vector<int32_t> lastUse_;       ///< of each buffer's memory, by whatever shares it
  std::vector<int64_t> poolBytes_;     ///< -1: not in the pool
  std::vector<BufferId> sharesWith_;   ///< a buffer that died where this one began; itself if none
  std::vector<BufferId> overwrites_;   ///< the operand whose memory a result takes over; -1 if none
  std::unordered_map<std::string, int32_t> kernelOf_;  ///< canonical text -> position in Program::kernels
  Schedule schedule_;
};

}  // namespace

Schedule emitProgram(const LoweredGraph& lowered, std::vector<ScheduleNode>& nodes, const std::vector<int32_t>& order,
                     const ScheduleOptions& options) {
  return Emitter(lowered, nodes, order).emit();
}

}  // namespace fusebox::inductor
