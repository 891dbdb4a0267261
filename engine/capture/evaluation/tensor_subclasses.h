#pragma once

#include <Python.h>

#include "engine/capture/cpython/py_ref.h"
#include "engine/capture/evaluation/source.h"

namespace fusebox::capture {

class Evaluation;
struct CallArguments;

// Tensors whose class answers torch's functions in Python (`__torch_function__`), as quantised tensors do. They are objects with attributes to the
// evaluator, never tensors of the graph: torch's functions lead to the class's own, which is interpreted, and what that computes with the tensors
// inside is the graph. What would reach the dispatcher (`__torch_dispatch__`) is a break.

/// Whether `object` is such a tensor. Cheap for others.
bool answersTorchFunctions(PyObject* object);
/// Whether it is one, or a tuple or list with one.
bool holdsSubclass(PyObject* given);
/// Whether tensors of a class are such.
bool classAnswersTorchFunctions(PyTypeObject* type);
/// Guards what such a tensor says of itself: sizes, type, device. A break where it requires a gradient.
void guardSubclass(Evaluation& e, PyObject* tensor, const Source* source);
/// A C attribute of one: `descriptor` of torch's class, read as `name`.
PyRef subclassAttribute(Evaluation& e, PyObject* tensor, PyObject* descriptor);
/// A call of a C function. `handled` is false where no such tensor is among the arguments, or the function does not ask its class.
PyRef callOfSubclass(Evaluation& e, PyObject* callable, const CallArguments& a, bool* handled);
/// `a` and `b`, of which one is such a tensor, under an operator of Python that no class of theirs has a method for: "__add__".
PyRef operatorOfSubclass(Evaluation& e, const char* method, PyObject* a, PyObject* b);
/// A break where one of the operands is such a tensor: an operator reaches its class from C.
void refuseSubclassOperands(Evaluation& e, PyObject* a, PyObject* b = nullptr);

}  // namespace fusebox::capture
