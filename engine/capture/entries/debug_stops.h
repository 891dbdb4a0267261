#pragma once

#include <string>

#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/interpreter.h"
#include "engine/debug/checkpoint.h"
#include "engine/record/recorder.h"

/// Where a debugger can stop capture. Costs one relaxed load each while none is attached.
namespace fusebox::capture {

/// Thrown out of an evaluation whose frame the person at the debugger, or the program, leaves to Python.
struct FrameSkipped {
  std::string why = "skipped in the debugger";
};

/// Whether a log wants to hear of every instruction.
inline bool tellsInstructions() {
  const record::Listener* hears = record::Recorder::listener();
  return hears && hears->wantsInstructions.load(std::memory_order_relaxed);
}

/// step(), where what tracing cannot follow is a break at the frame's place.
Flow placedStep(Evaluation& e, Frame& frame);
/// The same with a stop before the instruction and where it cannot be followed, and a line in the logs.
Flow watchedStep(Evaluation& e, Frame& frame);
inline Flow tracedStep(Evaluation& e, Frame& frame) {
  if (debug::armedAny(debug::bit(debug::Kind::Line) | debug::bit(debug::Kind::GraphBreak)) || tellsInstructions()) [[unlikely]]
    return watchedStep(e, frame);
  return placedStep(e, frame);
}

/// A decision leaves one value for a symbolic number of the capture. With the GIL.
void stopAtSpecialise(Evaluation& e, const graph::SymExpr& expression, int64_t value, std::string_view reason);

/// A break that no instruction told of (a forced one, an exception that leaves the frame). True: skip the frame.
bool stopAtBreak(const FrameState& state, const GraphBreak& why);

/// An entry is about to be made from `state`, beside `entries` others; of a recompile, `why` is the guard that failed (null: none
/// did). True: skip the frame.
bool stopAtCompile(bool isRecompile, const FrameState& state, int entries, const GuardFailure* why);
/// Before (`made` null) or after the traced graph is cut into a forward and a backward one.
void stopAtFunctionalisation(const graph::Graph& traced, const aot::AotModule* made);
/// The compiler failed while `where`, on a thread that holds the GIL.
void stopAtError(const char* where, const std::string& what);
/// A guard of entry number `entry` failed; `outcome` is recompile or limit.
void stopAtGuardFailure(const FrameState& state, const GuardFailure& failure, int entry, const char* outcome);

}  // namespace fusebox::capture
