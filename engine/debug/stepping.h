#pragma once

#include <cstdint>
#include <thread>

#include "engine/debug/site.h"

namespace fusebox::debug {

/// Nesting of an event that is no line: a stage 0, a pass or a kernel 1, a fusion 2.
int nesting(const Event& event);

/// Where a step ends, seen from where it began. Line stops are ordered by the depth of the program's frames; stages,
/// passes inside them and decisions inside those by their level. A failure, a break, a new capture and the next stage
/// after a capture end every step on the same thread; nothing on another thread does, but for kernels that are compiled
/// in parallel.
struct Step {
  enum class How : uint8_t { Over, Into, Out } how = How::Over;
  bool byInstruction = false;  ///< at a Line stop: the next instruction instead of the next line
  Kind kind = Kind::Line;      ///< of the stop it began at
  int depth = 0, line = 0;
  const void* frame = nullptr;
  std::thread::id thread;

  bool endsAt(const Event& event, std::thread::id on) const;
  /// Kinds that have to be armed while it lasts.
  uint32_t kinds() const;
};

}  // namespace fusebox::debug
