#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "engine/inductor/schedule/batching.h"
#include "engine/inductor/schedule/dependency_graph.h"
#include "engine/inductor/schedule/fused_kernel.h"
#include "engine/inductor/schedule/fusion.h"
#include "engine/inductor/schedule/program_emit.h"
#include "engine/inductor/schedule/schedule_node.h"
#include "engine/inductor/schedule/step_order.h"

namespace fusebox::inductor {
namespace {

/// References that do not resolve would be memory errors later: they are refused here.
Result<void> check(const LoweredGraph& lowered) {
  const auto isBuffer = [&](BufferId id) { return id >= 0 && static_cast<size_t>(id) < lowered.buffers.size(); };
  for (size_t i = 0; i < lowered.buffers.size(); ++i) {
    const LoweredBuffer& buffer = lowered.buffers[i];
    if (buffer.id != static_cast<BufferId>(i)) return fail(ErrorCode::Internal, "buffer id is not its position", buffer.name);
    if (buffer.kind == LoweredBuffer::Kind::View && (!isBuffer(buffer.base) || buffer.base == buffer.id))
      return fail(ErrorCode::Internal, "view of no buffer", buffer.name);
  }
  for (size_t i = 0; i < lowered.operations.size(); ++i) {
    const Operation& operation = lowered.operations[i];
    if (operation.id != static_cast<int32_t>(i))
      return fail(ErrorCode::Internal, "operation id is not its position", operation.name);
    for (const auto* list : {&operation.reads, &operation.writes})
      for (BufferId id : *list)
        if (!isBuffer(id)) return fail(ErrorCode::Internal, fmt::format("no buffer {}", id), operation.name);
  }
  return {};
}

/// Gives every kernel its final form, now that it is known which buffers stay inside one.
void finishKernels(const LoweredGraph& lowered, std::vector<ScheduleNode>& nodes, const DependencyGraph& graph,
                   const std::vector<BufferUses>& uses, const ScheduleOptions& options) {
  std::vector<char> needed = resultBuffers(lowered);
  for (const LoweredBuffer& buffer : lowered.buffers) {
    const BufferUses& use = uses[static_cast<size_t>(buffer.id)];
    const int32_t writer = use.writers.empty() ? -1 : graph.find(use.writers.front());
    auto isWriter = [&](int32_t user) { return graph.find(user) == writer; };
    const bool inside = std::all_of(use.readers.begin(), use.readers.end(), isWriter) &&
                        std::all_of(use.writers.begin(), use.writers.end(), isWriter);
    if (!inside || buffer.isKept || buffer.kind != LoweredBuffer::Kind::Computed) needed[static_cast<size_t>(buffer.id)] = 1;
  }
  for (ScheduleNode& node : nodes) {
    if (node.isDead || standsAlone(node)) continue;
    node.kernel = finishFusion(lowered, std::move(node.kernel), needed, options);
    auto vanished = [&](BufferId id) {
      const auto touches = [&](const Access& access) { return baseOf(lowered, access.buffer) == id; };
      return std::none_of(node.accesses.begin(), node.accesses.end(), touches);
    };
    node.accesses = accessesOf(node.kernel);
    std::erase_if(node.accesses, [&](const Access& access) {
      return std::any_of(node.kernel.buffers.begin(), node.kernel.buffers.end(), [&](const KernelBuffer& buffer) {
        return buffer.id == access.buffer && buffer.role == BufferRole::Scratch;
      });
    });
    std::erase_if(node.reads, vanished);
    std::erase_if(node.writes, vanished);
  }
}

}  // namespace

Result<Schedule> schedule(const LoweredGraph& lowered, const ScheduleOptions& options) {
  if (auto checked = check(lowered); !checked) return tl::unexpected(checked.error());
  std::vector<ScheduleNode> nodes = makeNodes(lowered);
  removeDeadNodes(lowered, nodes);
  const std::vector<BufferUses> uses = usesOf(lowered, nodes);
  DependencyGraph graph(lowered, nodes);
  std::vector<FusionDecision> decisions;
  const FusionRules rules(lowered, options.rules);
  if (options.fuse || !rules.forced().empty()) decisions = fuseNodes(lowered, nodes, graph, options, rules);
  finishKernels(lowered, nodes, graph, uses, options);
  if (options.fuse) {
    std::vector<FusionDecision> beside = batchNodes(lowered, nodes, graph);
    decisions.insert(decisions.end(), beside.begin(), beside.end());
  }
  Schedule result = emitProgram(lowered, nodes, orderSteps(lowered, nodes, graph), options);
  result.decisions.insert(result.decisions.begin(), std::make_move_iterator(decisions.begin()), std::make_move_iterator(decisions.end()));
  result.unknownNames = rules.unknown();
  return result;
}

}  // namespace fusebox::inductor
