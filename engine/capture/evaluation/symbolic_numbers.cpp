#include "engine/capture/evaluation/symbolic_numbers.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <new>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/deferred_numbers.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/operator_numbers.h"
#include "engine/capture/evaluation/symbolic_functions.h"
#include "engine/capture/evaluation/symbolic_texts.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/trace/sym_int.h"

namespace fusebox::capture {

namespace {

using graph::Compare;
using graph::ShapeEnv;
using graph::SymExpr;
using Kind = NumberExpr::Kind;

/// Coefficients stay below, so that sums and products of expressions cannot leave 64 bits unnoticed.
constexpr int64_t kLargestCoefficient = int64_t{1} << 31;
constexpr size_t kMostTerms = 64, kMostFactors = 8;
/// Ints up to here are floats without rounding.
constexpr int64_t kExactFloat = int64_t{1} << 53;

struct NumberObject {
  PyObject_HEAD
  std::shared_ptr<ShapeEnv> shapes;
  NumberExpr number;
  std::shared_ptr<const DeferredNumber> deferred;  ///< then there is no expression
};

NumberObject* cast(PyObject* o) { return reinterpret_cast<NumberObject*>(o); }

/// Types of the evaluator's objects: int, float, bool, and behind them the numbers of numpy in the order of this table.
enum { kFloat, kInt, kBool, kFirstOfNumpy };
constexpr std::pair<const char*, at::ScalarType> kOfNumpy[] = {{"numpy.bool_", at::kBool},   {"numpy.uint8", at::kByte},   {"numpy.int8", at::kChar},
                                                               {"numpy.int16", at::kShort},  {"numpy.int32", at::kInt},    {"numpy.int64", at::kLong},
                                                               {"numpy.float32", at::kFloat}, {"numpy.float64", at::kDouble}};
PyTypeObject types[kFirstOfNumpy + std::size(kOfNumpy)];
PyTypeObject* pythonTypes[std::size(types)];
PyTypeObject* typeAt(size_t which);

/// The environment of the first symbolic operand.
const std::shared_ptr<ShapeEnv>& shapesOfEither(PyObject* a, PyObject* b) { return cast(isSymbolicNumber(a) ? a : b)->shapes; }

bool fits(const SymExpr& e) {
  if (e.isConstant()) return std::abs(e.constant()) < kLargestCoefficient;
  if (e.terms().size() > kMostTerms) return false;
  for (const SymExpr::Term& term : e.terms())
    if (std::abs(term.coefficient) >= kLargestCoefficient || term.factors.size() > kMostFactors) return false;
  return true;
}

/// An operand as an expression; nullopt for what is no int or float, or an int beyond 64 bits.
std::optional<NumberExpr> readOperand(PyObject* o) {
  if (isDeferred(o)) refuseDeferred(o, "an operand");
  if (isSymbolicNumber(o)) return cast(o)->number;
  if (PyFloat_CheckExact(o)) return NumberExpr{.kind = Kind::Constant, .constant = PyFloat_AS_DOUBLE(o)};
  if (!PyLong_CheckExact(o) && !PyBool_Check(o)) return std::nullopt;
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow) return std::nullopt;
  return NumberExpr{.a = SymExpr(value)};
}

bool isPlainNumber(PyObject* o) { return isSymbolicNumber(o) || PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o); }

NumberExpr asFloat(NumberExpr n) { return n.isFloat() ? n : graph::floatOf(n.a); }

PyRef hintOf(const NumberExpr& n, const ShapeEnv& shapes) {
  return evaluateNumber(n, [&](graph::Symbol s) -> std::optional<int64_t> { return shapes.hint(SymExpr(s)); });
}

PyRef plain(PyObject* o, std::string_view reason) { return isSymbolicNumber(o) ? specialisedNumber(o, reason) : PyRef::borrow(o); }

/// The operator on the numbers themselves.
PyRef onConstants(int op, PyObject* a, PyObject* b, std::string_view reason) {
  PyRef x = plain(a, reason), y = x ? plain(b, reason) : PyRef();
  return y ? PyRef::steal(evaluateBinary(op, x.get(), y.get())) : PyRef();
}

/// The operator where an operand is a bool that data decide: it has to be known.
PyRef onDecided(int op, PyObject* a, PyObject* b) {
  const auto decided = [](PyObject* o) { return isSymbolicBool(o) ? specialisedNumber(o, "") : PyRef::borrow(o); };
  PyRef x = decided(a), y = decided(b);
  const bool stillSymbolic = isSymbolicNumber(x.get()) || isSymbolicNumber(y.get());
  return stillSymbolic ? symbolicArithmetic(op, x.get(), y.get()) : PyRef::steal(evaluateBinary(op, x.get(), y.get()));
}

std::optional<int64_t> smallConstant(const NumberExpr& n, int64_t most) {
  if (n.isFloat()) return std::nullopt;
  const std::optional<int64_t> value = n.a.maybeConstant();
  return value && *value >= 0 && *value <= most ? value : std::nullopt;
}

/// The int that an operator gives for two ints; nullopt: it has no expression (or CPython raises).
std::optional<SymExpr> intResult(int op, const SymExpr& a, const NumberExpr& right, ShapeEnv& shapes) {
  const SymExpr& b = right.a;
  constexpr int kMostBits = 30;
  switch (op) {
    case kAdd: return a + b;
    case kSubtract: return a - b;
    case kMultiply: return a * b;
    case kFloorDivide:
    case kRemainder:
      if (!shapes.decide(Compare::Lt, SymExpr(0), b, "the sign of a divisor")) break;
      return op == kFloorDivide ? graph::floorDiv(a, b) : graph::mod(a, b);
    case kPower:
      if (const auto exponent = smallConstant(right, 4)) {
        SymExpr product = 1;
        for (int64_t i = 0; i < *exponent; ++i) product *= a;
        return product;
      }
      break;
    case kLeftShift:
      if (const auto bits = smallConstant(right, kMostBits)) return a * SymExpr(int64_t{1} << *bits);
      break;
    case kRightShift:
      if (const auto bits = smallConstant(right, kMostBits)) return graph::floorDiv(a, SymExpr(int64_t{1} << *bits));
      break;
    case kAnd:
      if (const auto mask = smallConstant(right, (int64_t{1} << kMostBits) - 1); mask && (*mask & (*mask + 1)) == 0) return graph::mod(a, SymExpr(*mask + 1));
      break;
    default: break;
  }
  return computedOperator(op, NumberExpr{.a = a}, right, shapes);
}

/// Whether a float is known not to be 0 (or is decided to be that).
bool isNonZero(const NumberExpr& n, ShapeEnv& shapes) {
  if (n.kind == Kind::Constant) return n.constant != 0;
  if (n.kind == Kind::ToFloat || n.kind == Kind::Ratio) return shapes.decide(Compare::Ne, n.a, SymExpr(0), "a divisor is not 0");
  return decideFloats(Py_NE, n, NumberExpr{.kind = Kind::Constant}, shapes).value_or(false);
}

std::optional<NumberExpr> floatResult(int op, NumberExpr a, NumberExpr b, ShapeEnv& shapes) {
  a = asFloat(std::move(a));
  b = asFloat(std::move(b));
  switch (op) {
    case kAdd: return graph::floatOf(Kind::Add, std::move(a), std::move(b));
    case kSubtract: return graph::floatOf(Kind::Subtract, std::move(a), std::move(b));
    case kMultiply: return graph::floatOf(Kind::Multiply, std::move(a), std::move(b));
    case kTrueDivide:
      if (!isNonZero(b, shapes)) return std::nullopt;
      return graph::floatOf(Kind::Divide, std::move(a), std::move(b));
    case kFloorDivide: return floatOperation(Kind::FloorDivide, std::move(a), std::move(b), shapes);
    case kRemainder: return floatOperation(Kind::Remainder, std::move(a), std::move(b), shapes);
    case kPower: return floatOperation(Kind::Power, std::move(a), std::move(b), shapes);
    default: return std::nullopt;
  }
}

bool sameNumber(PyObject* a, PyObject* b) {
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) {
    const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return (x == y && std::signbit(x) == std::signbit(y)) || (std::isnan(x) && std::isnan(y));
  }
  return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

size_t depthOf(const NumberExpr& n) { return 1 + std::max(n.left ? depthOf(*n.left) : 0, n.right ? depthOf(*n.right) : 0); }

/// numerator / denominator with a numerator >= 0 and a denominator > 0 below 2**53, of which the float is the rounded quotient (or the
/// exact product); nullopt: it is nothing like that.
std::optional<std::pair<SymExpr, SymExpr>> fractionOf(const NumberExpr& n, ShapeEnv& shapes) {
  constexpr int64_t kLargest = int64_t{1} << 20;
  std::optional<std::pair<SymExpr, SymExpr>> fraction;
  if (n.kind == Kind::ToFloat) {
    fraction = {n.a, SymExpr(1)};
  } else if (n.kind == Kind::Ratio) {
    fraction = {n.a, n.b};
  } else if (n.kind == Kind::Multiply || n.kind == Kind::Divide) {
    const bool swapped = n.kind == Kind::Multiply && n.left->kind == Kind::Constant;
    const NumberExpr &number = swapped ? *n.right : *n.left, &factor = swapped ? *n.left : *n.right;
    if (number.kind != Kind::ToFloat || factor.kind != Kind::Constant || !(factor.constant > 0) || factor.constant >= kLargest) return std::nullopt;
    double whole = factor.constant;
    int64_t divisor = 1;
    for (; whole != std::floor(whole) && divisor < kLargest; divisor *= 2) whole *= 2;
    if (whole != std::floor(whole) || whole >= kLargest) return std::nullopt;
    if (n.kind == Kind::Multiply) fraction = {number.a * SymExpr(static_cast<int64_t>(whole)), SymExpr(divisor)};
    else if (divisor == 1) fraction = {number.a, SymExpr(static_cast<int64_t>(whole))};
  }
  if (!fraction || !fits(fraction->first) || !fits(fraction->second)) return std::nullopt;
  constexpr std::string_view kReason = "a float that is rounded";
  if (!shapes.decide(Compare::Le, SymExpr(0), fraction->first, kReason) || !shapes.decide(Compare::Lt, SymExpr(0), fraction->second, kReason) ||
      !shapes.decide(Compare::Lt, fraction->first, SymExpr(kExactFloat), kReason) || !shapes.decide(Compare::Lt, fraction->second, SymExpr(kExactFloat), kReason))
    return std::nullopt;
  return fraction;
}


int compareInts(int op, const SymExpr& a, const SymExpr& b, ShapeEnv& shapes) {
  constexpr std::string_view kReason = trace::AskedBy::kBranch;
  const trace::AskedBy asked(kReason);
  switch (op) {
    case Py_LT: return shapes.decide(Compare::Lt, a, b, kReason);
    case Py_LE: return shapes.decide(Compare::Le, a, b, kReason);
    case Py_EQ: return shapes.decide(Compare::Eq, a, b, kReason);
    case Py_NE: return shapes.decide(Compare::Ne, a, b, kReason);
    case Py_GT: return shapes.decide(Compare::Lt, b, a, kReason);
    default: return shapes.decide(Compare::Le, b, a, kReason);
  }
}

/// An int beside a float of the program, compared exactly as Python does.
int compareWithFloat(int op, const SymExpr& a, double b, ShapeEnv& shapes) {
  if (std::isnan(b)) return op == Py_NE;
  if (std::abs(b) >= 9e18) return op == Py_NE || ((op == Py_LT || op == Py_LE) == (b > 0) && op != Py_EQ);
  const double below = std::floor(b);
  const SymExpr whole(static_cast<int64_t>(below));
  if (below == b) return compareInts(op, a, whole, shapes);
  switch (op) {
    case Py_EQ: return 0;
    case Py_NE: return 1;
    case Py_LT:
    case Py_LE: return compareInts(Py_LE, a, whole, shapes);
    default: return compareInts(Py_GT, a, whole, shapes);
  }
}

// --- the types ------------------------------------------------------------------------------------------------------------

/// Nothing of C++ may pass through CPython's code.
template <class F>
auto guarded(F&& fn, decltype(fn()) failed) -> decltype(fn()) {
  try {
    return fn();
  } catch (const std::exception& error) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return failed;
}

template <int kOp>
PyObject* slotBinary(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    PyRef made = symbolicArithmetic(kOp, a, b);
    if (made || PyErr_Occurred()) return made.release();
    return Py_NewRef(Py_NotImplemented);
  }, nullptr);
}

PyObject* slotPower(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus == Py_None) return slotBinary<kPower>(a, b);
  return guarded([&]() -> PyObject* {
    constexpr std::string_view kReason = "pow() with a modulus";
    PyRef x = plain(a, kReason), y = plain(b, kReason), z = plain(modulus, kReason);
    return x && y && z ? PyNumber_Power(x.get(), y.get(), z.get()) : nullptr;
  }, nullptr);
}

PyObject* slotDivmod(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    PyRef quotient = symbolicArithmetic(kFloorDivide, a, b), rest = quotient ? symbolicArithmetic(kRemainder, a, b) : PyRef();
    if (rest) return PyTuple_Pack(2, quotient.get(), rest.get());
    return PyErr_Occurred() ? nullptr : Py_NewRef(Py_NotImplemented);
  }, nullptr);
}

PyObject* slotNegative(PyObject* o) { return guarded([&] { return symbolicNegative(o).release(); }, nullptr); }
PyObject* slotPositive(PyObject* o) { return Py_NewRef(o); }
PyObject* slotAbsolute(PyObject* o) { return guarded([&] { return symbolicAbsolute(o).release(); }, nullptr); }
int slotBool(PyObject* o) { return guarded([&] { return symbolicTruth(o) ? 1 : 0; }, -1); }

PyObject* slotInvert(PyObject* o) {
  return guarded([&]() -> PyObject* {
    PyRef negative = symbolicNegative(o), one = PyRef::steal(PyLong_FromLong(1));
    return negative ? symbolicArithmetic(kSubtract, negative.get(), one.get()).release() : nullptr;
  }, nullptr);
}

PyObject* asConstant(PyObject* o, std::string_view reason) { return guarded([&] { return specialisedNumber(o, reason).release(); }, nullptr); }
PyObject* slotInt(PyObject* o) {
  PyRef value = PyRef::steal(asConstant(o, "the number is needed"));
  return value ? PyNumber_Long(value.get()) : nullptr;
}
PyObject* slotIndex(PyObject* o) { return asConstant(o, "an index"); }
PyObject* slotFloat(PyObject* o) {
  PyRef value = PyRef::steal(asConstant(o, "a float is needed"));
  return value ? PyNumber_Float(value.get()) : nullptr;
}
PyObject* slotText(PyObject* o) {
  PyRef value = PyRef::steal(asConstant(o, "its text is made"));
  return value ? PyObject_Repr(value.get()) : nullptr;
}
Py_hash_t slotHash(PyObject* o) {
  PyRef value = PyRef::steal(asConstant(o, "its hash is needed"));
  return value ? PyObject_Hash(value.get()) : -1;
}

PyObject* slotCompare(PyObject* a, PyObject* b, int op) {
  return guarded([&]() -> PyObject* {
    const int answer = symbolicComparison(op, a, b);
    if (answer == -1) return nullptr;
    return Py_NewRef(answer == -2 ? Py_NotImplemented : answer ? Py_True : Py_False);
  }, nullptr);
}

/// Methods that C code looks up by name: those of the number itself.
template <const char* const& kName>
PyObject* method(PyObject* o, PyObject* args) {
  PyRef value = PyRef::steal(asConstant(o, kName));
  PyRef bound = value ? PyRef::steal(PyObject_GetAttrString(value.get(), kName)) : PyRef();
  return bound ? PyObject_CallObject(bound.get(), args) : nullptr;
}
constexpr const char *kFormat = "__format__", *kRound = "__round__", *kFloor = "__floor__", *kCeil = "__ceil__", *kTrunc = "__trunc__";

PyObject* reduce(PyObject* o, PyObject*) {
  PyRef value = PyRef::steal(asConstant(o, "a copy of it is made"));
  return value ? Py_BuildValue("(O(O))", Py_TYPE(value.get()), value.get()) : nullptr;
}

PyMethodDef kMethods[] = {{"__format__", method<kFormat>, METH_VARARGS, nullptr}, {"__round__", method<kRound>, METH_VARARGS, nullptr},
                          {"__floor__", method<kFloor>, METH_VARARGS, nullptr},   {"__ceil__", method<kCeil>, METH_VARARGS, nullptr},
                          {"__trunc__", method<kTrunc>, METH_VARARGS, nullptr},   {"__reduce_ex__", reduce, METH_VARARGS, nullptr},
                          {nullptr, nullptr, 0, nullptr}};

void slotDealloc(PyObject* o) {
  cast(o)->shapes.~shared_ptr();
  cast(o)->number.~NumberExpr();
  cast(o)->deferred.~shared_ptr();
  PyObject_Free(o);
}

PyNumberMethods numberMethods(bool integer) {
  PyNumberMethods m{};
  m.nb_add = slotBinary<kAdd>;
  m.nb_subtract = slotBinary<kSubtract>;
  m.nb_multiply = slotBinary<kMultiply>;
  m.nb_remainder = slotBinary<kRemainder>;
  m.nb_divmod = slotDivmod;
  m.nb_power = slotPower;
  m.nb_negative = slotNegative;
  m.nb_positive = slotPositive;
  m.nb_absolute = slotAbsolute;
  m.nb_bool = slotBool;
  m.nb_int = slotInt;
  m.nb_float = slotFloat;
  m.nb_floor_divide = slotBinary<kFloorDivide>;
  m.nb_true_divide = slotBinary<kTrueDivide>;
  if (!integer) return m;
  m.nb_invert = slotInvert;
  m.nb_lshift = slotBinary<kLeftShift>;
  m.nb_rshift = slotBinary<kRightShift>;
  m.nb_and = slotBinary<kAnd>;
  m.nb_or = slotBinary<7>;
  m.nb_xor = slotBinary<12>;
  m.nb_index = slotIndex;
  return m;
}

/// The type of objects that are, to the program, of pythonTypes[which].
PyTypeObject* typeAt(size_t which) {
  static PyNumberMethods methods[std::size(types)];
  PyTypeObject& t = types[which];
  if (t.tp_name) return &t;
  PyTypeObject* python = which == kFloat  ? &PyFloat_Type
                         : which == kInt  ? &PyLong_Type
                         : which == kBool ? &PyBool_Type
                                          : reinterpret_cast<PyTypeObject*>(torchObject(kOfNumpy[which - kFirstOfNumpy].first));
  if (!python) return nullptr;
  pythonTypes[which] = python;
  methods[which] = numberMethods(which != kFloat);
  t = PyTypeObject{PyVarObject_HEAD_INIT(nullptr, 0)};
  t.tp_name = python->tp_name;
  t.tp_basicsize = sizeof(NumberObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_dealloc = slotDealloc;
  t.tp_as_number = &methods[which];
  t.tp_hash = slotHash;
  t.tp_repr = t.tp_str = slotText;
  t.tp_richcompare = slotCompare;
  t.tp_methods = kMethods;
  if (PyType_Ready(&t) < 0) clearError();
  return &t;
}

}  // namespace

bool isSymbolicInt(PyObject* o) { return Py_IS_TYPE(o, types + kInt); }
bool isSymbolicFloat(PyObject* o) { return Py_IS_TYPE(o, types + kFloat); }
bool isSymbolicBool(PyObject* o) { return Py_IS_TYPE(o, types + kBool); }
bool isSymbolicNumber(PyObject* o) { return std::greater_equal<>()(Py_TYPE(o), std::begin(types)) && std::less<>()(Py_TYPE(o), std::end(types)); }
bool isArrayScalar(PyObject* o) { return isSymbolicNumber(o) && Py_TYPE(o) - types >= kFirstOfNumpy; }
const NumberExpr& numberExpr(PyObject* o) {
  if (isDeferred(o) && !settleDeferred(o)) refuseDeferred(o, "it decides what is computed");
  return cast(o)->number;
}
const std::shared_ptr<ShapeEnv>& shapesOf(PyObject* o) {
  if (isDeferred(o) && !settleDeferred(o)) refuseDeferred(o, "it decides what is computed");
  return cast(o)->shapes;
}
bool isDeferred(PyObject* o) { return isSymbolicNumber(o) && cast(o)->deferred; }
const DeferredNumber& deferredNumber(PyObject* o) { return *cast(o)->deferred; }
PyTypeObject* pythonTypeOf(PyObject* o) { return isSymbolicText(o) ? &PyUnicode_Type : isSymbolicNumber(o) ? pythonTypes[Py_TYPE(o) - types] : Py_TYPE(o); }

namespace {

PyRef newDeferredOf(PyTypeObject* type, DeferredNumber number) {
  auto* made = type ? PyObject_New(NumberObject, type) : nullptr;
  if (!made) return {};
  new (&made->shapes) std::shared_ptr<ShapeEnv>();
  new (&made->number) NumberExpr();
  new (&made->deferred) std::shared_ptr<const DeferredNumber>(std::make_shared<DeferredNumber>(std::move(number)));
  return PyRef::steal(reinterpret_cast<PyObject*>(made));
}

}  // namespace

PyRef newDeferred(PyTypeObject* type, DeferredNumber number) {
  return newDeferredOf(typeAt(type == &PyFloat_Type ? kFloat : type == &PyBool_Type ? kBool : kInt), std::move(number));
}

bool hasArrayScalar(PyTypeObject* type) {
  return std::any_of(std::begin(kOfNumpy), std::end(kOfNumpy), [&](const auto& row) { return torchObject(row.first) == reinterpret_cast<PyObject*>(type); });
}

PyRef newArrayScalar(DeferredNumber number) {
  const at::ScalarType type = tensorOf(number.tensor.get()).scalar_type();
  const auto* found = std::find_if(std::begin(kOfNumpy), std::end(kOfNumpy), [&](const auto& row) { return row.second == type; });
  return found == std::end(kOfNumpy) ? PyRef() : newDeferredOf(typeAt(static_cast<size_t>(kFirstOfNumpy + (found - kOfNumpy))), std::move(number));
}

void becomeSymbolic(PyObject* o, const std::shared_ptr<ShapeEnv>& shapes, NumberExpr number) {
  cast(o)->shapes = shapes;
  cast(o)->number = std::move(number);
  cast(o)->deferred.reset();
}

PyRef newSymbolicNumber(const std::shared_ptr<ShapeEnv>& shapes, NumberExpr number) {
  if (number.kind == Kind::Int) number.a = shapes->simplify(number.a);
  bool constant = true;
  number.forEachInt([&](const SymExpr& e) { constant = constant && e.isConstant(); });
  if (constant) return hintOf(number, *shapes);
  auto* made = PyObject_New(NumberObject, typeAt(number.isFloat() ? kFloat : kInt));
  if (!made) return {};
  new (&made->shapes) std::shared_ptr<ShapeEnv>(shapes);
  new (&made->number) NumberExpr(std::move(number));
  new (&made->deferred) std::shared_ptr<const DeferredNumber>();
  return PyRef::steal(reinterpret_cast<PyObject*>(made));
}

PyRef newSymbolicInt(const std::shared_ptr<ShapeEnv>& shapes, const SymExpr& e) { return newSymbolicNumber(shapes, NumberExpr{.a = e}); }

PyRef specialisedNumber(PyObject* o, std::string_view reason) {
  if (isSymbolicBool(o)) return PyRef::borrow(decideTruth(o) ? Py_True : Py_False);
  if (isDeferred(o)) refuseDeferred(o, reason);
  NumberObject* n = cast(o);
  n->number.forEachInt([&](const SymExpr& e) {
    if (!e.isConstant()) n->shapes->specialise(e, reason);
  });
  return hintOf(n->number, *n->shapes);
}

PyRef symbolicArithmetic(int op, PyObject* a, PyObject* b) {
  if (PyComplex_CheckExact(a) || PyComplex_CheckExact(b)) return onConstants(op, a, b, "an operand beside a complex number");
  if (!isPlainNumber(a) || !isPlainNumber(b)) return {};
  if (isSymbolicBool(a) || isSymbolicBool(b)) return onDecided(op, a, b);
  if (isDeferred(a) || isDeferred(b)) return deferredArithmetic(op, a, b);
  std::optional<NumberExpr> left = readOperand(a), right = readOperand(b);
  const std::shared_ptr<ShapeEnv>& shapes = shapesOfEither(a, b);
  std::optional<NumberExpr> made;
  if (left && right && !left->isFloat() && !right->isFloat()) {
    if (op == kTrueDivide && shapes->decide(Compare::Ne, right->a, SymExpr(0), "a divisor is not 0"))
      made = NumberExpr{.kind = Kind::Ratio, .a = left->a, .b = right->a};
    else if (op == kPower && !shapes->decide(Compare::Le, SymExpr(0), right->a, "the sign of an exponent"))
      made = floatResult(op, *left, *right, *shapes);
    else if (op != kTrueDivide && fits(left->a) && fits(right->a))
      if (std::optional<SymExpr> e = intResult(op, left->a, *right, *shapes)) made = NumberExpr{.a = *e};
  } else if (left && right) {
    constexpr size_t kDeepest = 32;
    made = floatResult(op, *left, *right, *shapes);
    if (made && depthOf(*made) > kDeepest) made.reset();
  }
  static constexpr std::string_view kReason = "an operator whose result has no expression";
  if (!made || (!made->isFloat() && !fits(made->a))) return onConstants(op, a, b, kReason);
  // What Python makes of the numbers of this capture is what the expression says of them.
  PyRef x = hintOf(*left, *shapes), y = hintOf(*right, *shapes), expected = x && y ? PyRef::steal(evaluateBinary(op, x.get(), y.get())) : PyRef();
  PyRef found = expected ? hintOf(*made, *shapes) : PyRef();
  if (!found || !sameNumber(expected.get(), found.get())) return clearError(), onConstants(op, a, b, kReason);
  return newSymbolicNumber(shapes, std::move(*made));
}

int symbolicComparison(int op, PyObject* a, PyObject* b) {
  const bool complex = (PyComplex_CheckExact(a) || PyComplex_CheckExact(b)) && (op == Py_EQ || op == Py_NE);
  if (!complex && (!isPlainNumber(a) || !isPlainNumber(b))) return -2;
  for (PyObject* side : {a, b})
    if (isDeferred(side)) refuseDeferred(side, "a comparison of the program");
  std::optional<NumberExpr> left = readOperand(a), right = readOperand(b);
  const std::shared_ptr<ShapeEnv>& shapes = shapesOfEither(a, b);
  // float(n) is n as long as it is not rounded.
  for (std::optional<NumberExpr>* side : {&left, &right})
    if (*side && (*side)->kind == Kind::ToFloat && shapes->decide(Compare::Le, (*side)->a, SymExpr(kExactFloat), "a float that is compared") &&
        shapes->decide(Compare::Le, SymExpr(-kExactFloat), (*side)->a, "a float that is compared"))
      (*side)->kind = Kind::Int;
  if (left && right) {
    if (!left->isFloat() && !right->isFloat()) return compareInts(op, left->a, right->a, *shapes);
    if (!left->isFloat() && right->kind == Kind::Constant) return compareWithFloat(op, left->a, right->constant, *shapes);
    if (!right->isFloat() && left->kind == Kind::Constant) return compareWithFloat(kSwapped[op], right->a, left->constant, *shapes);
    if (const auto answer = decideFloats(op, *left, *right, *shapes)) return *answer;
  }
  PyRef x = plain(a, "a comparison of floats"), y = plain(b, "a comparison of floats");
  PyRef answer = x && y ? PyRef::steal(PyObject_RichCompare(x.get(), y.get(), op)) : PyRef();
  return answer ? PyObject_IsTrue(answer.get()) : -1;
}

bool symbolicTruth(PyObject* o) {
  if (isDeferred(o)) return decideTruth(o);
  NumberObject* n = cast(o);
  if (n->number.kind == Kind::Int || n->number.kind == Kind::ToFloat || n->number.kind == Kind::Ratio)
    return n->shapes->decide(Compare::Ne, n->number.a, SymExpr(0), "a condition of the program");
  if (const auto answer = decideFloats(Py_NE, n->number, NumberExpr{.kind = Kind::Constant}, *n->shapes)) return *answer;
  PyRef value = specialisedNumber(o, "a condition on a float");
  return value && PyObject_IsTrue(value.get()) == 1;
}

PyRef symbolicNegative(PyObject* o) {
  if (isDeferred(o)) return deferredUnary(DeferredNumber::kNegate, o);
  NumberObject* n = cast(o);
  if (n->number.kind == Kind::Int) return newSymbolicInt(n->shapes, SymExpr(0) - n->number.a);
  NumberExpr negated{.kind = Kind::Negate, .left = std::make_shared<NumberExpr>(n->number)};
  return newSymbolicNumber(n->shapes, std::move(negated));
}

PyRef symbolicAbsolute(PyObject* o) {
  if (isDeferred(o)) return deferredUnary(DeferredNumber::kAbsolute, o);
  NumberObject* n = cast(o);
  if (n->number.kind == Kind::Int)
    return n->shapes->decide(Compare::Le, SymExpr(0), n->number.a, "the sign of a number") ? PyRef::borrow(o) : symbolicNegative(o);
  return newSymbolicNumber(n->shapes, NumberExpr{.kind = Kind::Absolute, .left = std::make_shared<NumberExpr>(n->number)});
}

PyRef symbolicRounded(char how, PyObject* o) {
  if (isSymbolicInt(o)) return PyRef::borrow(o);
  if (isDeferred(o)) refuseDeferred(o, "a float that is rounded");
  NumberObject* n = cast(o);
  if (const auto fraction = how == 'r' ? std::nullopt : fractionOf(n->number, *n->shapes)) {
    const auto& [numerator, denominator] = *fraction;
    return newSymbolicInt(n->shapes, how == 'c' ? SymExpr(0) - graph::floorDiv(SymExpr(0) - numerator, denominator) : graph::floorDiv(numerator, denominator));
  }
  if (const auto whole = computedRounding(how, n->number, *n->shapes)) return newSymbolicInt(n->shapes, *whole);
  PyRef value = specialisedNumber(o, "a float that is rounded");
  if (!value) return {};
  if (how == 'r') return PyRef::steal(PyObject_CallMethod(value.get(), "__round__", nullptr));
  if (how == 't') return PyRef::steal(PyNumber_Long(value.get()));
  return PyRef::steal(PyObject_CallMethod(value.get(), how == 'c' ? "__ceil__" : "__floor__", nullptr));
}

PyRef symbolicToFloat(PyObject* o) {
  if (isSymbolicFloat(o)) return PyRef::borrow(o);
  if (isDeferred(o)) return deferredUnary(DeferredNumber::kToFloat, o);
  return newSymbolicNumber(cast(o)->shapes, asFloat(cast(o)->number));
}

PyRef symbolicExtreme(bool larger, PyObject* a, PyObject* b) {
  for (PyObject* o : {a, b})
    if (isDeferred(o)) settleDeferred(o);  // no decision: the larger of two is an expression
  const std::optional<NumberExpr> left = readOperand(a), right = readOperand(b);
  if (!left || !right || left->isFloat() || right->isFloat() || !fits(left->a) || !fits(right->a)) return {};
  if (const auto less = shapesOfEither(a, b)->provable(Compare::Le, left->a, right->a)) return PyRef::borrow(*less == larger ? b : a);
  return newSymbolicInt(shapesOfEither(a, b), larger ? graph::max(left->a, right->a) : graph::min(left->a, right->a));
}

}  // namespace fusebox::capture
