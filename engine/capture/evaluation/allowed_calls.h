#pragma once

#include <Python.h>

namespace fusebox::capture {

/// torch.compiler.allow_in_graph marked the function, ours or the one of stock's: nobody looks for breaks inside it.
bool isAllowedInGraph(PyObject* function);

}  // namespace fusebox::capture
