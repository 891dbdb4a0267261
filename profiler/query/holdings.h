#pragma once

#include <cstdint>
#include <string>

namespace fusebox::session {
class Reader;
}

namespace fusebox::query {

/// What a session may speak of.
enum class Holding : uint8_t {
  Breaks,           ///< where capture stopped, and why
  Recompiles,       ///< what was compiled again, and why
  Guards,           ///< assumptions of compiled code
  Graphs,           ///< of any stage
  Kernels,          ///< that a compiler made of them
  FusionDecisions,  ///< pairs that became one kernel or did not, with the reason
  MemoryPlans,      ///< buffers of compiled graphs over their steps
  CompileTimes,     ///< stages of the compiler
  RunTimes,         ///< calls of compiled code, spans of what ran
  Launches,         ///< of kernels
  Calls,            ///< of compiled code, each
};

/// What the source of a session can tell at all. Where it cannot tell of something, an empty list says nothing about the program.
struct Holdings {
  std::string source;  ///< the imported file's format, or the engine of a recording
  uint32_t held = ~0U;
  bool isOver = false;          ///< nothing more will come
  bool isCompiled = true;       ///< something was
  bool has(Holding what) const { return (held >> static_cast<uint32_t>(what) & 1U) != 0; }
};

Holdings holdingsOf(const session::Reader& reader);

}  // namespace fusebox::query
