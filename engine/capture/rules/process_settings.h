#pragma once

#include "engine/capture/evaluation/evaluation.h"

namespace fusebox::capture {

/// The rule of a function of torch._C that changes a setting of the process which another one tells: setting it to what it is already changes
/// nothing, and that is guarded; all else is a break. Null for all others.
CallRule processSettingOf(PyObject* callable);

}  // namespace fusebox::capture
