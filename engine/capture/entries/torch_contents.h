#pragma once

#include "engine/capture/effects/segment.h"

namespace fusebox::capture {

/// Whether a frame may have to do with torch: a tensor, an array, a module or anything of torch is among its values or within them, or its code names
/// something of torch. One whose tensors cannot be traced computes nothing that could be. Where it has not, what it calls may still; what it does itself costs less to run than to guard. Runs no code of the program.
bool mayComputeWithTorch(const FrameState& state);

/// Whether a tensor, an array, a module or anything of torch is the object or within it, or may be: it is not searched for long.
bool holdsTorch(PyObject* object);

}  // namespace fusebox::capture
