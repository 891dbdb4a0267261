#pragma once

#include <Python.h>

#include <cstdint>
#include <string_view>

namespace fusebox::capture {

/// Whose code a namespace holds, by the module it belongs to.
enum class Library : uint8_t { Standard, Torch };
bool isLibraryNamespace(PyObject* globals, Library library);
/// "torch" of the globals of torch.nn.functional.
std::string_view packageOf(PyObject* globals);

/// Whether every function and class in a namespace is torch's or the standard library's: what torch's functions call there is what
/// torch put there. Remembered until the namespace changes.
bool isUntouched(PyObject* globals);
/// For a Custom guard: the namespace holds what it held when namespaceState() was asked. Runs no Python.
bool sameNamespace(PyObject* globals, PyObject* state);
/// New reference.
PyObject* namespaceState(PyObject* globals);

/// Whether no method of C and no special method of a tensor class was replaced by the program's. Runs no Python, and costs a
/// comparison while the class does not change.
bool hasTorchsMethods(PyTypeObject* tensorClass);

}  // namespace fusebox::capture
