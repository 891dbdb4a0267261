#include "engine/inductor/schedule/buffer_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "engine/graph/operator_facts.h"
#include "engine/graph/symbol_values.h"
#include "engine/inductor/ir/lazy_tensor.h"
#include "engine/inductor/schedule/memory_plan.h"

namespace fusebox::inductor {
namespace {

using Kind = LoweredBuffer::Kind;

constexpr int64_t kDevicePooledBytes = int64_t{1} << 20;  ///< up to which a GPU's buffers lie in the pool

size_t at(int32_t id) { return static_cast<size_t>(id); }
bool isCuda(const graph::TensorMeta& meta) { return meta.device.kind == graph::DeviceKind::Cuda; }

class Placer {
 public:
  Placer(const LoweredGraph& lowered, const std::vector<ScheduleNode>& nodes, const std::vector<int32_t>& order)
      : lowered_(lowered), nodes_(nodes), order_(order), isResult_(resultBuffers(lowered)) {}

  BufferPlaces place() {
    const size_t count = lowered_.buffers.size();
    made_.lifetimes.resize(count);
    made_.overwrites.assign(count, -1);
    for (const LoweredBuffer& buffer : lowered_.buffers) made_.memory.push_back(buffer.id);
    findLifetimes();
    findOwners();
    made_.isHandedOut.assign(isResult_.begin(), isResult_.end());
    for (const InputWrite& write : lowered_.inputWrites) decideWrite(write);
    findUnrepeatable();
    for (size_t step = 0; step < order_.size(); ++step) reuseInPlace(static_cast<int32_t>(step));
    planPools();
    return std::move(made_);
  }

 private:
  const ScheduleNode& nodeAt(int32_t step) const { return nodes_[at(order_[at(step)])]; }
  const Operation& operation(int32_t id) const { return lowered_.operations[at(id)]; }
  std::vector<int32_t> operationsAt(int32_t step) const {
    std::vector<int32_t> all = nodeAt(step).operations;
    for (int32_t id : nodeAt(step).beside) all.insert(all.end(), nodes_[at(id)].operations.begin(), nodes_[at(id)].operations.end());
    return all;
  }
  const LoweredBuffer& buffer(BufferId id) const { return lowered_.buffers[at(id)]; }
  int32_t steps() const { return static_cast<int32_t>(order_.size()); }

  void findLifetimes() {
    for (int32_t step = 0; step < steps(); ++step)
      for (const auto* list : {&nodeAt(step).reads, &nodeAt(step).writes})
        for (BufferId id : *list) {
          Lifetime& life = made_.lifetimes[at(id)];
          if (life.first < 0) life.first = step;
          life.last = step;
        }
    for (const Lifetime& life : made_.lifetimes) made_.lastUse.push_back(life.last);
  }

  /// Which buffers the program allocates itself (others are handed back by operators), and which may lie in a pool: not those whose memory
  /// may outlive the call.
  void findOwners() {
    std::vector<char> foreign(lowered_.buffers.size(), 0), kept = isResult_;
    isGiven_.assign(lowered_.buffers.size(), 0);
    for (int32_t id : order_) {
      const ScheduleNode& node = nodes_[at(id)];
      if (!node.isExtern) continue;
      const ExternStep& call = operation(node.firstOperation()).call;
      if (call.outVariant.empty())
        for (BufferId result : call.results)
          if (result >= 0) foreign[at(result)] = 1, isGiven_[at(result)] = mayTake(graph::factsOf(call.op), buffer(result).meta);
      // Operators of other libraries may keep a reference to what they are given.
      if (graph::factsOf(call.op).foreign)
        for (BufferId read : node.reads) kept[at(read)] = foreign[at(read)] = 1;
    }
    for (const LoweredBuffer& b : lowered_.buffers) {
      const bool isOurs = b.kind == Kind::Computed && !foreign[at(b.id)] && made_.lifetimes[at(b.id)].first >= 0;
      extents_.push_back(reachableElements(b.meta) * graph::elementSize(b.meta.dtype));
      bytes_.push_back(isOurs ? std::max<int64_t>(0, graph::hint(extents_.back())) : -1);
      if (isCuda(b.meta) && made_.poolDevice.kind != graph::DeviceKind::Cuda && bytes_.back() >= 0) made_.poolDevice = b.meta.device;
      isPooled_.push_back(bytes_.back() >= 0 && !kept[at(b.id)] && fitsPool(b.meta, bytes_.back()));
    }
  }

  /// Whether what an operator hands back is the program's to write to: the run time sees to it that nobody else has it.
  bool mayTake(const graph::OperatorFacts& facts, const graph::TensorMeta& meta) const {
    return isCuda(meta) && isDense(meta) && !facts.foreign && !facts.view && !facts.effectful && !facts.collective &&
           bytesOf(meta) > kDevicePooledBytes;
  }

  bool fitsPool(const graph::TensorMeta& meta, int64_t bytes) const {
    if (meta.device.kind == graph::DeviceKind::Cpu) return true;
    return isCuda(meta) && meta.device == made_.poolDevice && bytes <= kDevicePooledBytes;
  }

  // --- writes to inputs

  BufferId inputBuffer(int32_t index) const {
    for (const LoweredBuffer& b : lowered_.buffers)
      if (b.kind == Kind::Input && b.index == index) return b.id;
    return -1;
  }

  int64_t resultsIn(BufferId base) const {
    int64_t count = 0;
    graph::Graph::forEachValue(lowered_.results, [&](graph::ValueRef ref) { count += ref.node >= 0 && baseOf(lowered_, ref.node) == base; });
    return count;
  }

  void decideWrite(const InputWrite& write) {
    const auto* result = write.result < lowered_.results.size() ? lowered_.results[write.result].as<graph::ValueRef>() : nullptr;
    const BufferId in = inputBuffer(write.input);
    if (!result || in < 0 || baseOf(lowered_, result->node) == in) return;  // lowering has written it where it is
    WriteDecision decision;
    decision.reason = write.refusal.empty() ? whyCopied(result->node, in) : write.refusal;
    decision.inPlace = decision.reason.empty();
    decision.bytes = 2 * bytesOf(buffer(in).meta);
    for (const Operation& op : lowered_.operations)
      if (std::find(op.writes.begin(), op.writes.end(), baseOf(lowered_, result->node)) != op.writes.end()) decision.operation = op.id;
    if (decision.inPlace) {
      takeInput(result->node, in);
      decision.reason = buffer(in).name + " gets its new value in place";
    } else {
      decision.reason = buffer(in).name + " is copied back: " + decision.reason;
    }
    if (decision.operation >= 0) made_.writes.push_back(std::move(decision));
  }

  void takeInput(BufferId out, BufferId in) {
    const int32_t first = made_.lifetimes[at(out)].first;
    made_.memory[at(out)] = in;
    if (made_.lifetimes[at(in)].last == first) made_.overwrites[at(out)] = in;
    made_.lastUse[at(in)] = std::max(made_.lastUse[at(in)], made_.lifetimes[at(out)].last);
  }

  /// Why `out` cannot be computed where `in` is; empty: it can.
  std::string whyCopied(BufferId out, BufferId in) const {
    const LoweredBuffer &to = buffer(out), &from = buffer(in);
    if (to.kind != Kind::Computed) return "its new value is a view of another";
    if (bytes_[at(out)] < 0) return "its new value is made by an operator, in memory of that";
    if (bytes_[at(out)] == 0) return "it has no elements";
    if (resultsIn(out) > 1) return "its new value is handed out as well";
    if (resultsIn(in) > 0) return "its old value is handed out";
    if (to.meta.sizes != from.meta.sizes || to.meta.strides != from.meta.strides || !(to.meta.dtype == from.meta.dtype) || !(to.meta.device == from.meta.device))
      return "its new value lies in memory otherwise";
    if (!hasOwnPlaces(from.meta.sizes, from.meta.strides)) return "its elements share memory";
    const int32_t first = made_.lifetimes[at(out)].first, last = made_.lifetimes[at(in)].last;
    if (last > first) return fmt::format("{} reads its old value after the new one is there", operation(nodeAt(last).firstOperation()).name);
    if (last == first && (nodeAt(first).isExtern || !samePoints(nodeAt(first), in, out))) return "what computes the new value reads the old one at other points";
    return whyUndone(out, in, first);
  }

  /// Why the write would not stand being cut short by an error, after which the program runs the graph's operators again.
  std::string whyUndone(BufferId out, BufferId in, int32_t first) const {
    graph::NodeId lastOrigin = -1;
    for (const Operation& op : lowered_.operations)
      if (std::find(op.writes.begin(), op.writes.end(), out) != op.writes.end())
        for (graph::NodeId origin : op.origins) lastOrigin = std::max(lastOrigin, origin);
    const bool repeatable = made_.lifetimes[at(in)].first < 0;
    for (int32_t step = first; step < steps(); ++step) {
      if (!mayRaise(nodeAt(step))) continue;
      graph::NodeId firstOrigin = std::numeric_limits<graph::NodeId>::max();
      for (int32_t id : operationsAt(step))
        for (graph::NodeId origin : operation(id).origins) firstOrigin = std::min(firstOrigin, origin);
      if (!repeatable || firstOrigin <= lastOrigin)
        return operation(nodeAt(step).firstOperation()).name + " may raise afterwards, and the write could not be undone";
    }
    return {};
  }

  bool mayRaise(const ScheduleNode& node) const {
    if (!node.isExtern) return node.kernel.device.kind == graph::DeviceKind::Cpu && hasChecks(node.kernel);
    const ExternStep& call = operation(node.firstOperation()).call;
    const graph::OperatorFacts& facts = graph::factsOf(call.op);
    if (facts.total) return false;
    const bool onGpu = std::any_of(call.results.begin(), call.results.end(), [&](BufferId id) { return id >= 0 && isCuda(buffer(id).meta); }) ||
                       (call.changes >= 0 && isCuda(buffer(call.changes).meta));
    return !onGpu || facts.foreign || facts.effectful || !facts.notCapturable.empty();
  }

  /// `Operation::reads` says whether a write depends on what is there.
  void findUnrepeatable() {
    made_.isUnrepeatable.assign(order_.size(), 0);
    std::vector<char> wasRead(lowered_.buffers.size(), 0);
    for (int32_t step = 0; step < steps(); ++step) {
      const ScheduleNode& node = nodeAt(step);
      for (int32_t id : operationsAt(step))
        for (BufferId read : operation(id).reads) wasRead[at(baseOf(lowered_, read))] = 1;
      for (BufferId write : node.writes) {
        const BufferId memory = made_.memory[at(write)];
        if (buffer(memory).kind == Kind::Input && wasRead[at(memory)]) made_.isUnrepeatable[at(step)] = 1;
      }
    }
  }

  // --- intermediates

  /// Lets results of a kernel overwrite operands that die there, where every point reads no other element than it writes.
  void reuseInPlace(int32_t step) {
    const ScheduleNode& node = nodeAt(step);
    if (node.isExtern) return;
    std::vector<BufferId> taken;
    for (BufferId out : node.writes) {
      if (bytes_[at(out)] <= 0 || made_.memory[at(out)] != out || made_.lifetimes[at(out)].first != step) continue;
      for (BufferId in : node.reads) {
        if (!maySucceed(in, out, step) || !samePoints(node, in, out)) continue;
        const BufferId memory = made_.memory[at(in)];
        if (std::find(taken.begin(), taken.end(), memory) != taken.end()) continue;
        taken.push_back(memory);
        made_.memory[at(out)] = memory;
        made_.overwrites[at(out)] = in;
        made_.lastUse[at(memory)] = made_.lifetimes[at(out)].last;
        made_.isHandedOut[at(memory)] |= isResult_[at(out)];
        break;
      }
    }
  }

  bool maySucceed(BufferId in, BufferId out, int32_t step) const {
    const BufferId memory = made_.memory[at(in)];
    if (buffer(in).kind != Kind::Computed || buffer(memory).kind != Kind::Computed || (bytes_[at(in)] < 0 && !isGiven_[at(in)]) || !(extents_[at(in)] == extents_[at(out)])) return false;
    if (made_.isHandedOut[at(memory)] || made_.lastUse[at(memory)] != step) return false;
    if (!(buffer(in).meta.device == buffer(out).meta.device)) return false;
    return isPooled_[at(memory)] == isPooled_[at(out)];
  }

  /// `out` is stored once, and `in` is loaded only there, in that section, with elements of the same size.
  bool samePoints(const ScheduleNode& node, BufferId in, BufferId out) const {
    if (node.kernel.attention) return false;
    const auto sizeOf = [&](BufferId id) { return graph::elementSize(buffer(id).meta.dtype); };
    if (sizeOf(in) != sizeOf(out)) return false;
    const Access* store = nullptr;
    for (const Access& access : node.accesses) {
      if (access.buffer != out) continue;
      if (!access.isStore || !access.isPlain || store) return false;
      store = &access;
    }
    return store && std::all_of(node.accesses.begin(), node.accesses.end(), [&](const Access& access) {
             return baseOf(lowered_, access.buffer) != in ||
                    (access.buffer == in && !access.isStore && access.section == store->section && access.index == store->index);
           });
  }

  void planPools() {
    const bool isSymbolic = std::any_of(lowered_.buffers.begin(), lowered_.buffers.end(),
                                        [&](const LoweredBuffer& b) { return isPooled_[at(b.id)] && !extents_[at(b.id)].isConstant(); });
    std::vector<PoolRequest> requests, onDevice;
    std::vector<size_t> requestOf(lowered_.buffers.size(), 0);
    std::vector<int32_t> placeOf(lowered_.buffers.size(), -1);
    for (const LoweredBuffer& b : lowered_.buffers) {
      if (!isPooled_[at(b.id)] || made_.memory[at(b.id)] != b.id) continue;
      if (isSymbolic) {
        placeOf[at(b.id)] = static_cast<int32_t>(made_.places.size());
        made_.places.push_back({extents_[at(b.id)], made_.lifetimes[at(b.id)].first, made_.lastUse[at(b.id)], isCuda(b.meta)});
      }
      auto& list = isCuda(b.meta) ? onDevice : requests;
      const int64_t bytes = isCuda(b.meta) ? onDeviceBytes(bytes_[at(b.id)]) : bytes_[at(b.id)];
      requestOf[at(b.id)] = list.size();
      list.push_back({bytes, made_.lifetimes[at(b.id)].first, made_.lastUse[at(b.id)]});
    }
    const PoolPlan plan = planPool(requests), devicePlan = planPool(onDevice);
    made_.poolBytes = plan.bytes;
    made_.devicePoolBytes = devicePlan.bytes;
    for (const LoweredBuffer& b : lowered_.buffers) {
      ProgramBuffer placed{b.id, b.name, b.meta, kindOf(b), b.index, 0, -1};
      const BufferId memory = made_.memory[at(b.id)];
      if (placed.kind == ProgramBuffer::Kind::View) placed.base = b.kind == Kind::View ? b.base : memory;
      if (placed.kind == ProgramBuffer::Kind::Planned)
        placed.poolOffset = (isCuda(b.meta) ? devicePlan : plan).offsets[requestOf[at(memory)]], placed.place = placeOf[at(memory)];
      made_.buffers.push_back(std::move(placed));
    }
  }

  ProgramBuffer::Kind kindOf(const LoweredBuffer& b) const {
    switch (b.kind) {
      case Kind::Input: return ProgramBuffer::Kind::Input;
      case Kind::Constant: return ProgramBuffer::Kind::Constant;
      case Kind::View: return ProgramBuffer::Kind::View;
      case Kind::Computed: break;
    }
    if (isPooled_[at(made_.memory[at(b.id)])]) return ProgramBuffer::Kind::Planned;
    return made_.memory[at(b.id)] == b.id ? ProgramBuffer::Kind::Owned : ProgramBuffer::Kind::View;
  }

  const LoweredGraph& lowered_;
  const std::vector<ScheduleNode>& nodes_;
  const std::vector<int32_t>& order_;
  std::vector<char> isResult_;
  std::vector<SymExpr> extents_; ///< bytes from first to last element
  std::vector<int64_t> bytes_;   ///< the same at the hints, of buffers that the program allocates itself; -1 for others
  std::vector<char> isPooled_;
  std::vector<char> isGiven_;    ///< by an operator, in memory that kernels may write to behind it
  BufferPlaces made_;
};

}  // namespace

BufferPlaces placeBuffers(const LoweredGraph& lowered, const std::vector<ScheduleNode>& nodes, const std::vector<int32_t>& order) {
  return Placer(lowered, nodes, order).place();
}

}  // namespace fusebox::inductor
