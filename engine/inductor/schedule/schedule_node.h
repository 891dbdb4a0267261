#pragma once

#include <string>
#include <vector>

#include "engine/inductor/ir/lowered_graph.h"

namespace fusebox::inductor {

/// One way in which a kernel touches a buffer.
struct Access {
  BufferId buffer = -1;
  SymExpr index;
  int32_t section = 0;
  bool isStore = false;
  bool isPlain = true;  ///< neither a masked store nor an atomic addition
};

/// Every access of the kernel, equal ones once for each section.
std::vector<Access> accessesOf(const Kernel& kernel);

/// A group of operations on its way through the scheduler: first one operation each, later what one kernel will carry out.
struct ScheduleNode {
  int32_t id = -1;
  bool isExtern = false;
  bool isDead = false;                 ///< merged into another node, or not needed
  std::vector<int32_t> operations;     ///< ids, in an order in which they could run one after another
  Kernel kernel;                       ///< buffers are the lowered graph's; roles, sizes and names come with emission
  std::vector<Access> accesses;        ///< of `kernel`
  std::vector<BufferId> reads, writes; ///< sorted, without duplicates
  int64_t bytesSaved = 0;
  std::vector<int32_t> beside;         ///< nodes that are carried out at the same time, each with its own kernel; dead by themselves

  int32_t firstOperation() const { return operations.front(); }
};

/// Whether nothing is ever merged with the node.
inline bool standsAlone(const ScheduleNode& node) { return node.isExtern || node.kernel.attention; }

/// Which nodes use each buffer.
struct BufferUses {
  std::vector<int32_t> writers, readers;  ///< node ids, ascending; a node that does both is in both
};

/// One node for each operation, with axes of extent 1 removed and neighbouring axes merged.
std::vector<ScheduleNode> makeNodes(const LoweredGraph& lowered);

/// Marks nodes dead whose results nobody needs. Extern calls stay: graph passes know which of them have effects.
void removeDeadNodes(const LoweredGraph& lowered, std::vector<ScheduleNode>& nodes);

/// The buffer that holds `id`'s memory: the base for a view.
BufferId baseOf(const LoweredGraph& lowered, BufferId id);

/// Buffers that a result refers to, views resolved.
std::vector<char> resultBuffers(const LoweredGraph& lowered);

std::vector<BufferUses> usesOf(const LoweredGraph& lowered, const std::vector<ScheduleNode>& nodes);

/// Elements from a tensor's first to its last, the gaps included.
SymExpr reachableElements(const graph::TensorMeta& meta);

}  // namespace fusebox::inductor
