#pragma once

#include <Python.h>

#include <string>
#include <string_view>

namespace fusebox::capture {

/// Whether frames of this code are left to CPython although they run inside a compiled region: the standard library, the import
/// system, PyTorch's own machinery, this package, and code that is no function body. What such frames call is still looked at.
/// Library code that is model code (layers of torch.nn, optimisers) is not skipped. Code without a file (what dataclasses make) is of the module
/// whose `globals` it has; null: not known.
bool isSkipped(PyCodeObject* code, PyObject* globals);

/// Whether code of PyTorch traces programs: what it calls is not looked at.
bool isTracing(PyCodeObject* code);

/// Whether torch._disable_dynamo made a function: PyTorch's torch.compiler.disable for functions of its own, which wraps them in their first call.
bool isDisabledByTorch(PyObject* function);

/// Whether the file belongs to torch or to Python's standard library.
bool isLibraryPath(std::string_view path);

/// Adds a folder (with a trailing slash) whose code is skipped.
void addSkippedFolder(std::string folder);

}  // namespace fusebox::capture
