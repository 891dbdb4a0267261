#include "engine/capture/evaluation/deferred_numbers.h"
#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/operator_numbers.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "engine/capture/cpython/once.h"
#include "engine/capture/entries/dynamic_rules.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/torch_calls.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/rules/autograd_function.h"
#include "engine/trace/break_error.h"
#include "engine/trace/recorder.h"
#include "engine/trace/sym_int.h"
#include "engine/trace/trace_context.h"
#include "engine/trace/trace_tensor.h"
#include "engine/trace/transform_levels.h"

namespace fusebox::capture {

namespace {

/// Recipes are made by recursion.
constexpr int kDeepestRecipe = 64;
/// Elements of a list, each a number of its own.
constexpr int64_t kLongestList = 32;

bool isFloatNumber(PyObject* o) { return pythonTypeOf(o) == &PyFloat_Type; }

/// A number that is an int of 64 bits or a float: with those no conversion to float overflows.
bool isBounded(PyObject* o) {
  if (isFloatNumber(o)) return true;
  if (isDeferred(o)) return deferredNumber(o).op == DeferredNumber::kRead;
  if (isSymbolicInt(o)) return true;
  int overflow = 0;
  PyLong_AsLongLongAndOverflow(o, &overflow);
  return overflow == 0;
}

bool isNeverZero(PyObject* o) {
  if (isDeferred(o)) return false;
  return isSymbolicNumber(o) ? symbolicTruth(o) : PyObject_IsTrue(o) == 1;
}

int depthOf(PyObject* o) { return isDeferred(o) ? deferredNumber(o).depth : 0; }

/// "file:line" of what is being read, or of the first read behind a number.
const std::string& readAt(PyObject* number) {
  const DeferredNumber& n = deferredNumber(number);
  for (PyObject* side : {n.left.get(), n.right.get()})
    if (n.op != DeferredNumber::kRead && side && isDeferred(side)) return readAt(side);
  return n.readAt;
}

/// The data of a literal of the program, or of what is computed from such alone; undefined: they are not known.
at::Tensor knownData(Evaluation& e, const at::Tensor& t) {
  namespace functional = at::functionalization::impl;
  if (!functional::isFunctionalTensor(t)) return e.trace().recorder().constantData(t);
  functional::sync(t);
  return e.trace().recorder().constantData(functional::from_functional_tensor(t));
}

bool isKnown(Evaluation& e, const at::Tensor& t) { return knownData(e, t).defined(); }

bool isPlainStandIn(Evaluation& e, PyObject* o) {
  return e.isStandIn(o) && !e.isNumber(o) && isPlainTensorClass(Py_TYPE(o)) && !e.mayBePython(o);
}

/// `anySize`: also one with symbols for sizes.
bool isReadable(Evaluation& e, PyObject* o, bool anySize = false) {
  if (!isPlainStandIn(e, o)) return false;
  // Transforms and gradients do not end where a segment does.
  if (trace::insideTransform() || e.functions().isLate()) return false;
  const at::Tensor& t = tensorOf(o);
  return (anySize || !t.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) && !isKnown(e, t);
}

bool isRealType(at::ScalarType type) {
  return type == at::kFloat || type == at::kDouble || type == at::kHalf || type == at::kBFloat16;
}
bool isIntType(at::ScalarType type) {
  return type == at::kLong || type == at::kInt || type == at::kShort || type == at::kChar || type == at::kByte;
}

PyTypeObject* pythonTypeOf(at::ScalarType type) { return isRealType(type) ? &PyFloat_Type : type == at::kBool ? &PyBool_Type : &PyLong_Type; }

/// The values as they are now, in one row, whatever is written to the tensor later. A graph of calls shows how they come.
PyRef copied(Evaluation& e, const at::Tensor& values, at::ScalarType type, bool isRow) {
  TorchCalls* calls = e.torchCalls();
  if (!calls) {
    const at::Tensor plain = isRow ? values.detach().reshape(-1) : values.dim() > 0 ? values.reshape({}).detach() : values.detach();
    return PyRef::steal(newTensorObject(type == plain.scalar_type() ? plain.clone() : plain.to(type)));
  }
  const auto method = [&](const char* name, std::initializer_list<PyObject*> args) {
    PyRef made = calls->method(name, args);
    if (!made) throw std::runtime_error(std::string("a number is read: ") + name);
    return made;
  };
  PyRef plain = method("detach", {PyRef::steal(newTensorObject(values)).get()});
  const PyRef shape = isRow ? PyRef::steal(Py_BuildValue("(i)", -1)) : PyRef::steal(PyTuple_New(0));
  if (values.dim() != isRow) plain = method("reshape", {plain.get(), shape.get()});
  if (type == at::kBool && values.scalar_type() != at::kBool) return method("ne", {plain.get(), PyRef::steal(PyLong_FromLong(0)).get()});
  return method(type == values.scalar_type() ? "clone" : type == at::kDouble ? "double" : "long", {plain.get()});
}

DeferredNumber readOf(Evaluation& e, const at::Tensor& values, at::ScalarType type, bool isRow = false) {
  const Place place = e.place();
  e.trace().dataSizes().readsNumbers = true;
  return {.tensor = copied(e, values, type, isRow), .readAt = place.file.substr(place.file.rfind('/') + 1) + ":" + std::to_string(place.line)};
}

/// A float or int that is a symbol as a tensor without dimensions.
at::Tensor ofSymbol(PyObject* symbolic) {
  graph::ShapeEnv& env = *shapesOf(symbolic);
  const NumberExpr& number = numberExpr(symbolic);
  return at::full({}, isSymbolicFloat(symbolic) ? at::Scalar(trace::toSymFloat(number, env)) : at::Scalar(trace::toSymInt(number.a, env)), at::TensorOptions(at::kDouble));
}

/// The number as a 0-dimensional tensor of float64 or int64; undefined: Python might compute something else.
at::Tensor asTensor(PyObject* o) {
  const DeferredNumber& n = deferredNumber(o);
  const at::ScalarType type = isFloatNumber(o) ? at::kDouble : at::kLong;
  if (n.op == DeferredNumber::kRead) {
    const at::Tensor& values = tensorOf(n.tensor.get());
    return (n.element < 0 ? values : values.select(0, n.element)).to(type);
  }
  if (type != at::kDouble) return {};  // ints of Python do not wrap around
  const auto operand = [](PyObject* side) {
    const at::Tensor t = isDeferred(side) ? asTensor(side) : isSymbolicFloat(side) || isSymbolicInt(side) ? ofSymbol(side) : at::Tensor();
    return t.defined() ? t.to(at::kDouble) : t;
  };
  const auto scalar = [](PyObject* side) {
    return PyFloat_CheckExact(side) ? PyFloat_AS_DOUBLE(side) : PyLong_AsDouble(side);
  };
  const at::Tensor left = operand(n.left.get());
  if (n.op == DeferredNumber::kToFloat) return left;
  if (n.op == DeferredNumber::kNegate) return left.defined() ? left.neg() : left;
  if (n.op == DeferredNumber::kAbsolute) return left.defined() ? left.abs() : left;
  if (n.op == DeferredNumber::kFunction) {
    const auto function = tensorFunctionOf(n.function);
    return function && left.defined() && !n.right ? function(left) : at::Tensor();
  }
  if (!n.right) return {};
  const at::Tensor right = operand(n.right.get());
  const bool both = left.defined() && right.defined();
  PyObject* plain = left.defined() ? n.right.get() : n.left.get();
  if (!both && ((!left.defined() && !right.defined()) || isSymbolicNumber(plain))) return {};
  const auto whole = [&](const at::Tensor& side, const at::Tensor& beside) { return side.defined() ? side : at::full({}, scalar(plain), beside.options()); };
  switch (n.op) {
    case kAdd: return both ? left + right : left.defined() ? left + scalar(plain) : right + scalar(plain);
    case kMultiply: return both ? left * right : left.defined() ? left * scalar(plain) : right * scalar(plain);
    case kSubtract: return both ? left - right : left.defined() ? left - scalar(plain) : -(right - scalar(plain));
    case kTrueDivide: return whole(left, right) / whole(right, left);
    case kPower: return !both && left.defined() ? left.pow(scalar(plain)) : at::Tensor();
    case DeferredNumber::kLarger:
    case DeferredNumber::kSmaller: {
      const at::Tensor first = whole(left, right), second = whole(right, left);
      return at::where(n.op == DeferredNumber::kLarger ? second.gt(first) : second.lt(first), second, first);
    }
    default: return {};
  }
}

}  // namespace

void refuseDeferred(PyObject* number, std::string_view use) {
  if (isSymbolicBool(number) && deferredNumber(number).op != DeferredNumber::kRead) decideTruth(number);  // whose reason says more
  trace::raiseBreak(trace::BreakKind::DataDependent,
                    "the number that aten::_local_scalar_dense reads from a tensor at " + readAt(number) +
                        " is needed: " + std::string(use),
                    "keep the value in a tensor, or move what needs it out of compiled code");
}

PyRef pythonNumberOf(PyObject* number) {
  if (!isArrayScalar(number)) {
    if (!isNumpyScalar(Py_TYPE(number))) return isDeferred(number) ? PyRef() : PyRef::borrow(number);
    PyRef plain = PyRef::steal(PyFloat_Check(number) ? PyFloat_FromDouble(PyFloat_AS_DOUBLE(number)) : PyNumber_Index(number));
    clearError();
    return plain;
  }
  const DeferredNumber& n = deferredNumber(number);
  if (n.python || n.madeBy == DeferredNumber::kRead) return n.python;
  const PyRef left = pythonNumberOf(n.left.get()), right = left && n.right ? pythonNumberOf(n.right.get()) : PyRef();
  if (!left || (n.right && !right)) return {};
  const bool anySymbol = isSymbolicNumber(left.get()) || (right && isSymbolicNumber(right.get()));
  PyRef made;
  if (!anySymbol) {
    made = PyRef::steal(n.madeBy == DeferredNumber::kNegate    ? PyNumber_Negative(left.get())
                        : n.madeBy >= DeferredNumber::kCompare ? PyObject_RichCompare(left.get(), right.get(), n.madeBy - DeferredNumber::kCompare)
                                                               : evaluateBinary(n.madeBy, left.get(), right.get()));
  } else if (n.madeBy >= DeferredNumber::kCompare) {
    if (const int answer = symbolicComparison(n.madeBy - DeferredNumber::kCompare, left.get(), right.get()); answer >= 0)
      made = PyRef::borrow(answer ? Py_True : Py_False);
  } else {
    made = n.madeBy == DeferredNumber::kNegate ? symbolicNegative(left.get()) : symbolicArithmetic(n.madeBy, left.get(), right.get());
  }
  clearError();
  // numpy gives a type that does not depend on the values.
  const at::ScalarType type = tensorOf(n.tensor.get()).scalar_type();
  return made && pythonTypeOf(made.get()) == pythonTypeOf(type) && (isIntType(type) || type == at::kDouble || type == at::kBool) ? made : PyRef();
}

PyRef madeByOperator(PyRef number, int op, PyObject* left, PyObject* right) {
  if (!number || !isArrayScalar(number.get())) return number;
  DeferredNumber made = deferredNumber(number.get());
  made.madeBy = op;
  made.left = PyRef::borrow(left);
  if (right) made.right = PyRef::borrow(right);
  return newArrayScalar(std::move(made));
}

bool settleDeferred(PyObject* number) {
  trace::TraceContext* context = trace::TraceContext::current();
  if (!isSymbolicInt(number) || !context || !context->dataSizes().isAllowed || context->recorder().isBackward() ||
      trace::insideTransform())
    return false;
  const DeferredNumber n = deferredNumber(number);
  if (n.op == DeferredNumber::kRead) {
    namespace functional = at::functionalization::impl;
    TorchCalls* calls = TorchCalls::current();
    const size_t before = calls ? calls->operators() : 0;
    at::Tensor value = asTensor(number);
    if (functional::isFunctionalTensor(value)) {
      functional::sync(value);
      value = functional::from_functional_tensor(value);
    }
    const auto* traced = trace::asTrace(value);
    if (!traced) return false;
    // What is drawn for the call is found by the graph too.
    if (!calls && context->graph().node(traced->value().node).kind == graph::NodeKind::Placeholder) {
      value = value.clone();
      traced = trace::asTrace(value);
    }
    const graph::SymExpr symbol = context->dataSizes().defineNumber(*context, traced->value(), "the number read at " + n.readAt);
    if (calls) calls->number(symbol, n.tensor.get(), n.element, before);
    becomeSymbolic(number, context->sharedShapes(), NumberExpr{.a = symbol});
    return true;
  }
  for (PyObject* side : {n.left.get(), n.right.get()})
    if (side && isDeferred(side) && !settleDeferred(side)) return false;
  PyRef made = n.right                              ? symbolicArithmetic(n.op, n.left.get(), n.right.get())
               : n.op == DeferredNumber::kNegate    ? symbolicNegative(n.left.get())
               : n.op == DeferredNumber::kAbsolute  ? symbolicAbsolute(n.left.get())
                                                    : PyRef();
  clearError();
  if (!made || !isSymbolicInt(made.get()) || isDeferred(made.get())) return false;
  becomeSymbolic(number, context->sharedShapes(), numberExpr(made.get()));
  return true;
}

PyRef deferredArithmetic(int op, PyObject* a, PyObject* b) {
  PyObject* number = isDeferred(a) ? a : b;
  if (isArrayScalar(a) || isArrayScalar(b)) refuseDeferred(number, "an operand in C code");
  const bool divides = op == kTrueDivide || op == kFloorDivide || op == kRemainder;
  if (!divides && op != kAdd && op != kSubtract && op != kMultiply)
    refuseDeferred(number, "an operator that may raise");
  const bool isFloat = op == kTrueDivide || isFloatNumber(a) || isFloatNumber(b);
  if (isFloat && (!isBounded(a) || !isBounded(b))) refuseDeferred(number, "an int of any size becomes a float");
  if (divides && !isNeverZero(b)) refuseDeferred(number, "a divisor may be 0");
  const int depth = 1 + std::max(depthOf(a), depthOf(b));
  if (depth > kDeepestRecipe) refuseDeferred(number, "too much has been computed with it");
  return newDeferred(isFloat ? &PyFloat_Type : &PyLong_Type, {.op = op, .left = PyRef::borrow(a), .right = PyRef::borrow(b), .depth = depth});
}

PyRef deferredUnary(DeferredNumber::Op op, PyObject* number) {
  if (isArrayScalar(number)) refuseDeferred(number, "an operand in C code");
  if (op == DeferredNumber::kToFloat && isFloatNumber(number)) return PyRef::borrow(number);
  if (op == DeferredNumber::kToFloat && !isBounded(number))
    refuseDeferred(number, "an int of any size becomes a float");
  const int depth = 1 + depthOf(number);
  if (depth > kDeepestRecipe) refuseDeferred(number, "too much has been computed with it");
  return newDeferred(op == DeferredNumber::kToFloat || isFloatNumber(number) ? &PyFloat_Type : &PyLong_Type,
                     {.op = op, .left = PyRef::borrow(number), .depth = depth});
}

/// float() of a tensor that requires a gradient: torch says once what it thinks of that.
static void warnOfHistory(Evaluation& e) {
  static Once<PyObject*> leaf;
  const auto read = [](const CallArguments&) {
    const trace::NoTrace off;
    return PyNumber_Float(leaf.get([] { return newTensorObject(at::zeros({}).requires_grad_(true)); }));
  };
  if (!PyRef::steal(e.heard({nullptr, 0, nullptr}, read))) clearError();
}

/// A backend in Python is given graphs that end where a number is read, unless torch's setting says otherwise.
static bool endsGraphs(Evaluation& e) { return e.torchCalls() && !dynamoSwitch("capture_scalar_outputs", "TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS", false); }

PyRef deferredItem(Evaluation& e, PyObject* object, char how) {
  if (!isReadable(e, object)) return {};
  const at::Tensor& t = tensorOf(object);
  const at::ScalarType type = t.scalar_type();
  const bool real = isRealType(type), integer = isIntType(type), isBool = type == at::kBool;
  // int() of a float may raise.
  const bool fits = how == 'i' ? integer || isBool : real || integer || isBool;
  if (t.numel() != 1 || !fits) return {};
  if (endsGraphs(e)) return {};
  if (how == 'f' && t.requires_grad()) warnOfHistory(e);
  const at::ScalarType read = how == 'f' && !real ? at::kDouble : how == 'i' && isBool ? at::kLong : type;
  return newDeferred(pythonTypeOf(read), readOf(e, t, read));
}

PyRef deferredArrayScalar(Evaluation& e, const at::Tensor& value, PyRef python) {
  DeferredNumber read = readOf(e, value, value.scalar_type());
  read.python = std::move(python);
  return newArrayScalar(std::move(read));
}

PyRef deferredTruth(Evaluation& e, PyObject* arrayScalar) {
  if (pythonNumberOf(arrayScalar)) return PyRef::borrow(decideTruth(arrayScalar) ? Py_True : Py_False);
  const DeferredNumber& n = deferredNumber(arrayScalar);
  if (!isReadable(e, n.tensor.get())) return {};
  const at::Tensor& value = tensorOf(n.tensor.get());
  return newDeferred(&PyBool_Type, readOf(e, e.torchCalls() ? value : value.ne(0), at::kBool));
}

namespace {

/// Lists in lists of elements of `number`, from `number.element` on.
PyRef nested(Evaluation& e, DeferredNumber& number, at::IntArrayRef sizes, PyTypeObject* type) {
  if (sizes.empty()) {
    PyRef element = newDeferred(type, number);
    ++number.element;
    return element;
  }
  PyRef made = PyRef::steal(PyList_New(sizes[0]));
  for (int64_t i = 0; i < sizes[0]; ++i) PyList_SET_ITEM(made.get(), i, nested(e, number, sizes.slice(1), type).release());
  e.adopt(made.get());
  return made;
}

/// Lists that the capture has made, in lists.
void adoptLists(Evaluation& e, PyObject* list) {
  if (!PyList_Check(list)) return;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) adoptLists(e, PyList_GET_ITEM(list, i));
  e.adopt(list);
}

/// tolist() of what the program knows; null: it does not.
PyRef knownList(Evaluation& e, PyObject* object) {
  const at::Tensor data = isPlainStandIn(e, object) && !trace::insideTransform() ? knownData(e, tensorOf(object)) : at::Tensor();
  if (!data.defined()) return {};
  const trace::NoTrace off;
  PyRef tensor = PyRef::steal(newTensorObject(data)), list = PyRef::steal(PyObject_CallMethod(tensor.get(), "tolist", nullptr));
  if (!list) throw std::runtime_error("a tensor of known numbers has no list");
  adoptLists(e, list.get());
  return list;
}

}  // namespace

PyRef deferredList(Evaluation& e, PyObject* object) {
  if (PyRef known = knownList(e, object)) return known;
  if (!isReadable(e, object, true)) return {};
  const at::Tensor& t = tensorOf(object);
  const at::ScalarType type = t.scalar_type();
  int64_t count = 1;
  for (const c10::SymInt& size : t.sym_sizes()) {
    const auto symbolic = trace::exprOf(size);
    count *= symbolic ? e.trace().shapes().hint(*symbolic) : size.guard_int(__FILE__, __LINE__);
  }
  if (count == 0 || count > kLongestList || !(isIntType(type) || (isRealType(type) && !endsGraphs(e)))) return {};
  if (t.dim() == 0) return newDeferred(pythonTypeOf(type), readOf(e, t, type));
  std::vector<int64_t> sizes;  // a list's length is a constant
  for (const c10::SymInt& size : t.sym_sizes()) sizes.push_back(size.guard_int(__FILE__, __LINE__));
  DeferredNumber number = readOf(e, t, type, true);
  number.list = PyRef::steal(PyList_New(0));
  number.element = 0;
  return nested(e, number, sizes, pythonTypeOf(type));
}

at::Tensor deferredAsTensor(int op, PyObject* a, PyObject* b) {
  // Both in float64, or both in int64: a comparison of tensors of two types rounds.
  const bool isFloat = isFloatNumber(a) || isFloatNumber(b);
  const auto side = [isFloat](PyObject* o) -> std::pair<at::Tensor, std::optional<at::Scalar>> {
    if (isDeferred(o)) {
      if (isFloat && !isFloatNumber(o)) return {};
      return {asTensor(o), std::nullopt};
    }
    if (isSymbolicNumber(o)) return {};
    if (isFloat) {
      const double value = PyFloat_Check(o) ? PyFloat_AS_DOUBLE(o) : PyLong_AsDouble(o);
      PyRef back = PyErr_Occurred() ? PyRef() : PyRef::steal(PyFloat_FromDouble(value));
      clearError();
      const bool exact = back && PyObject_RichCompareBool(back.get(), o, Py_EQ) == 1;
      return {{}, exact || std::isnan(value) ? std::optional<at::Scalar>(value) : std::nullopt};
    }
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
    return {{}, overflow ? std::nullopt : std::optional<at::Scalar>(static_cast<int64_t>(value))};
  };
  auto left = side(a), right = side(b);
  if (!left.first.defined()) {
    std::swap(left, right);
    op = kSwapped[op];
  }
  if (!left.first.defined() || (!right.first.defined() && !right.second)) return {};
  const at::Tensor& x = left.first;
  const auto compared = [&](const auto& y) {
    switch (op) {
      case Py_LT: return x.lt(y);
      case Py_LE: return x.le(y);
      case Py_EQ: return x.eq(y);
      case Py_NE: return x.ne(y);
      case Py_GT: return x.gt(y);
      default: return x.ge(y);
    }
  };
  return right.second ? compared(*right.second) : compared(right.first.to(x.device()));
}

PyRef deferredTensor(Evaluation& e, PyObject* number) {
  const DeferredNumber& n = deferredNumber(number);
  if (n.op == DeferredNumber::kRead) {
    if (n.element < 0) return n.tensor;
    const PyRef first = PyRef::steal(PyLong_FromLong(0)), element = PyRef::steal(PyLong_FromLongLong(n.element));
    return e.callMethodNamed(n.tensor.get(), "select", {first.get(), element.get()});
  }
  const at::Tensor value = e.torchCalls() ? at::Tensor() : asTensor(number);
  return value.defined() ? PyRef::steal(newTensorObject(value)) : PyRef();
}

PyRef deferredBesideTensor(Evaluation& e, int op, PyObject* a, PyObject* b) {
  PyObject *number = isDeferred(a) ? a : b, *other = number == a ? b : a;
  const int kind = op >= kFirstInPlace ? op - kFirstInPlace : op;
  const at::Tensor& t = tensorOf(other);
  // Among tensors of less precision, and of no dimension, a tensor is not what a number is.
  const bool precise = t.scalar_type() == at::kFloat || t.scalar_type() == at::kDouble;
  const bool isScalar = t.dim() == 0 && isFloatNumber(number) && !e.torchCalls();
  const bool isWhole = isSymbolicInt(number) && t.scalar_type() == at::kLong;  // every int that is read fits
  const bool fits = e.isStandIn(other) && (((t.dim() > 0 || isScalar) && precise) || isWhole);
  const bool known = kind == kAdd || kind == kMultiply || kind == kSubtract || (kind == kTrueDivide && precise && t.is_cpu());
  at::Tensor value = fits && known ? asTensor(number) : at::Tensor();
  if (value.defined() && isScalar) value = value.to(t.scalar_type());  // a number does not decide the type
  if (!value.defined() || (!value.is_cpu() && value.device() != t.device()))
    refuseDeferred(number, "an operand beside a tensor");
  PyRef made = PyRef::steal(newTensorObject(value));
  // A number is divided as torch divides one: what it is divided by is turned first.
  if (number == a && kind == kTrueDivide) {
    if (TorchCalls* calls = e.torchCalls()) {
      const DeferredNumber& n = deferredNumber(number);
      if (n.op != DeferredNumber::kRead || n.element >= 0) refuseDeferred(number, "an operand beside a tensor");
      const PyRef turned = calls->method("reciprocal", {b});
      return turned ? calls->method("mul", {turned.get(), n.tensor.get()}) : turned;
    }
    const PyRef turned = e.checked(PyObject_CallMethodNoArgs(b, internedName("reciprocal")));
    return turned ? e.checked(evaluateBinary(kMultiply, turned.get(), made.get())) : turned;
  }
  // Numbers do not change in place.
  return e.checked(number == a ? evaluateBinary(kind, made.get(), b) : evaluateBinary(op, a, made.get()));
}

}  // namespace fusebox::capture
