#pragma once

namespace fusebox::python {

/// While on, every outermost operator that torch runs outside compiled graphs is told to the active recording with its time and
/// the user's line, so that the GPU's kernels find who asked for them: of a backward operator the line of its forward one. An
/// operator costs about half a microsecond more. Both may be called repeatedly, with the GIL.
void startOperatorTrace();
void stopOperatorTrace();

}  // namespace fusebox::python
