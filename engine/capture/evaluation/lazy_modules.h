#pragma once

#include <Python.h>

namespace fusebox::capture {

class Evaluation;
struct CallArguments;

/// Before a call of a module of torch.nn whose parameters get their sizes from its first input (LazyLinear and its like). One that has none yet
/// is set up as that call would do it, by its own code, and capture starts over: throws CaptureBreak. Others, and calls before which the
/// segment has done something that such code may see, are left as they are.
void setUpLazyModule(Evaluation& e, PyObject* module, PyObject* dict, const CallArguments& a);

/// Whether a function sets up a lazy module: that happens once, and what it calls is not compiled.
bool setsUpLazyModule(PyObject* function);

}  // namespace fusebox::capture
