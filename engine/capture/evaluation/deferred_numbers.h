#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string>
#include <string_view>

#include "engine/capture/cpython/py_ref.h"
#include "engine/capture/evaluation/evaluation.h"

namespace fusebox::capture {

// Numbers that the program reads from tensors: item(), tolist(), int(), float(). What they are is known when the graph
// has run, so the evaluator holds a symbolic number without an expression (symbolic_numbers.h): it may be handed on,
// computed with and put away, and is read from a result of the graph where a recipe needs it. Whatever asks for the number
// before that is a graph break there.
//
// Conditions on them, and on tensors, are bools of the same kind. Where one of their outcomes makes the program raise, it is assumed to be the
// other one: the graph checks that when it runs, and a call for which it does not hold is the program's, which raises.

/// An int, float or bool of Python that is read from a tensor, or made of such by an operator that cannot raise.
struct DeferredNumber {
  enum Op { kRead = -1, kToFloat = 100, kNegate, kAbsolute, kNot, kLarger, kSmaller, kFunction, kCompare = 200 };  ///< besides CPython's NB_ numbers; kCompare + Py_LT, …
  int op = kRead;
  PyObject* function = nullptr;  ///< of kFunction: one of C that takes the operands, for the life of the process
  PyRef left, right;        ///< operands; `right` null where there is one
  PyRef tensor;             ///< of kRead: a copy of what is read, as it was then
  PyRef list;               ///< of kRead from tolist(): shared by the elements; the program never sees it
  Py_ssize_t element = -1;  ///< of kRead from tolist()
  int depth = 0;
  std::string readAt;       ///< "file:line" of a read
  // Of a number of numpy's:
  PyRef python;             ///< the same number as Python's, where it is an input that is a symbol
  int madeBy = kRead;       ///< the operator that made it of `left` and `right`, plain numbers too
};

bool isDeferred(PyObject* object);
const DeferredNumber& deferredNumber(PyObject* object);
/// New reference; `type` is that of Python: float, int or bool.
PyRef newDeferred(PyTypeObject* type, DeferredNumber number);
/// Whether numbers of a class of numpy's can be newArrayScalar()'s: those of unsigned types of 16 bits and more, of float16 and complex ones cannot.
bool hasArrayScalar(PyTypeObject* type);
/// numpy's number of the type of `number.tensor`, which is read; null without error: it has none.
PyRef newArrayScalar(DeferredNumber number);
/// A number of numpy's as Python's number of the same value, where guards can say what it is; others, and plain ones of numpy's, likewise. Null without
/// error: it is known when the graph has run.
PyRef pythonNumberOf(PyObject* number);
/// That number of numpy's, made by an operator of `left` and `right` (null where there is one operand); anything else as it is.
PyRef madeByOperator(PyRef number, int op, PyObject* left, PyObject* right);
/// A graph break: the number is needed because of `use`.
[[noreturn]] void refuseDeferred(PyObject* number, std::string_view use);

/// A size, a bound of a slice or the like is wanted: an int becomes a symbol (symbolic_numbers.h), whose value the graph finds. False: it cannot.
bool settleDeferred(PyObject* number);

/// The operator with CPython's NB_ number (not in place) of two plain numbers, one of them deferred; a break where it
/// may raise.
PyRef deferredArithmetic(int op, PyObject* a, PyObject* b);
/// A quotient or a power of floats, one of which data decide: that Python does not raise is assumed. Null without error: it is another operator, or that
/// cannot be assumed.
PyRef deferredThatMayRaise(Evaluation& e, int op, PyObject* a, PyObject* b);
/// A function of module math, or round(x, digits), of a float that data decide; the same holds of it.
PyRef deferredFunction(Evaluation& e, PyObject* function, std::span<PyObject* const> args);
/// max(a, b) or min(a, b) of two floats, one of which data decide. Null without error: they are not such.
PyRef deferredExtreme(bool larger, PyObject* a, PyObject* b);
/// An operator of DeferredNumber::Op; a break where it may raise.
PyRef deferredUnary(DeferredNumber::Op op, PyObject* number);

/// A comparison (Py_LT, …) of two numbers, one of which data decide. Null without error: it is none of those, or its outcome is known.
PyRef deferredComparison(int op, PyObject* a, PyObject* b);
/// `not` of a bool that data decide.
PyRef deferredNot(PyObject* truth);
/// The outcome of a condition that is needed now: a break where data decide it.
bool decideTruth(PyObject* number);
/// From here on the condition has this outcome in every call of the graph: a bool that data decide, or a tensor of one element. False: that cannot be
/// said of it.
bool assumeTruth(Evaluation& e, PyObject* condition, bool outcome);

/// torch's function for one that deferredFunction() takes; null: it has none.
at::Tensor (*tensorFunctionOf(PyObject* function))(const at::Tensor&);

/// The comparison (Py_LT, …) of two such numbers as a tensor of one bool; undefined: a tensor might say something else.
at::Tensor deferredAsTensor(int op, PyObject* a, PyObject* b);

/// A float that data decide as a tensor without dimensions, exactly; null without error: it has none.
PyRef deferredTensor(Evaluation& e, PyObject* number);

/// item() of a stand-in ('v'), int() ('i') or float() ('f'). Null without error: it is not to be deferred.
PyRef deferredItem(Evaluation& e, PyObject* tensor, char how);
/// A tensor of no dimension as numpy's number. `python`: that number, where guards say what it is.
PyRef deferredArrayScalar(Evaluation& e, const at::Tensor& value, PyRef python = {});
/// bool() of numpy's number. Null without error: it is not to be deferred.
PyRef deferredTruth(Evaluation& e, PyObject* arrayScalar);
/// tolist() of one dimension of known length. Null without error: it is not to be deferred.
PyRef deferredList(Evaluation& e, PyObject* tensor);
/// The operator, maybe in place, of a deferred number and a tensor: as a graph's operator on the tensor that is read. A
/// break where that would not be what the number gives.
PyRef deferredBesideTensor(Evaluation& e, int op, PyObject* a, PyObject* b);

}  // namespace fusebox::capture
