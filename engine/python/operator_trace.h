#pragma once

namespace fusebox::python {

/// While on, every outermost operator that torch runs outside compiled graphs is told to the active recording with its time and the
/// user's line; of a backward operator the line of its forward one. An operator takes about a microsecond more (0.9 us for an add of
/// 3.6 us, 2 us in a training step of small layers). All may be called repeatedly, with the GIL.
enum class OperatorTrace {
  Launches,  ///< as launches of kernels of kind eager: run times of engines that are not ours, on the CPU
  Spans,     ///< so that the GPU's kernels find who asked for them. Replaces Launches.
};
void startOperatorTrace(OperatorTrace what);
void stopOperatorTrace();

}  // namespace fusebox::python
