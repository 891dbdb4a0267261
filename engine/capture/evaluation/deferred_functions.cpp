// Functions and operators of numbers that data decide which raise for some: that they do not is assumed.
#include <ATen/ops/cos.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/log.h>
#include <ATen/ops/log10.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/log2.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/tanh.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/deferred_numbers.h"
#include "engine/capture/evaluation/operator_numbers.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {

namespace {

constexpr int kDeepest = 64;

bool isFloat(PyObject* o) { return pythonTypeOf(o) == &PyFloat_Type && !isArrayScalar(o); }
bool isDeferredFloat(PyObject* o) { return isDeferred(o) && isFloat(o); }

/// Null: too much has been computed with it.
PyRef made(DeferredNumber number) {
  for (PyObject* side : {number.left.get(), number.right.get()})
    if (side && isDeferred(side)) number.depth = std::max(number.depth, deferredNumber(side).depth + 1);
  return number.depth > kDeepest ? PyRef() : newDeferred(&PyFloat_Type, std::move(number));
}

/// From here on `a OP b` (Py_LT, …) has this outcome. False: that cannot be said.
bool assume(Evaluation& e, int op, PyObject* a, double b, bool outcome) {
  const PyRef number = PyRef::steal(PyFloat_FromDouble(b)), condition = deferredComparison(op, a, number.get());
  if (!condition) return clearError(), false;
  return PyBool_Check(condition.get()) ? (condition.get() == Py_True) == outcome : assumeTruth(e, condition.get(), outcome);
}

/// `result`, which Python raises for where it is infinite.
PyRef finite(Evaluation& e, PyRef result, bool mayBeNegative) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!result || !assume(e, Py_EQ, result.get(), kInfinity, false)) return {};
  return !mayBeNegative || assume(e, Py_EQ, result.get(), -kInfinity, false) ? std::move(result) : PyRef();
}

struct MathFunction {
  PyObject* function;
  at::Tensor (*compute)(const at::Tensor&);
  enum Domain : uint8_t { All, NotNegative, Positive, AboveMinusOne, Finite } domain = All;
  bool overflows = false;
};

const MathFunction* mathFunctionOf(PyObject* function) {
  static const MathFunction known[] = {
      {torchObject("math.sqrt"), &at::sqrt, MathFunction::NotNegative}, {torchObject("math.exp"), &at::exp, MathFunction::All, true},
      {torchObject("math.log"), &at::log, MathFunction::Positive},      {torchObject("math.log2"), &at::log2, MathFunction::Positive},
      {torchObject("math.log10"), &at::log10, MathFunction::Positive},  {torchObject("math.log1p"), &at::log1p, MathFunction::AboveMinusOne},
      {torchObject("math.sin"), &at::sin, MathFunction::Finite},        {torchObject("math.cos"), &at::cos, MathFunction::Finite},
      {torchObject("math.tanh"), &at::tanh}};
  const auto* found = std::find_if(std::begin(known), std::end(known), [&](const MathFunction& row) { return row.function == function; });
  return found == std::end(known) ? nullptr : found;
}

bool isWithin(Evaluation& e, MathFunction::Domain domain, PyObject* x) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (domain) {
    case MathFunction::All: return true;
    case MathFunction::NotNegative: return assume(e, Py_LT, x, 0, false);
    case MathFunction::Positive: return assume(e, Py_GT, x, 0, true);
    case MathFunction::AboveMinusOne: return assume(e, Py_GT, x, -1, true);
    case MathFunction::Finite: return assume(e, Py_EQ, x, kInfinity, false) && assume(e, Py_EQ, x, -kInfinity, false);
  }
  return false;
}

}  // namespace

at::Tensor (*tensorFunctionOf(PyObject* function))(const at::Tensor&) {
  const MathFunction* known = mathFunctionOf(function);
  return known ? known->compute : nullptr;
}

PyRef deferredThatMayRaise(Evaluation& e, int op, PyObject* a, PyObject* b) {
  const auto isPlain = [](PyObject* o) { return PyFloat_CheckExact(o) || isFloat(o) || (PyLong_CheckExact(o) && (PyLong_AsDouble(o) != -1 || !PyErr_Occurred())); };
  if (op == kTrueDivide && isDeferredFloat(b) && isPlain(a)) {
    return !assume(e, Py_EQ, b, 0, false) ? PyRef() : made({.op = op, .left = PyRef::borrow(a), .right = PyRef::borrow(b)});
  }
  clearError();
  const bool isNumber = PyFloat_CheckExact(b) || PyLong_CheckExact(b);
  const double exponent = op == kPower && isNumber ? PyFloat_AsDouble(b) : NAN;
  if (!isDeferredFloat(a) || !std::isfinite(exponent)) return clearError(), PyRef();
  const bool isWhole = exponent >= 0 && exponent == std::floor(exponent);
  if (!isWhole && !assume(e, Py_GT, a, 0, true)) return {};
  return finite(e, made({.op = op, .left = PyRef::borrow(a), .right = PyRef::borrow(b)}), isWhole);
}

PyRef deferredFunction(Evaluation& e, PyObject* function, std::span<PyObject* const> args) {
  if (args.empty() || !isDeferredFloat(args[0])) return {};
  static PyObject* const round = torchObject("builtins.round");
  if (function == round && args.size() == 2 && PyLong_CheckExact(args[1]))
    return made({.op = DeferredNumber::kFunction, .function = function, .left = PyRef::borrow(args[0]), .right = PyRef::borrow(args[1])});
  const MathFunction* known = args.size() == 1 ? mathFunctionOf(function) : nullptr;
  if (!known || !isWithin(e, known->domain, args[0])) return {};
  PyRef result = made({.op = DeferredNumber::kFunction, .function = function, .left = PyRef::borrow(args[0])});
  return known->overflows ? finite(e, std::move(result), false) : std::move(result);
}

PyRef deferredExtreme(bool larger, PyObject* a, PyObject* b) {
  const auto fits = [](PyObject* o) { return PyFloat_CheckExact(o) || isFloat(o); };
  if ((!isDeferredFloat(a) && !isDeferredFloat(b)) || !fits(a) || !fits(b)) return {};
  return made({.op = larger ? DeferredNumber::kLarger : DeferredNumber::kSmaller, .left = PyRef::borrow(a), .right = PyRef::borrow(b)});
}

}  // namespace fusebox::capture
