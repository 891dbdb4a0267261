#include "engine/inductor/schedule/schedule_node.h"
#include "engine/graph/symbol_values.h"

#include <algorithm>

#include "engine/inductor/ir/loop_canonical.h"

namespace fusebox::inductor {
namespace {

void sortUnique(std::vector<BufferId>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

}  // namespace

std::vector<Access> accessesOf(const Kernel& kernel) {
  std::vector<Access> accesses;
  auto add = [&](size_t first, Access access) {
    for (size_t i = first; i < accesses.size(); ++i) {
      const Access& known = accesses[i];
      if (known.buffer == access.buffer && known.isStore == access.isStore && known.isPlain == access.isPlain &&
          known.index == access.index)
        return;
    }
    accesses.push_back(std::move(access));
  };
  for (size_t s = 0; s < kernel.sections.size(); ++s) {
    const size_t first = accesses.size();
    const auto section = static_cast<int32_t>(s);
    for (const Value& value : kernel.sections[s].values)
      if (value.op == Op::Load) add(first, {value.buffer, value.index, section, false, true});
    for (const Statement& statement : kernel.sections[s].body) {
      if (statement.kind == Statement::Kind::Reduce) continue;
      const bool plain = statement.kind == Statement::Kind::Store && statement.mask < 0;
      add(first, {statement.buffer, statement.index, section, true, plain});
    }
  }
  return accesses;
}

BufferId baseOf(const LoweredGraph& lowered, BufferId id) {
  while (id >= 0 && lowered.buffers[static_cast<size_t>(id)].kind == LoweredBuffer::Kind::View)
    id = lowered.buffers[static_cast<size_t>(id)].base;
  return id;
}

std::vector<ScheduleNode> makeNodes(const LoweredGraph& lowered) {
  std::vector<ScheduleNode> nodes;
  nodes.reserve(lowered.operations.size());
  for (const Operation& operation : lowered.operations) {
    ScheduleNode node;
    node.id = static_cast<int32_t>(nodes.size());
    node.isExtern = operation.kind == Operation::Kind::Extern;
    node.operations = {operation.id};
    if (node.isExtern) {
      node.reads = operation.reads;
      node.writes = operation.writes;
      for (BufferId result : operation.call.results)
        if (result >= 0) node.writes.push_back(result);
      graph::Graph::forEachValue(operation.call.args, [&](graph::ValueRef ref) { node.reads.push_back(ref.node); });
    } else {
      node.kernel = operation.kernel;
      if (!node.kernel.attention) canonicaliseLoops(node.kernel);
      node.accesses = accessesOf(node.kernel);
      for (const Access& access : node.accesses) {
        (access.isStore ? node.writes : node.reads).push_back(access.buffer);
        if (access.isStore && !access.isPlain) node.reads.push_back(access.buffer);  // what is there already matters
      }
    }
    for (auto* list : {&node.reads, &node.writes}) {
      for (BufferId& id : *list) id = baseOf(lowered, id);
      sortUnique(*list);
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

std::vector<char> resultBuffers(const LoweredGraph& lowered) {
  std::vector<char> isResult(lowered.buffers.size(), 0);
  graph::Graph::forEachValue(lowered.results, [&](graph::ValueRef ref) {
    if (ref.node >= 0) isResult[static_cast<size_t>(baseOf(lowered, ref.node))] = 1;
  });
  return isResult;
}

void removeDeadNodes(const LoweredGraph& lowered, std::vector<ScheduleNode>& nodes) {
  std::vector<char> needed = resultBuffers(lowered);
  for (const LoweredBuffer& buffer : lowered.buffers)
    if (buffer.isKept || buffer.kind != LoweredBuffer::Kind::Computed) needed[static_cast<size_t>(buffer.id)] = 1;
  for (size_t i = nodes.size(); i-- > 0;) {
    ScheduleNode& node = nodes[i];
    node.isDead = !node.isExtern && std::none_of(node.writes.begin(), node.writes.end(),
                                                 [&](BufferId id) { return needed[static_cast<size_t>(id)]; });
    if (node.isDead) continue;
    for (BufferId id : node.reads) needed[static_cast<size_t>(id)] = 1;
  }
}

std::vector<BufferUses> usesOf(const LoweredGraph& lowered, const std::vector<ScheduleNode>& nodes) {
  std::vector<BufferUses> uses(lowered.buffers.size());
  for (const ScheduleNode& node : nodes) {
    if (node.isDead) continue;
    for (BufferId id : node.reads) uses[static_cast<size_t>(id)].readers.push_back(node.id);
    for (BufferId id : node.writes) uses[static_cast<size_t>(id)].writers.push_back(node.id);
  }
  return uses;
}

SymExpr reachableElements(const graph::TensorMeta& meta) {
  SymExpr last = 0;
  for (size_t d = 0; d < meta.sizes.size(); ++d) {
    if (meta.sizes[d] == SymExpr(0)) return 0;
    last += (meta.sizes[d] - 1) * meta.strides[d];
  }
  return last + 1;
}

}  // namespace fusebox::inductor
