#pragma once

#include <Python.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/capture/cpython/py_ref.h"
#include "engine/capture/evaluation/number_expr.h"
#include "engine/graph/shape_env.h"

namespace fusebox::capture {

// What expressions over symbols cannot say (a square root, the int of a float, a comparison of floats) is a symbol of its own, which every call
// computes from the others as Python would, without Python (graph::ComputedSymbol).

/// An operand in a call.
struct NumberValue {
  int64_t whole = 0;  ///< of an int
  double real = 0;    ///< of either
};
using IntFunction = std::function<std::optional<int64_t>(std::span<const NumberValue>)>;

/// The symbol of `function` of the operands; `name` says which function it is. nullopt: it has no value in this capture.
std::optional<graph::SymExpr> computedInt(graph::ShapeEnv& shapes, const std::string& name, std::vector<NumberExpr> operands, IntFunction function,
                                          int64_t lower = INT64_MIN, int64_t upper = INT64_MAX);

/// The operator with CPython's NB_ number of two ints.
std::optional<graph::SymExpr> computedOperator(int op, const NumberExpr& a, const NumberExpr& b, graph::ShapeEnv& shapes);
/// The truth of `op` (Py_LT, …) between numbers of which one is a float; decided, so that it is a guard. nullopt: it is not known how.
std::optional<bool> decideFloats(int op, const NumberExpr& a, const NumberExpr& b, graph::ShapeEnv& shapes);
/// 'f' floor, 'c' ceil, 't' int(), 'r' round() of a float.
std::optional<graph::SymExpr> computedRounding(char how, const NumberExpr& n, graph::ShapeEnv& shapes);
/// A float operation that has a value wherever the guards hold; nullopt: none in this capture.
std::optional<NumberExpr> floatOperation(NumberExpr::Kind kind, NumberExpr a, std::optional<NumberExpr> b, graph::ShapeEnv& shapes);

/// A function of module math whose arguments are numbers, some of them symbolic; null without error: it has no expression.
PyRef symbolicMath(PyObject* callable, std::span<PyObject* const> args);

}  // namespace fusebox::capture
