#pragma once

#include <Python.h>
#include <c10/core/SymIntArrayRef.h>

#include <initializer_list>

#include "engine/capture/cpython/py_ref.h"
#include "engine/capture/evaluation/source.h"

namespace fusebox::capture {

class Evaluation;
struct CallArguments;

// Tensors of classes of the program. Where a class answers torch's functions in Python (`__torch_function__`), a function of torch leads to the class's
// own, which is interpreted, unless torch does not ask classes there (DisableTorchFunctionSubclass). Those that have data of their own are tensors of the
// graph with a class. Wrappers, whose class has `__torch_dispatch__` in Python, are objects with attributes to the evaluator, never tensors of the
// graph: libtorch takes its operators apart, each is asked of the class, and what that computes with the tensors inside is the graph.

/// Whether an operator or function on such a tensor is the class's to answer now. Cheap for others.
bool answersTorchFunctions(PyObject* object);
/// Whether torch asks the class of an object, a tensor or not, for its `__torch_function__` in Python.
bool asksItsClass(PyObject* object);
/// Whether it is a tensor for which answersTorchFunctions(), or a tuple or list with one.
bool holdsSubclass(PyObject* given);
/// Whether tensors of a class are wrappers.
bool isWrapperClass(PyTypeObject* type);
/// Whether a class derives from torch.Tensor, is none of torch's own, and its tensors can be followed.
bool isFollowedClass(PyTypeObject* type);
/// torch asks nobody's class on this thread while it lives, unless `off` is false.
class ClassesNotAsked {
 public:
  explicit ClassesNotAsked(bool off = true);
  ~ClassesNotAsked();
  ClassesNotAsked(const ClassesNotAsked&) = delete;

 private:
  int before_;
};

/// A break where a gradient of a wrapper from outside may be wanted, or where it answers for its own sizes.
void refuseWrapper(Evaluation& e, PyObject* tensor);
/// A wrapper like another of the program's, with its attributes and storage, and of symbolic sizes; null: its class does not make one.
PyRef wrapperOfSizes(PyObject* wrapper, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides, const c10::SymInt& offset);
/// Whether it has symbolic sizes, as one that was made so, and what is computed from it.
bool standsForWrapper(PyObject* object);
/// A tensor of the graph that is an alias of another, or has its data without its history, and is of a class: what as_subclass and _make_subclass give.
PyRef ofClass(Evaluation& e, PyObject* tensor, PyTypeObject* type, bool detached);
/// A C attribute of one for which answersTorchFunctions(): `descriptor` of torch's class.
PyRef subclassAttribute(Evaluation& e, PyObject* tensor, PyObject* descriptor);
/// A call of a C function. `handled` is false where no such object is among the arguments, or the function does not ask its class.
PyRef callOfSubclass(Evaluation& e, PyObject* callable, const CallArguments& a, bool* handled);
/// The special method of torch.Tensor's that Python's operators call on the first of `args`, which is such a tensor or has one beside it.
PyRef methodOfSubclass(Evaluation& e, const char* method, std::initializer_list<PyObject*> args);
/// `a` and `b`, of which one is such a tensor, under an operator of Python that no class of the program has a method for; `inPlace` null: not in place.
PyRef operatorOfSubclass(Evaluation& e, const char* forward, const char* reflected, const char* inPlace, PyObject* a, PyObject* b);
/// A break where one of the operands is such a tensor: an operator reaches its class from C.
void refuseSubclassOperands(Evaluation& e, PyObject* a, PyObject* b = nullptr);

}  // namespace fusebox::capture
