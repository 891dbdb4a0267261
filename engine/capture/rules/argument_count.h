#pragma once

#include "engine/capture/evaluation/evaluation.h"

namespace fusebox::capture {

/// Whether a C function or method could take these arguments, as far as it says what it takes (flags, __text_signature__): rules
/// look at arguments by position and are not asked about calls that raise TypeError. True for everything else.
/// `withSelf`: the first argument is the object of a bound method.
bool mayTake(PyObject* callable, const CallArguments& a, bool withSelf);

}  // namespace fusebox::capture
