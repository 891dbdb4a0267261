#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/operator_numbers.h"
#include "engine/capture/evaluation/symbolic_functions.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>

#include "engine/capture/evaluation/symbolic_numbers.h"

namespace fusebox::capture {

namespace {

using graph::Compare;
using graph::ShapeEnv;
using graph::SymExpr;
using Kind = NumberExpr::Kind;
using Values = std::span<const NumberValue>;
using Whole = std::optional<int64_t>;

/// Functions that many symbols of one capture go through: a place beyond that is better off with constants.
constexpr size_t kMostComputed = 64;

Whole powerOf(int64_t base, int64_t exponent) {
  if (exponent < 0) return std::nullopt;
  int64_t result = 1;
  for (; exponent > 0 && base != 0 && base != 1; --exponent) {
    if (base == -1) return exponent % 2 ? -result : result;
    if (__builtin_mul_overflow(result, base, &result)) return std::nullopt;
  }
  return exponent > 0 ? base : result;
}

Whole quotientOf(int64_t a, int64_t b) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return std::nullopt;
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}

Whole shifted(int64_t a, int64_t bits) {
  constexpr int64_t kBits = 62;
  int64_t result = 0;
  if (bits < 0 || bits > kBits || __builtin_mul_overflow(a, int64_t{1} << bits, &result)) return std::nullopt;
  return result;
}

Whole operatorOf(int op, int64_t a, int64_t b) {
  switch (op) {
    case kAnd: return a & b;
    case kOr: return a | b;
    case kXor: return a ^ b;
    case kPower: return powerOf(a, b);
    case kLeftShift: return shifted(a, b);
    case kRightShift: return b < 0 ? Whole() : a >> std::min<int64_t>(b, 63);
    case kFloorDivide: return quotientOf(a, b);
    case kRemainder: {
      const Whole q = quotientOf(a, b);
      return q ? Whole(a - *q * b) : Whole();
    }
    default: return std::nullopt;
  }
}

/// Null: none of these.
const char* operatorText(int op) {
  switch (op) {
    case kAnd: return "and";
    case kOr: return "or";
    case kXor: return "xor";
    case kPower: return "pow";
    case kLeftShift: return "lshift";
    case kRightShift: return "rshift";
    case kFloorDivide: return "floordiv";
    case kRemainder: return "mod";
    default: return nullptr;
  }
}

/// What fits 64 bits when its fraction is gone.
Whole wholeOf(double d) {
  constexpr double kMost = 9.2e18;
  return std::isfinite(d) && std::fabs(d) < kMost ? Whole(static_cast<int64_t>(d)) : std::nullopt;
}

double rounded(char how, double d) {
  switch (how) {
    case 'f': return std::floor(d);
    case 'c': return std::ceil(d);
    case 't': return std::trunc(d);
    default: {
      const double nearest = std::round(d);
      return std::fabs(d - nearest) == 0.5 ? 2.0 * std::round(d / 2.0) : nearest;
    }
  }
}

int64_t rootOf(int64_t n) {
  auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
  while (root > 0 && root > n / root) --root;
  while (root + 1 <= n / (root + 1)) ++root;
  return root;
}

std::optional<NumberExpr> readNumber(PyObject* o) {
  if (isSymbolicNumber(o)) return numberExpr(o);
  if (PyFloat_CheckExact(o)) return NumberExpr{.kind = Kind::Constant, .constant = PyFloat_AS_DOUBLE(o)};
  int overflow = 0;
  const int64_t value = PyLong_CheckExact(o) ? PyLong_AsLongLongAndOverflow(o, &overflow) : 0;
  return PyLong_CheckExact(o) && !overflow ? std::optional(NumberExpr{.a = SymExpr(value)}) : std::nullopt;
}

/// What Python gives for the numbers of this capture.
bool isConfirmed(PyObject* callable, std::span<PyObject* const> args, PyObject* made, ShapeEnv& shapes) {
  const auto hint = [&](PyObject* o) {
    if (!isSymbolicNumber(o)) return PyRef::borrow(o);
    return evaluateNumber(numberExpr(o), [&](graph::Symbol s) -> Whole { return shapes.hint(SymExpr(s)); });
  };
  std::vector<PyRef> keep;
  std::vector<PyObject*> given;
  for (PyObject* o : args) {
    keep.push_back(hint(o));
    if (!keep.back()) return false;
    given.push_back(keep.back().get());
  }
  PyRef expected = PyRef::steal(PyObject_Vectorcall(callable, given.data(), given.size(), nullptr)), found = expected ? hint(made) : PyRef();
  return found && Py_TYPE(found.get()) == Py_TYPE(expected.get()) && PyObject_RichCompareBool(found.get(), expected.get(), Py_EQ) == 1;
}

std::optional<NumberExpr> floatFunction(std::string_view name, std::span<const NumberExpr> n, ShapeEnv& shapes) {
  const auto one = [&](Kind kind) { return n.size() == 1 ? floatOperation(kind, n[0], std::nullopt, shapes) : std::nullopt; };
  if (name != "log")
    for (const graph::FloatFunction& function : graph::floatFunctions())
      if (name == function.name) return one(function.kind);
  if (name == "pow") return n.size() == 2 ? floatOperation(Kind::Power, n[0], n[1], shapes) : std::nullopt;
  if (name != "log" || n.empty() || n.size() > 2) return std::nullopt;
  auto logarithm = floatOperation(Kind::Logarithm, n[0], std::nullopt, shapes);
  if (n.size() == 1 || !logarithm) return logarithm;
  auto base = floatOperation(Kind::Logarithm, n[1], std::nullopt, shapes);
  return base ? floatOperation(Kind::Divide, std::move(*logarithm), std::move(base), shapes) : std::nullopt;
}

std::optional<SymExpr> intFunction(const std::string& name, std::span<const NumberExpr> n, ShapeEnv& shapes) {
  if (std::any_of(n.begin(), n.end(), [](const NumberExpr& e) { return e.isFloat(); })) return std::nullopt;
  const std::vector<NumberExpr> operands(n.begin(), n.end());
  if (name == "isqrt" && n.size() == 1)
    return computedInt(shapes, name, operands, [](Values v) { return v[0].whole < 0 ? Whole() : Whole(rootOf(v[0].whole)); }, 0);
  if ((name != "gcd" && name != "lcm") || n.size() != 2) return std::nullopt;
  const bool greatest = name == "gcd";
  return computedInt(shapes, name, operands, [greatest](Values v) -> Whole {
    if (v[0].whole == INT64_MIN || v[1].whole == INT64_MIN) return std::nullopt;
    const int64_t common = std::gcd(v[0].whole, v[1].whole);
    int64_t product = 0;
    if (greatest || common == 0) return common;
    return __builtin_mul_overflow(std::abs(v[0].whole) / common, std::abs(v[1].whole), &product) ? Whole() : Whole(product);
  }, 0);
}

}  // namespace

std::optional<SymExpr> computedInt(ShapeEnv& shapes, const std::string& name, std::vector<NumberExpr> operands, IntFunction function, int64_t lower,
                                   int64_t upper) {
  if (shapes.computed().size() >= kMostComputed) return std::nullopt;
  graph::ComputedSymbol how;
  for (const NumberExpr& n : operands) {
    how.text += (how.text.empty() ? "" : ", ") + n.text();
    for (const graph::Symbol s : n.symbols())
      if (std::find(how.from.begin(), how.from.end(), s) == how.from.end()) how.from.push_back(s);
  }
  const bool infix = operands.size() == 2 && !std::isalpha(static_cast<unsigned char>(name[0]));
  how.text = infix ? "(" + operands[0].text() + " " + name + " " + operands[1].text() + ")" : name + "(" + how.text + ")";
  how.compute = [operands = std::move(operands), from = how.from, function = std::move(function)](std::span<const int64_t> values) -> Whole {
    const SymbolValue value = [&](graph::Symbol s) -> Whole {
      const auto at = static_cast<size_t>(std::find(from.begin(), from.end(), s) - from.begin());
      return at < values.size() ? Whole(values[at]) : std::nullopt;
    };
    std::vector<NumberValue> given;
    for (const NumberExpr& n : operands) {
      NumberValue v;
      if (n.isFloat()) {
        const auto real = evaluateFloat(n, value);
        if (!real) return std::nullopt;
        v.real = *real;
      } else {
        const Whole whole = evaluateSmall(n.a, value);
        if (!whole) return std::nullopt;
        v = {*whole, static_cast<double>(*whole)};
      }
      given.push_back(v);
    }
    return function(given);
  };
  return shapes.computed(std::move(how), lower, upper);
}

std::optional<SymExpr> computedOperator(int op, const NumberExpr& a, const NumberExpr& b, ShapeEnv& shapes) {
  const char* name = operatorText(op);
  if (!name) return std::nullopt;
  return computedInt(shapes, name, {a, b}, [op](Values v) { return operatorOf(op, v[0].whole, v[1].whole); });
}

std::optional<bool> decideFloats(int op, const NumberExpr& a, const NumberExpr& b, ShapeEnv& shapes) {
  static constexpr const char* kTexts[] = {"<", "<=", "==", "!=", ">", ">="};
  // Ints are compared as what they are, which floats hold up to here.
  constexpr int64_t kExact = int64_t{1} << 53;
  const auto exact = [](const NumberValue& v, bool isFloat) { return isFloat || (v.whole <= kExact && v.whole >= -kExact); };
  const auto truth = computedInt(shapes, kTexts[op], {a, b}, [op, exact, x = a.isFloat(), y = b.isFloat()](Values v) -> Whole {
    if (!exact(v[0], x) || !exact(v[1], y)) return std::nullopt;
    switch (op) {
      case Py_LT: return v[0].real < v[1].real;
      case Py_LE: return v[0].real <= v[1].real;
      case Py_EQ: return v[0].real == v[1].real;
      case Py_NE: return v[0].real != v[1].real;
      case Py_GT: return v[0].real > v[1].real;
      default: return v[0].real >= v[1].real;
    }
  }, 0, 1);
  return truth ? std::optional(shapes.decide(Compare::Lt, 0, *truth, "a comparison of floats")) : std::nullopt;
}

std::optional<SymExpr> computedRounding(char how, const NumberExpr& n, ShapeEnv& shapes) {
  const char* name = how == 'f' ? "floor" : how == 'c' ? "ceil" : how == 't' ? "int" : "round";
  return computedInt(shapes, name, {n}, [how](Values v) { return wholeOf(rounded(how, v[0].real)); });
}

std::optional<NumberExpr> floatOperation(Kind kind, NumberExpr a, std::optional<NumberExpr> b, ShapeEnv& shapes) {
  constexpr double kSmallPower = 16;
  const auto asFloat = [](NumberExpr n) { return n.isFloat() ? n : graph::floatOf(n.a); };
  a = asFloat(std::move(a));
  // Where the sign of an int says that there is a value, no more is checked.
  const bool ofInt = a.kind == Kind::ToFloat && a.a.bounds().first > 0;
  const bool rootOrLog = kind == Kind::SquareRoot || kind == Kind::Logarithm || kind == Kind::Log2 || kind == Kind::Log10;
  const bool smallPower = kind == Kind::Power && b && b->kind == Kind::Constant && std::fabs(b->constant) <= kSmallPower;
  NumberExpr made{.kind = kind, .left = std::make_shared<NumberExpr>(std::move(a))};
  if (b) made.right = std::make_shared<NumberExpr>(asFloat(std::move(*b)));
  if (ofInt && (rootOrLog || smallPower)) return made;
  const auto finite = computedInt(shapes, "defined", {made}, [](Values v) { return std::isfinite(v[0].real) ? Whole(1) : std::nullopt; }, 0, 1);
  return finite ? std::optional(std::move(made)) : std::nullopt;
}

PyRef symbolicMath(PyObject* callable, std::span<PyObject* const> args) {
  const auto symbolic = std::find_if(args.begin(), args.end(), isSymbolicNumber);
  if (symbolic == args.end() || !PyCFunction_Check(callable)) return {};
  const std::string name = reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name;
  std::vector<NumberExpr> numbers;
  for (PyObject* o : args) {
    auto n = readNumber(o);
    if (!n) return {};
    numbers.push_back(std::move(*n));
  }
  const std::shared_ptr<ShapeEnv>& shapes = shapesOf(*symbolic);
  PyRef made;
  if (auto n = floatFunction(name, numbers, *shapes)) made = newSymbolicNumber(shapes, std::move(*n));
  else if (auto e = intFunction(name, numbers, *shapes)) made = newSymbolicInt(shapes, *e);
  if (!made || !isConfirmed(callable, args, made.get(), *shapes)) return clearError(), PyRef();
  return made;
}

}  // namespace fusebox::capture
