#pragma once

#include "profiler/session/sqlite.h"

namespace fusebox::importing {

/// Gives each kernel the user's Python function in which it was first launched, and each operator that of its call, where a profiler
/// recorded the stack: file and line of
/// the innermost function that belongs to neither PyTorch nor Python's own wrappers. What autograd's thread launched gets the
/// function of the operator whose gradient it is, by the sequence number that both carry. The line is the one at which the profiler
/// names the function: where it begins, or where it stood when the recording did. Needs `called_ns` and `thread` of device events.
Result<void> placeByStacks(session::Database& database);

}  // namespace fusebox::importing
