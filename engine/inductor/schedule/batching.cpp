#include "engine/inductor/schedule/batching.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "engine/inductor/ir/loop_transform.h"

namespace fusebox::inductor {
namespace {

/// A kernel that moves more keeps a device busy alone; on a GPU the last blocks of a launch leave it half empty, so that matters up to here.
constexpr int64_t kSmallBytes = int64_t{4} << 20, kSmallBytesOnGpu = int64_t{64} << 20;
constexpr size_t kMostBeside = 1024;
/// Values that wait for each other stay in memory meanwhile: gradients of weights before they are cast, say. A launch of so many takes its time anyway.
constexpr int64_t kMostWaiting = int64_t{16} << 20;

bool isLoop(const Kernel& kernel) {
  if (kernel.outer.size() > 1 || (!kernel.outer.empty() && !kernel.outer[0].extent.isConstant()) || hasChecks(kernel) || isForGpu(kernel)) return false;
  for (const KernelBuffer& buffer : kernel.buffers)
    if (buffer.role == BufferRole::Scratch) return false;
  return std::all_of(kernel.sections.begin(), kernel.sections.end(), [](const Section& section) {
    return section.axes.empty() && !section.isReduction && section.indirect.empty();
  });
}

/// Elements that a thread of a GPU takes at once from buffers of this kernel, where the count allows.
int64_t neighbours(const Kernel& kernel, int64_t count) {
  int widest = 1;
  for (const KernelBuffer& buffer : kernel.buffers) widest = std::max(widest, graph::elementSize(buffer.dtype));
  int64_t wanted = 16 / std::min(widest, 16);
  while (wanted > 1 && count % wanted != 0) wanted /= 2;
  return wanted;
}

/// A kernel of single elements as a loop with one turn: what it stores lies along it.
bool asLoop(Kernel& kernel) {
  const Symbol turn = Symbol::make("i0", 0, 1);
  std::vector<BufferId> stored;
  for (Section& section : kernel.sections)
    for (Statement& statement : section.body) {
      if (statement.kind != Statement::Kind::Store || !(statement.index == SymExpr(0))) return false;
      statement.index = turn;
      stored.push_back(statement.buffer);
    }
  for (Section& section : kernel.sections)
    for (Value& value : section.values)
      if (value.op == Op::Load && value.index == SymExpr(0) && std::find(stored.begin(), stored.end(), value.buffer) != stored.end()) value.index = turn;
  kernel.outer = {{turn, SymExpr(1)}};
  return true;
}

int64_t bytesMoved(const LoweredGraph& lowered, const ScheduleNode& node) {
  int64_t total = 0;
  for (const auto* list : {&node.reads, &node.writes})
    for (BufferId id : *list) total += bytesOf(lowered.buffers[static_cast<size_t>(id)].meta);
  return total;
}

class Batcher {
 public:
  Batcher(const LoweredGraph& lowered, std::vector<ScheduleNode>& nodes, DependencyGraph& graph)
      : lowered_(lowered), nodes_(nodes), graph_(graph), isResult_(resultBuffers(lowered)), oldValueOf_(lowered.buffers.size(), -1) {
    for (const InputWrite& write : lowered.inputWrites) {
      const auto* result = write.refusal.empty() && write.result < lowered.results.size() ? lowered.results[write.result].as<graph::ValueRef>() : nullptr;
      for (const LoweredBuffer& buffer : lowered.buffers)
        if (result && buffer.kind == LoweredBuffer::Kind::Input && buffer.index == write.input) oldValueOf_[static_cast<size_t>(result->node)] = buffer.id;
    }
  }

  std::vector<FusionDecision> run() {
    std::unordered_map<std::string, std::vector<int32_t>> open;  // by form: the nodes that others may join
    for (int32_t id : graph_.order()) {
      ScheduleNode& node = nodes_[static_cast<size_t>(id)];
      const std::optional<std::string> form = formOf(node);
      if (!form) continue;
      std::vector<int32_t>& leaders = open[*form];
      const bool joined = std::any_of(leaders.rbegin(), leaders.rend(), [&](int32_t& leader) { return join(leader, id); });
      if (!joined) leaders.push_back(id);
    }
    return std::move(decisions_);
  }

 private:
  /// What kernels that may run beside each other have in common; nullopt for those that run alone.
  std::optional<std::string> formOf(const ScheduleNode& node) const {
    if (node.isExtern || node.isDead || node.writes.empty() || !isLoop(node.kernel)) return std::nullopt;
    for (BufferId id : node.writes)
      if (!isResult_[static_cast<size_t>(id)] && lowered_.buffers[static_cast<size_t>(id)].kind == LoweredBuffer::Kind::Computed) return std::nullopt;
    const bool isCpu = node.kernel.device.kind == graph::DeviceKind::Cpu;
    if (bytesMoved(lowered_, node) > (isCpu ? kSmallBytes : kSmallBytesOnGpu)) return std::nullopt;
    if (isCpu) return "cpu";
    FinishedKernel finished = finishKernel(lowered_, node.kernel);
    if (!batchForm(finished)) return std::nullopt;
    return node.kernel.device.str() + " " + canonicalText(finished.kernel);
  }

  /// One writes an input's new value, which may happen in place, and the other reads the old one: they cannot be at work at once.
  bool needsOldValue(const ScheduleNode& writer, const ScheduleNode& reader) const {
    return std::any_of(writer.writes.begin(), writer.writes.end(), [&](BufferId id) {
      const BufferId old = oldValueOf_[static_cast<size_t>(id)];
      return old >= 0 && std::binary_search(reader.reads.begin(), reader.reads.end(), old);
    });
  }

  /// Both write one buffer, or one writes what the other reads: in some order, so not at once.
  static bool touchTheSame(const ScheduleNode& a, const ScheduleNode& b) {
    const auto meet = [](const std::vector<BufferId>& x, const std::vector<BufferId>& y) {
      for (auto i = x.begin(), j = y.begin(); i != x.end() && j != y.end();) {
        if (*i == *j) return true;
        if (*i < *j) ++i;
        else ++j;
      }
      return false;
    };
    return meet(a.writes, b.writes) || meet(a.writes, b.reads) || meet(a.reads, b.writes);
  }

  /// Bytes of intermediate values that a kernel reads.
  int64_t waiting(const ScheduleNode& node) const {
    int64_t total = 0;
    for (BufferId id : node.reads)
      if (const LoweredBuffer& buffer = lowered_.buffers[static_cast<size_t>(id)]; buffer.kind == LoweredBuffer::Kind::Computed && !isResult_[static_cast<size_t>(id)])
        total += bytesOf(buffer.meta);
    return total;
  }

  /// The earlier of the two, which `leaderId` is afterwards, takes the other beside it: those that joined before may have moved the leader back.
  bool join(int32_t& leaderId, int32_t otherId) {
    if (nodes_[static_cast<size_t>(leaderId)].beside.size() + 1 >= kMostBeside) return false;
    if (touchTheSame(nodes_[static_cast<size_t>(leaderId)], nodes_[static_cast<size_t>(otherId)])) return false;
    if (const int64_t first = waiting(nodes_[static_cast<size_t>(leaderId)]), second = waiting(nodes_[static_cast<size_t>(otherId)]); first && second && first + second > kMostWaiting) return false;
    if (needsOldValue(nodes_[static_cast<size_t>(leaderId)], nodes_[static_cast<size_t>(otherId)]) ||
        needsOldValue(nodes_[static_cast<size_t>(otherId)], nodes_[static_cast<size_t>(leaderId)]))
      return false;
    const bool swaps = graph_.position(leaderId) > graph_.position(otherId);
    // Merging asks for what lies between the two; that the one waits for the other itself would be no circle, but they could not be at work at once.
    const std::vector<int32_t> waiting = graph_.after(swaps ? otherId : leaderId);
    if (std::find(waiting.begin(), waiting.end(), swaps ? leaderId : otherId) != waiting.end()) return false;
    if (!(swaps ? graph_.merge(otherId, leaderId) : graph_.merge(leaderId, otherId))) return false;
    if (swaps) std::swap(leaderId, otherId);
    ScheduleNode &leader = nodes_[static_cast<size_t>(leaderId)], &node = nodes_[static_cast<size_t>(otherId)];
    leader.beside.push_back(otherId);
    leader.beside.insert(leader.beside.end(), node.beside.begin(), node.beside.end());
    node.beside.clear();
    node.isDead = true;
    const auto add = [](std::vector<BufferId>& to, const std::vector<BufferId>& from) {
      to.insert(to.end(), from.begin(), from.end());
      std::sort(to.begin(), to.end());
      to.erase(std::unique(to.begin(), to.end()), to.end());
    };
    add(leader.reads, node.reads);
    add(leader.writes, node.writes);
    // Sections of two kernels are not at the same point of anything, whatever their numbers.
    int32_t sections = 0;
    for (const Access& access : leader.accesses) sections = std::max(sections, access.section + 1);
    for (Access access : node.accesses) {
      access.section += sections;
      leader.accesses.push_back(access);
    }
    FusionDecision decision;
    decision.a = leader.firstOperation();
    decision.b = node.firstOperation();
    decision.fused = true;
    decision.kind = "beside";
    decision.reason = "small and independent: carried out at the same time, each by its own kernel";
    decisions_.push_back(std::move(decision));
    return true;
  }

  const LoweredGraph& lowered_;
  std::vector<ScheduleNode>& nodes_;
  DependencyGraph& graph_;
  std::vector<char> isResult_;
  std::vector<BufferId> oldValueOf_;  ///< by buffer: the input whose new value it is; -1 for others
  std::vector<FusionDecision> decisions_;
};

}  // namespace

bool batchForm(FinishedKernel& finished) {
  Kernel kernel = finished.kernel;
  if (!isLoop(kernel) || !kernel.sizeSymbols.empty() || (kernel.outer.empty() && !asLoop(kernel))) return false;
  const Axis axis = kernel.outer[0];
  const int64_t count = axis.extent.constant();
  if (count < 1 || count > std::numeric_limits<int32_t>::max()) return false;
  const SymExpr along = axis.symbol;
  std::vector<char> whole(kernel.buffers.size(), 0), single(kernel.buffers.size(), 0);
  for (const Section& section : kernel.sections) {
    const auto fits = [&](BufferId buffer, const SymExpr& index) {
      const auto at = static_cast<size_t>(buffer);
      (index == along ? whole : single)[at] = 1;
      return index == along || index.isConstant();
    };
    for (const Value& value : section.values)
      if (value.op == Op::Index ? !value.index.isConstant() && !(value.index == along) : value.op == Op::Load && !fits(value.buffer, value.index))
        return false;
    for (const Statement& statement : section.body)
      if (statement.kind != Statement::Kind::Store || !(statement.index == along) || !fits(statement.buffer, statement.index)) return false;
  }
  for (size_t i = 0; i < whole.size(); ++i)
    if (whole[i] && single[i]) return false;
  const int64_t each = neighbours(kernel, count);
  const Symbol groups = Symbol::make("groups", 1, std::numeric_limits<int32_t>::max() / each);
  const Symbol point = Symbol::make("i0", 0, std::numeric_limits<int32_t>::max() - 1);
  const SymExpr extent = SymExpr(groups) * each;
  kernel.outer = {{point, extent}};
  kernel.sizeSymbols = {groups};
  finished.sizes = {count / each};
  for (Section& section : kernel.sections) {
    substitute(section, {{axis.symbol, point}});
    for (Value& value : section.values) {
      if (value.op != Op::Load || !value.index.isConstant()) continue;
      const Symbol place = Symbol::make("at", 0, std::numeric_limits<int32_t>::max() - 1);
      finished.sizes.emplace_back(value.index.constant());
      kernel.sizeSymbols.push_back(place);
      value.index = place;
    }
  }
  for (KernelBuffer& buffer : kernel.buffers) {
    buffer.numel = whole[static_cast<size_t>(buffer.id)] ? extent : SymExpr(std::numeric_limits<int32_t>::max());
    buffer.alignment = graph::elementSize(buffer.dtype);
  }
  kernel.isBatch = true;
  finished.kernel = std::move(kernel);
  return true;
}

std::vector<FusionDecision> batchNodes(const LoweredGraph& lowered, std::vector<ScheduleNode>& nodes, DependencyGraph& graph) {
  return Batcher(lowered, nodes, graph).run();
}

}  // namespace fusebox::inductor
