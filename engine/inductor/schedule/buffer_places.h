#pragma once

#include <vector>

#include "engine/inductor/schedule/schedule_node.h"

namespace fusebox::inductor {

/// First and last step (position in the order of execution) that touch a buffer's memory; -1 if none does.
struct Lifetime {
  int32_t first = -1, last = -1;
};

/// Where every buffer of a program lies.
struct BufferPlaces {
  std::vector<ProgramBuffer> buffers;
  std::vector<Lifetime> lifetimes;     ///< of each buffer by itself
  std::vector<BufferId> memory;        ///< whose memory a buffer lies in; itself if nobody else's
  std::vector<int32_t> lastUse;        ///< by memory: the last step that touches it through any buffer
  std::vector<char> isHandedOut;       ///< by memory: a result lies in it
  std::vector<BufferId> overwrites;    ///< the operand whose memory a result of a kernel takes over while it is read; -1 if none
  std::vector<char> isUnrepeatable;    ///< by step: it changes an input that something before it, or itself, has read
  std::vector<WriteDecision> writes;   ///< of inputs' new values
  int64_t poolBytes = 0, devicePoolBytes = 0;
  std::vector<PoolPlace> places;       ///< Program::places
  Device poolDevice;
};

/// Decides for `order` (live nodes in order of execution). Written inputs get their new value where they are, if it is computed after the
/// old one was read for the last time. Results of kernels take over the memory of operands that die there. The rest of the intermediates
/// lies in one pool a device, large ones of a GPU apart: those come and go between results, which a pool would have to stand beside.
BufferPlaces placeBuffers(const LoweredGraph& lowered, const std::vector<ScheduleNode>& nodes, const std::vector<int32_t>& order);

}  // namespace fusebox::inductor
