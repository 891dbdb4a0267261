#include <fmt/format.h>

#include "engine/inductor/program_emit.h"
#include "engine/inductor/schedule_node.h"

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

}  // namespace

Result<Schedule> schedule(const LoweredGraph& lowered, const ScheduleOptions& options) {
  if (auto checked = check(lowered); !checked) return tl::unexpected(checked.error());
  std::vector<ScheduleNode> nodes = makeNodes(lowered);
  removeDeadNodes(lowered, nodes);
  std::vector<int32_t> order;
  for (const ScheduleNode& node : nodes)
    if (!node.isDead) order.push_back(node.id);
  return emitProgram(lowered, nodes, order, options);
}

}  // namespace fusebox::inductor
