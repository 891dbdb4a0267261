#pragma once

#include <Python.h>

#include <memory>
#include <string_view>

#include "engine/capture/cpython/py_ref.h"
#include "engine/capture/evaluation/number_expr.h"
#include "engine/graph/shape_env.h"

namespace fusebox::capture {

// Ints (and floats made of them) that are expressions over the symbols of a capture. The evaluator holds them as objects of a type of
// their own that calls itself int, float or bool: arithmetic gives expressions, a comparison is decided by the environment, which makes a
// guard of it, and C code that wants the number gets it, which makes a constant of the expression by a guard. No such object reaches the program.

/// Whether it is one of these objects.
bool isSymbolicNumber(PyObject* object);
bool isSymbolicInt(PyObject* object);
bool isSymbolicFloat(PyObject* object);
/// A bool that data decide (deferred_numbers.h).
bool isSymbolicBool(PyObject* object);
/// A number of numpy that data decide (arrays.h); none of the three above.
bool isArrayScalar(PyObject* object);
/// What it is; of a symbolic number.
const NumberExpr& numberExpr(PyObject* object);
const std::shared_ptr<graph::ShapeEnv>& shapesOf(PyObject* symbolic);
/// int, float, bool or numpy's type for these, str for a text of them (symbolic_texts.h), the object's own type for all others.
PyTypeObject* pythonTypeOf(PyObject* object);

/// New reference: the object; a plain int or float where it is a constant.
PyRef newSymbolicNumber(const std::shared_ptr<graph::ShapeEnv>& shapes, NumberExpr number);
PyRef newSymbolicInt(const std::shared_ptr<graph::ShapeEnv>& shapes, const graph::SymExpr& e);
/// A number that was read from a tensor is this expression from now on.
void becomeSymbolic(PyObject* deferred, const std::shared_ptr<graph::ShapeEnv>& shapes, NumberExpr number);
/// The number itself, which is a constant of the capture from now on because of `reason`.
PyRef specialisedNumber(PyObject* symbolic, std::string_view reason);

/// The operator with CPython's NB_ number (not in place) where one operand is a symbolic number: as Python computes it. Where the
/// result has no expression the operands become constants. Null without error: the other operand is no plain number.
PyRef symbolicArithmetic(int op, PyObject* a, PyObject* b);
/// 1, 0, -1 with an error set; -2: the other operand is no plain number. It is decided now, or a break.
int symbolicComparison(int op, PyObject* a, PyObject* b);
bool symbolicTruth(PyObject* symbolic);
PyRef symbolicNegative(PyObject* symbolic);
PyRef symbolicAbsolute(PyObject* symbolic);
/// 'f' floor, 'c' ceil, 't' int(), 'r' round().
PyRef symbolicRounded(char how, PyObject* symbolic);
/// float().
PyRef symbolicToFloat(PyObject* symbolic);
/// The larger (or smaller) of two numbers without a decision; null without error where it has no expression.
PyRef symbolicExtreme(bool larger, PyObject* a, PyObject* b);

}  // namespace fusebox::capture
