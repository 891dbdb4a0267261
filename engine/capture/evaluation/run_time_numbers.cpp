// Floats of the program that change from call to call (a learning rate), and numbers of numpy's: values of the graph instead of constants under a guard.
#include <algorithm>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/arrays.h"
#include "engine/capture/evaluation/deferred_numbers.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/operator_numbers.h"
#include "engine/capture/evaluation/symbolic_index.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/trace/recorder.h"

namespace fusebox::capture {

namespace {

/// Operators of torch, `_foreach_` and a trailing `_` apart, that take a number and mean the same by a 0-dimensional tensor of float64.
constexpr std::string_view kTakeNumbers[] = {"add",     "sub",     "subtract", "mul",  "multiply", "div",         "divide",       "true_divide",
                                             "addcmul", "addcdiv", "lerp",     "fill", "_fused_sgd", "_fused_adam", "_fused_adamw", "_fused_adagrad"};

bool takesNumber(std::string_view name) {
  if (name.starts_with("_foreach_")) name.remove_prefix(9);
  if (name.ends_with("_")) name.remove_suffix(1);
  return std::find(std::begin(kTakeNumbers), std::end(kTakeNumbers), name) != std::end(kTakeNumbers);
}

/// Callables with rules that hand objects on, or ask for no more than their class.
constexpr std::string_view kHandOn[] = {"isinstance", "type", "is_tensor", "is_tensor_like", "append", "setattr", "print"};

std::string_view nameOf(PyObject* callable) {
  if (PyCFunction_Check(callable)) return reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name;
  if (Py_IS_TYPE(callable, &PyMethodDescr_Type)) return reinterpret_cast<PyMethodDescrObject*>(callable)->d_method->ml_name;
  if (PyFunction_Check(callable)) return utf8Of(reinterpret_cast<PyFunctionObject*>(callable)->func_name);
  return PyType_Check(callable) ? reinterpret_cast<PyTypeObject*>(callable)->tp_name : "";
}

bool isFloating(const at::Tensor& t) { return at::isFloatingType(t.scalar_type()); }

}  // namespace

/// An int or float64 of numpy's, which the graph has as `standIn`, as a symbol of Python's; null without error: it is none.
PyRef Evaluation::symbolOfArrayNumber(PyObject* number, const Source* source, PyObject* standIn) {
  const at::Tensor& traced = tensorOf(standIn);
  if (PyFloat_Check(number)) {
    const auto bits = symbolicInputs_->bitsOfArrayFloat(PyFloat_AS_DOUBLE(number), source, place());
    if (!bits) return {};
    trace_->recorder().holdsFloat(bits->symbols().front(), traced);
    return newSymbolicNumber(trace_->sharedShapes(), {.kind = NumberExpr::Kind::Bits, .a = *bits});
  }
  if (!at::isIntegralType(traced.scalar_type(), /*includeBool=*/false)) return {};
  const PyRef whole = PyRef::steal(PyNumber_Index(number));
  const auto symbol = symbolicInputs_->ofArrayInt(PyLong_AsLongLong(whole.get()), source, place());
  return symbol ? newSymbolicInt(trace_->sharedShapes(), *symbol) : PyRef();
}

PyRef Evaluation::wrapNumber(PyObject* object, const Source* source) {
  if (auto known = numberAt_.find(source); known != numberAt_.end()) return known->second;
  if (isNumpyScalar(Py_TYPE(object))) {
    guard(GuardKind::TypeMatch, source, reinterpret_cast<PyObject*>(Py_TYPE(object)));
    PyRef real = PyRef::steal(tensorOfArray(object));
    if (!real) breakHere(kRunTimeNumber, std::string("a ") + Py_TYPE(object)->tp_name + " that changes from call to call has no tensor");
    PyRef made = inputOfGraph(real.get(), sources().derived(Source::Kind::ArrayTensor, source));
    PyRef number = deferredArrayScalar(*this, tensorOf(made.get()), options_.floatsAreSymbols ? symbolOfArrayNumber(object, source, made.get()) : PyRef());
    usesArrayNumbers_ = true;
    origins_.add(number.get(), source);
    numbers_.emplace(object, PyRef::borrow(object));
    numberAt_.emplace(source, number);
    return number;
  }
  const double value = PyFloat_AS_DOUBLE(object);
  const std::optional<graph::SymExpr> bits = options_.floatsAreSymbols ? symbolicInputs_->bitsOf(value, source, place()) : std::nullopt;
  if (!bits) guard(GuardKind::TypeMatch, source, reinterpret_cast<PyObject*>(&PyFloat_Type));
  if (!guardTorchsMethods(tensorType())) refuseNumber("computed with while the program has changed methods of torch.Tensor");
  at::Tensor real;
  {
    const trace::NoTrace off;
    real = at::scalar_tensor(value, at::kDouble);
  }
  PyRef realObject = PyRef::steal(newTensorObject(real));
  const at::Tensor traced = trace_->input(real, bits ? bits->symbols().front().name() : source->label()).standIn;
  PyRef standIn = PyRef::steal(newTensorObject(traced));
  origins_.add(realObject.get(), source);
  origins_.add(standIn.get(), source);
  if (bits) {
    trace_->recorder().holdsFloat(bits->symbols().front(), traced);
    PyRef number = newSymbolicNumber(trace_->sharedShapes(), {.kind = NumberExpr::Kind::Bits, .a = *bits});
    origins_.add(number.get(), source);
    numberAt_.emplace(source, number);
    return number;
  }
  numbers_.emplace(standIn.get(), standIn);
  numberAt_.emplace(source, standIn);
  return standIn;
}

void Evaluation::refuseNumber(const char* use) {
  breakHere(kRunTimeNumber, std::string("a float that changes from call to call is ") + use);
}

void Evaluation::requireConstant(const PyRef& read) {
  if (isNumber(read.get())) refuseNumber("in a container that is taken as a whole");
  if (read) plainKey(read.get(), "a container that is taken as a whole");
}

PyRef Evaluation::asNumber(PyRef value) {
  if (value) numbers_.emplace(value.get(), value);
  return value;
}

PyRef Evaluation::asReadNumber(PyObject* number) {
  const PyRef tensor = isDeferred(number) ? deferredTensor(*this, number) : PyRef();
  if (!tensor || torchCalls_ || !tensorOf(tensor.get()).is_cpu() || tensorOf(tensor.get()).scalar_type() == at::kBool) return {};
  return asNumber(checked(newTensorObject(tensorOf(tensor.get()).to(at::kDouble))));
}

PyRef Evaluation::readNumberFor(PyObject* callable, PyObject* argument) {
  return isDeferred(argument) && isSymbolicFloat(argument) && isTorchBinding(callable) && takesNumber(nameOf(callable)) ? asReadNumber(argument) : PyRef();
}

PyRef Evaluation::numberBinary(int op, PyObject* a, PyObject* b) {
  const int kind = op >= kFirstInPlace ? op - kFirstInPlace : op;
  if (kind != kAdd && kind != kMultiply && kind != kSubtract && kind != kTrueDivide) refuseNumber("an operand of an operator that has no kernel for it");
  PyObject* other = isNumber(a) ? b : a;
  if (isNumber(other) || PyFloat_CheckExact(other) || PyLong_CheckExact(other) || PyBool_Check(other)) {
    PyRef plain = isNumber(other) ? PyRef::borrow(other) : PyRef::steal(PyNumber_Float(other));
    if (!plain) clearError();
    // Python raises for a division by zero.
    if (!plain || (kind == kTrueDivide && (isNumber(b) || PyFloat_AS_DOUBLE(plain.get()) == 0))) refuseNumber("a divisor, or beyond what a float holds");
    return asNumber(checked(evaluateBinary(kind, isNumber(a) ? a : plain.get(), isNumber(b) ? b : plain.get())));
  }
  if (!isStandIn(other) || !isFloating(tensorOf(other))) refuseNumber("an operand beside something that is no tensor of floats");
  // Among 0-dimensional tensors a number does not decide the type.
  PyRef number = PyRef::borrow(isNumber(a) ? a : b);
  if (tensorOf(other).dim() == 0) number = checked(newTensorObject(tensorOf(number.get()).to(tensorOf(other).scalar_type())));
  // As torch divides a number: what it is divided by is turned first.
  if (kind == kTrueDivide && isNumber(a)) {
    const PyRef turned = checked(PyObject_CallMethodNoArgs(b, internedName("reciprocal")));
    return turned ? checked(evaluateBinary(kMultiply, turned.get(), number.get())) : turned;
  }
  return checked(evaluateBinary(op, isNumber(a) ? number.get() : a, isNumber(b) ? number.get() : b));
}

PyRef Evaluation::numberUnary(Op op, PyObject* a) {
  if (op != Op::UNARY_NEGATIVE) refuseNumber("the operand of an operator that has no kernel for it");
  return asNumber(checked(PyNumber_Negative(a)));
}

void Evaluation::refuseNumbersAsTensors(PyObject* callable, const CallArguments& a) {
  for (size_t i = 0; !numbers_.empty() && i < a.total(); ++i)
    if (isNumber(a.args[i]) && std::find(std::begin(kHandOn), std::end(kHandOn), nameOf(callable)) == std::end(kHandOn))
      refuseNumber("given to a function that looks at it");
}

bool Evaluation::requireTakesNumbers(PyObject* callable, const CallArguments& a) {
  if (numbers_.empty()) return false;
  bool given = false, inPlace = false, decided = false;
  for (size_t i = 0; i < a.total(); ++i) given = given || isNumber(a.args[i]);
  if (!given) return false;
  const std::string_view name = nameOf(callable);
  if (!isTorchBinding(callable) || !takesNumber(name)) refuseNumber("given to a function that looks at it");
  inPlace = name.ends_with("_");
  PyObject* self = PyCFunction_Check(callable) ? boundSelf(callable) : nullptr;
  const auto check = [&](PyObject* o, bool whole) {
    if (!isTensor(o) || isNumber(o)) return;
    decided = true;
    const at::Tensor& t = tensorOf(o);
    if (!isFloating(t) || (t.dim() == 0 && whole && !inPlace)) refuseNumber("given together with a tensor whose type it would not decide");
  };
  if (self) check(self, true);
  for (size_t i = 0; i < a.total(); ++i) {
    check(a.args[i], true);
    if (!PyTuple_Check(a.args[i]) && !PyList_Check(a.args[i])) continue;
    // Steps of an optimiser are 0-dimensional, and what is computed with them is not what the number meets.
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(a.args[i]); ++k) check(PySequence_Fast_GET_ITEM(a.args[i], k), !name.starts_with("_fused"));
  }
  if (!decided) refuseNumber("given without a tensor, so that the default dtype decides the type");
  return true;
}

}  // namespace fusebox::capture
