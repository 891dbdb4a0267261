#pragma once

#include <atomic>
#include <cstdint>

/// Places where the compiler can be stopped. This header is all that such a place needs while nobody debugs: one
/// relaxed load.
namespace fusebox::debug {

enum class Kind : uint8_t {
  Compile,        ///< a frame (or what follows a break) is about to be captured
  Line,           ///< the evaluator is about to trace an instruction
  GraphBreak,     ///< capture cannot follow an instruction
  GuardFailure,   ///< a guard of an existing entry does not hold
  Recompile,      ///< a further entry is about to be made for a place that has some
  Pass,           ///< before or after a stage of the pipeline, or a pass inside one
  Fusion,         ///< two groups of operations are about to be fused, or left apart
  KernelCompile,  ///< before or after code is generated for a kernel
  KernelLaunch,   ///< a kernel or an operator is about to run
  Error,          ///< the compiler failed; the program goes on without
  Specialise,     ///< a decision of capture leaves one value for a symbolic number
};
inline constexpr int kKinds = 11;

namespace detail {
/// One bit a kind that anybody waits for; all zero without a debugger.
extern std::atomic<uint32_t> armed;
}  // namespace detail

constexpr uint32_t bit(Kind kind) { return 1u << static_cast<unsigned>(kind); }
inline bool armed(Kind kind) noexcept { return detail::armed.load(std::memory_order_relaxed) & bit(kind); }
inline bool armedAny(uint32_t kinds) noexcept { return detail::armed.load(std::memory_order_relaxed) & kinds; }

}  // namespace fusebox::debug
