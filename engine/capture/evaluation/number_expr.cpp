#include "engine/capture/evaluation/number_expr.h"

#include <algorithm>

namespace fusebox::capture {

using graph::applyFloat;
using graph::evaluateSmall;
using graph::SymAtom;
using graph::SymExpr;

namespace {

/// An int with Python's arithmetic.
PyRef evaluateAny(const SymExpr& e, const SymbolValue& value) {
  if (e.isConstant()) return PyRef::steal(PyLong_FromLongLong(e.constant()));
  PyRef sum = PyRef::steal(PyLong_FromLong(0));
  for (const SymExpr::Term& term : e.terms()) {
    PyRef product = PyRef::steal(PyLong_FromLongLong(term.coefficient));
    for (const SymAtom& atom : term.factors) {
      PyRef factor;
      if (atom.kind == SymAtom::Kind::Symbol) {
        const std::optional<int64_t> known = value(atom.symbol);
        if (!known) return PyErr_SetString(PyExc_SystemError, "fusebox: a symbol has no value"), PyRef();
        factor = PyRef::steal(PyLong_FromLongLong(*known));
      } else {
        PyRef a = evaluateAny(atom.a, value), b = a ? evaluateAny(atom.b, value) : PyRef();
        if (!b) return {};
        if (atom.kind == SymAtom::Kind::FloorDiv) {
          factor = PyRef::steal(PyNumber_FloorDivide(a.get(), b.get()));
        } else if (atom.kind == SymAtom::Kind::Mod) {
          factor = PyRef::steal(PyNumber_Remainder(a.get(), b.get()));
        } else {
          const int less = PyObject_RichCompareBool(a.get(), b.get(), Py_LT);
          factor = (less == 1) == (atom.kind == SymAtom::Kind::Min) ? a : b;
        }
      }
      product = factor ? PyRef::steal(PyNumber_Multiply(product.get(), factor.get())) : PyRef();
      if (!product) return {};
    }
    sum = PyRef::steal(PyNumber_Add(sum.get(), product.get()));
    if (!sum) return {};
  }
  return sum;
}

PyRef evaluateInt(const SymExpr& e, const SymbolValue& value) {
  if (const std::optional<int64_t> small = evaluateSmall(e, value)) return PyRef::steal(PyLong_FromLongLong(*small));
  return evaluateAny(e, value);
}

}  // namespace

PyRef evaluateNumber(const NumberExpr& n, const SymbolValue& value) {
  using Kind = NumberExpr::Kind;
  if (n.kind == Kind::Int) return evaluateInt(n.a, value);
  if (n.kind == Kind::Constant) return PyRef::steal(PyFloat_FromDouble(n.constant));
  if (n.kind == Kind::Bits) {
    const auto given = evaluateFloat(n, value);
    if (!given) PyErr_SetString(PyExc_SystemError, "fusebox: a symbol has no value");
    return given ? PyRef::steal(PyFloat_FromDouble(*given)) : PyRef();
  }
  if (n.kind == Kind::ToFloat || n.kind == Kind::Ratio) {
    PyRef a = evaluateInt(n.a, value), b = a && n.kind == Kind::Ratio ? evaluateInt(n.b, value) : PyRef();
    if (!a || (n.kind == Kind::Ratio && !b)) return {};
    return PyRef::steal(b ? PyNumber_TrueDivide(a.get(), b.get()) : PyNumber_Float(a.get()));
  }
  PyRef left = evaluateNumber(*n.left, value), right = left && n.right ? evaluateNumber(*n.right, value) : PyRef();
  if (!left || (n.right && !right)) return {};
  switch (n.kind) {
    case Kind::Add: return PyRef::steal(PyNumber_Add(left.get(), right.get()));
    case Kind::Subtract: return PyRef::steal(PyNumber_Subtract(left.get(), right.get()));
    case Kind::Multiply: return PyRef::steal(PyNumber_Multiply(left.get(), right.get()));
    case Kind::Divide: return PyRef::steal(PyNumber_TrueDivide(left.get(), right.get()));
    case Kind::Negate: return PyRef::steal(PyNumber_Negative(left.get()));
    case Kind::Absolute: return PyRef::steal(PyNumber_Absolute(left.get()));
    default: break;
  }
  const auto made = applyFloat(n.kind, PyFloat_AS_DOUBLE(left.get()), right ? PyFloat_AS_DOUBLE(right.get()) : 0);
  if (!made) PyErr_Format(PyExc_ArithmeticError, "fusebox: %s has no value", n.text().c_str());
  return made ? PyRef::steal(PyFloat_FromDouble(*made)) : PyRef();
}

NumberRecipe::NumberRecipe(NumberExpr of, std::span<const graph::Symbol> symbols) : number(std::move(of)) {
  number.forEachInt([&](const SymExpr& e) {
    for (const graph::Symbol symbol : e.symbols()) {
      const bool known = std::any_of(positions.begin(), positions.end(), [&](const auto& p) { return p.first == symbol; });
      const auto at = std::find(symbols.begin(), symbols.end(), symbol);
      if (!known && at != symbols.end()) positions.emplace_back(symbol, static_cast<size_t>(at - symbols.begin()));
    }
  });
}

PyRef NumberRecipe::make(std::span<const int64_t> values) const {
  return evaluateNumber(number, [&](graph::Symbol symbol) -> std::optional<int64_t> {
    for (const auto& [known, at] : positions)
      if (known == symbol && at < values.size()) return values[at];
    return std::nullopt;
  });
}

}  // namespace fusebox::capture
