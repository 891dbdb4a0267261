#pragma once

#include <functional>

#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {

class Evaluation;

/// What `call`, of C code that reaches libtorch's dispatcher with wrappers among its tensors, gives. While it runs, a torch dispatch mode of the
/// evaluator's stands before the classes: an operator on a wrapper is asked of its class's `__torch_dispatch__`, which is interpreted.
/// `isNested`: of nested tensors, whose tensors inside have the history (nested_tensors.h); operators on others are computed as the program's own.
PyRef dispatched(Evaluation& e, const std::function<PyRef()>& call, bool isNested = false);

/// Whether `__torch_dispatch__` of a class is being interpreted on this thread. A compiler by levels, as torch's is, meets that code below its
/// capture, so that marks which keep functions out of capture do not count there.
bool isInsideDispatch();

}  // namespace fusebox::capture
