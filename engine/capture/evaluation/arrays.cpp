#include "engine/capture/evaluation/arrays.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>

#include <functional>
#include <span>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/once.h"
#include "engine/capture/entries/barrier.h"
#include "engine/capture/evaluation/data_conditions.h"
#include "engine/capture/evaluation/deferred_numbers.h"
#include "engine/capture/evaluation/operator_numbers.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/torch_calls.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/torch_warnings.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/rules/kept_predicates.h"
#include "engine/capture/rules/autograd_function.h"
#include "engine/trace/sym_int.h"
#include "engine/trace/transform_levels.h"

namespace torch::utils {
// numpy's headers stay out of here.
at::Tensor tensor_from_numpy(PyObject* array, bool warnsOfReadOnly);
}  // namespace torch::utils

namespace fusebox::capture {

namespace {

/// How an array begins, for every extension that was compiled against numpy.
struct ArrayFields {
  PyObject_HEAD
  char* data;
  int dimensions;
  Py_ssize_t *sizes, *strides;
  PyObject *base, *type;
  int flags;
};
constexpr int kWriteable = 0x0400;

const ArrayFields& fieldsOf(PyObject* array) { return *reinterpret_cast<ArrayFields*>(array); }

PyObject* module() {
  static Once<PyObject*> module;
  return module.get([] { return PyImport_ImportModule("fusebox._arrays"); });
}

/// Attributes that the layout decides.
constexpr const char* kOfLayout[] = {"shape", "ndim", "size", "itemsize", "nbytes", "strides"};

bool isMethodOfArray(PyObject* callable) {
  if (!Py_IS_TYPE(callable, &PyMethodDescr_Type)) return false;
  auto* owner = reinterpret_cast<PyObject*>(PyDescr_TYPE(callable));
  return owner == torchObject("numpy.ndarray") || owner == torchObject("numpy.generic");
}

bool makesTensor(PyObject* callable) {
  for (const char* name : {"torch.from_numpy", "torch.as_tensor", "torch.tensor"})
    if (callable == torchObject(name)) return true;
  return false;
}

bool isUfunc(PyObject* callable) {
  PyObject* type = torchObject("numpy.ufunc");
  return type && Py_IS_TYPE(callable, reinterpret_cast<PyTypeObject*>(type));
}

/// What numpy says in warnings whenever it has torch make a tensor of what it gives.
const std::vector<KeptWarnings::Warning>& saidOfWrapping() {
  static Once<std::vector<KeptWarnings::Warning>> said;
  return said.get([] {
    const trace::NoTrace off;
    KeptWarnings kept;
    PyRef tensor = PyRef::steal(newTensorObject(at::zeros({1}, at::TensorOptions().device(at::kCPU))));
    PyObject* positive = torchObject("numpy.positive");
    if (tensor && positive) PyRef::steal(PyObject_CallOneArg(positive, tensor.get()));
    clearError();
    return kept.take();
  });
}

/// Functions of C that make an array of what they are given.
bool makesArray(PyObject* callable) {
  for (const char* name : {"numpy.array", "numpy.asarray", "numpy.asanyarray", "numpy.ascontiguousarray"})
    if (callable == torchObject(name)) return true;
  return false;
}

bool holdsArray(PyObject* o) {
  if (Arrays::is(o)) return true;
  if (!PyTuple_CheckExact(o) && !PyList_CheckExact(o)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
    if (Arrays::is(PySequence_Fast_GET_ITEM(o, i))) return true;
  return false;
}

std::string nameOf(PyObject* function) {
  PyRef name = PyRef::steal(PyObject_GetAttrString(function, "__name__"));
  const char* text = name && PyUnicode_Check(name.get()) ? utf8Of(name.get()) : nullptr;
  clearError();
  return text ? text : "?";
}

}  // namespace

/// Overflow to zero is nothing that numpy warns of, unless the program asks for it.
bool ignoresUnderflow(PyObject*, PyObject*) {
  static PyObject* const ask = torchObject("numpy._core._multiarray_umath._get_extobj_dict");
  PyRef errors = ask ? PyRef::steal(PyObject_CallNoArgs(ask)) : PyRef();
  PyObject* under = errors && PyDict_Check(errors.get()) ? PyDict_GetItemString(errors.get(), "under") : nullptr;
  clearError();
  return under && PyUnicode_CompareWithASCIIString(under, "ignore") == 0;
}

bool isArray(PyObject* object) {
  static PyObject* type = nullptr;
  if (!type) [[unlikely]] type = torchObject("numpy.ndarray");
  return reinterpret_cast<PyObject*>(Py_TYPE(object)) == type;
}

bool writeableOfType(PyObject* array, PyObject* type) { return isArray(array) && fieldsOf(array).type == type && (fieldsOf(array).flags & kWriteable); }
bool readOnlyOfType(PyObject* array, PyObject* type) { return isArray(array) && fieldsOf(array).type == type && !(fieldsOf(array).flags & kWriteable); }

PyObject* tensorOfArray(PyObject* array) {
  PyRef ofNumber;
  if (isNumpyScalar(Py_TYPE(array))) {
    ofNumber = PyRef::steal(PyObject_CallOneArg(torchObject("numpy.array"), array));
    if (!ofNumber) return clearError(), nullptr;
    array = ofNumber.get();
  }
  if (!isArray(array)) return nullptr;
  const trace::NoTrace off;
  try {
    return newTensorObject(torch::utils::tensor_from_numpy(array, false));
  } catch (const std::exception&) {
    clearError();
    return nullptr;
  }
}

void Arrays::refuse(const std::string& name, const std::string& why) {
  e_.breakHere("numpy", "numpy's " + name + " " + why, "Use torch's function in its place.");
}

const Arrays::Value* Arrays::find(PyObject* array) const {
  const auto found = values_.find(array);
  return found == values_.end() ? nullptr : &found->second;
}

PyRef Arrays::keep(Value value) {
  value.birth = e_.rootCount();
  PyRef array = value.array;
  values_.insert_or_assign(array.get(), std::move(value));
  return array;
}

bool Arrays::isFollowing() const {
  const bool assumes = e_.torchCalls() ? e_.options().assumesOfData : e_.trace().dataSizes().isAllowed;
  return assumes && !e_.functions().isLate() && !trace::insideTransform();
}

void Arrays::requireGraph(const std::string& name) {
  if (!isFollowing() || at::impl::PythonTorchFunctionTLS::stack_len() > 0) refuse(name, "works on an array where arrays are not followed");
}

PyRef Arrays::ask(const char* name, std::initializer_list<PyObject*> args) {
  PyRef function = PyRef::steal(PyObject_GetAttrString(module(), name)), calls = PyRef::steal(PyList_New(0));
  if (!function) return {};
  if (!e_.torchCalls()) return PyRef::steal(PyObject_Vectorcall(function.get(), args.begin(), args.size(), nullptr));
  const TorchCalls::Scope scope(e_.torchCalls());
  std::vector<PyObject*> all = {calls.get(), function.get()};
  all.insert(all.end(), args.begin(), args.end());
  PyRef recorded = PyRef::steal(PyObject_GetAttrString(module(), "recorded"));
  PyRef answer = recorded ? PyRef::steal(PyObject_Vectorcall(recorded.get(), all.data(), all.size(), nullptr)) : PyRef();
  if (answer) e_.torchCalls()->addAll(scope, calls.get());
  return answer;
}

Arrays::Value& Arrays::input(PyObject* array) {
  const Source* source = e_.sourceOf(array);
  PyRef follows = PyRef::steal(PyObject_CallMethod(module(), "is_followed", "O", array));
  PyRef real = source && follows.get() == Py_True ? PyRef::steal(tensorOfArray(array)) : PyRef();
  clearError();
  if (!real) refuse("ndarray", "of this type or layout has no tensor");
  const bool writeable = fieldsOf(array).flags & kWriteable;
  e_.guardCustom(source, writeable ? writeableOfType : readOnlyOfType, fieldsOf(array).type, writeable ? "type of a writeable array" : "type of a read-only array");
  const Source* place = e_.sources().derived(Source::Kind::ArrayTensor, source);
  PyRef standIn = e_.inputOfGraph(real.get(), place);
  keep({.kind = Value::Kind::Input, .array = PyRef::borrow(array), .tensor = std::move(standIn)});
  return values_.at(array);
}

Arrays::Value& Arrays::valueOf(PyObject* array) {
  const auto found = values_.find(array);
  return found != values_.end() ? found->second : input(array);
}

PyRef Arrays::tensorOfOperand(PyObject* o) { return isArrayScalar(o) ? deferredNumber(o).tensor : valueOf(o).tensor; }

/// What numpy is given in the place of an operand; arrays are noted in `tensors`.
PyRef Arrays::operand(PyObject* o, const std::string& name, PyObject* tensors, int depth) {
  if (isArray(o)) {
    PyRef key = PyRef::steal(PyLong_FromVoidPtr(o));
    PyDict_SetItem(tensors, key.get(), valueOf(o).tensor.get());
    return PyRef::borrow(o);
  }
  if (isArrayScalar(o)) {
    PyRef made = PyRef::steal(PyObject_CallMethod(module(), "Scalar", "O", pythonTypeOf(o)));
    PyRef key = PyRef::steal(PyLong_FromVoidPtr(made.get()));
    PyDict_SetItem(tensors, key.get(), tensorOfOperand(o).get());
    return made;
  }
  if (isSymbolicNumber(o)) return e_.plainNumber(o, "numpy computes with the number");
  e_.refuseAddress(o);
  if (isConstantValue(o) || isNumpyScalar(Py_TYPE(o))) return PyRef::borrow(o);
  if (PyType_Check(o) && (isNumpyFunction(o) || o == reinterpret_cast<PyObject*>(&PyFloat_Type) || o == reinterpret_cast<PyObject*>(&PyLong_Type) ||
                          o == reinterpret_cast<PyObject*>(&PyBool_Type)))
    return PyRef::borrow(o);
  PyObject* dtype = torchObject("numpy.dtype");
  if (dtype && PyObject_TypeCheck(o, reinterpret_cast<PyTypeObject*>(dtype))) return e_.sourceOf(o) ? PyRef::borrow(o) : PyRef();
  if (PySlice_Check(o)) {
    auto* slice = reinterpret_cast<PySliceObject*>(o);
    PyRef start = operand(slice->start, name, tensors, depth + 1), stop = operand(slice->stop, name, tensors, depth + 1), step = operand(slice->step, name, tensors, depth + 1);
    return PyRef::steal(PySlice_New(start.get(), stop.get(), step.get()));
  }
  if ((PyTuple_CheckExact(o) || PyList_CheckExact(o)) && depth < 3) {
    const Py_ssize_t n = e_.builtinLength(o);
    PyRef made = PyRef::steal(PyTuple_New(n));
    for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(made.get(), i, operand(e_.element(o, i).get(), name, tensors, depth + 1).release());
    return PyTuple_CheckExact(o) ? made : PyRef::steal(PySequence_List(made.get()));
  }
  refuse(name, std::string("is given a ") + Py_TYPE(o)->tp_name + " beside an array");
}

/// A key of an array whose ints change from call to call; their symbols are noted in `tensors`. Null without error: it has other parts, or no such ints.
PyRef Arrays::changingKey(PyObject* key, PyObject* tensors) {
  bool any = false;
  const std::function<PyRef(PyObject*)> part = [&](PyObject* o) -> PyRef {
    if (o == Py_None || o == Py_Ellipsis || PyLong_CheckExact(o)) return PyRef::borrow(o);
    if (isSymbolicInt(o) && !isDeferred(o) && !isArrayScalar(o)) {
      any = true;
      const c10::SymInt symbol = trace::toSymInt(numberExpr(o).a, e_.trace().shapes());
      PyRef made = PyRef::steal(PyObject_CallMethod(module(), "Index", "L", static_cast<long long>(trace::hintOf(symbol))));
      const PyRef id = made ? PyRef::steal(PyLong_FromVoidPtr(made.get())) : PyRef(), object = PyRef::steal(newSymIntObject(symbol));
      return id && object && PyDict_SetItem(tensors, id.get(), object.get()) == 0 ? made : PyRef();
    }
    if (PySlice_Check(o)) {
      auto* slice = reinterpret_cast<PySliceObject*>(o);
      const PyRef start = part(slice->start), stop = start ? part(slice->stop) : PyRef(), step = stop ? part(slice->step) : PyRef();
      return step ? PyRef::steal(PySlice_New(start.get(), stop.get(), step.get())) : PyRef();
    }
    return {};
  };
  if (!PyTuple_CheckExact(key)) {
    PyRef made = part(key);
    return any ? std::move(made) : PyRef();
  }
  PyRef made = PyRef::steal(PyTuple_New(PyTuple_GET_SIZE(key)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) {
    PyRef one = part(PyTuple_GET_ITEM(key, i));
    if (!one) return {};
    PyTuple_SET_ITEM(made.get(), i, one.release());
  }
  return any ? std::move(made) : PyRef();
}

/// numpy's types of numbers of 64 bits, which Python's become.
static bool isOfWideNumbers(PyTypeObject* type) {
  PyObject* object = reinterpret_cast<PyObject*>(type);
  return object == torchObject("numpy.int64") || object == torchObject("numpy.float64");
}

/// Whether ints of any size give among these operands what numbers of numpy's of 64 bits give: the arrays are of 64 bits already, and the function does not
/// ask what the number is.
static bool takesNumbersOfAnySize(PyObject* args, std::string_view name) {
  static constexpr std::string_view kNames[] = {"operator add",  "operator sub",  "operator mul", "operator iadd", "operator isub", "operator imul", "operator lt",
                                                "operator le",   "operator gt",   "operator ge",  "operator eq",   "operator ne",   "add",           "subtract",
                                                "multiply",      "maximum",       "minimum",      "where",         "true_divide",  "divide",
                                                "operator truediv", "operator itruediv", "operator pow", "power"};
  if (std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames)) return false;
  bool any = false;
  for (Py_ssize_t i = name == "where" ? 1 : 0; i < PyTuple_GET_SIZE(args); ++i) {
    PyObject* o = PyTuple_GET_ITEM(args, i);
    if (isArrayScalar(o) || isNumpyScalar(Py_TYPE(o))) {
      any = isOfWideNumbers(pythonTypeOf(o));
      if (!any) return false;
      continue;
    }
    if (isSymbolicInt(o)) continue;
    PyRef type = isArray(o) ? PyRef::steal(PyObject_GetAttrString(o, "dtype")) : PyRef(), text = type ? PyRef::steal(PyObject_Str(type.get())) : PyRef();
    clearError();
    if (!text || (PyUnicode_CompareWithASCIIString(text.get(), "int64") != 0 && PyUnicode_CompareWithASCIIString(text.get(), "float64") != 0)) return false;
    any = true;
  }
  return any;
}

/// An int or float that is a symbol as a number of numpy's, which the graph has as a tensor.
PyRef Arrays::numberOfSymbol(PyObject* number) {
  static PyObject* const full = torchObject("torch.full");
  static PyObject* const names = Py_BuildValue("(ss)", "dtype", "device");
  PyRef none = PyRef::steal(PyTuple_New(0)), device = PyRef::steal(PyUnicode_FromString("cpu"));
  PyObject* given[] = {none.get(), number, torchObject(isSymbolicFloat(number) ? "torch.float64" : "torch.int64"), device.get()};
  e_.pin(full, Why::Process);
  PyRef tensor = e_.call(full, given, 2, names);
  return tensor ? deferredArrayScalar(e_, tensorOf(tensor.get()), PyRef::borrow(number)) : PyRef();
}

/// What numpy is given in the place of a float that changes from call to call. Null: an exception is set.
PyRef Arrays::changingFloat(PyObject* number, PyObject* tensors) {
  PyRef tensor = PyRef::borrow(number);
  if (isSymbolicFloat(number)) {
    const PyRef scalar = numberOfSymbol(number);
    if (!scalar) return {};
    tensor = tensorOfOperand(scalar.get());
  }
  PyRef made = PyRef::steal(PyObject_CallMethod(module(), "Float", nullptr)), key = made ? PyRef::steal(PyLong_FromVoidPtr(made.get())) : PyRef();
  return key && PyDict_SetItem(tensors, key.get(), tensor.get()) == 0 ? made : PyRef();
}

PyRef Arrays::follow(PyObject* function, PyObject* args, PyObject* kwargs, const std::string& name) {
  requireGraph(name);
  PyRef replaced;
  if (takesNumbersOfAnySize(args, name))
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      if (!isSymbolicInt(PyTuple_GET_ITEM(args, i))) continue;
      if (!replaced) {
        replaced = PyRef::steal(PyTuple_New(PyTuple_GET_SIZE(args)));
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(args); ++k) PyTuple_SET_ITEM(replaced.get(), k, Py_NewRef(PyTuple_GET_ITEM(args, k)));
        args = replaced.get();
      }
      PyRef number = numberOfSymbol(PyTuple_GET_ITEM(args, i));
      if (!number) return {};
      PyTuple_SetItem(args, i, number.release());
    }
  PyRef tensors = PyRef::steal(PyDict_New()), given = PyRef::steal(PyTuple_New(PyTuple_GET_SIZE(args))), named = PyRef::steal(PyDict_New());
  static PyObject* const takeFloats = PyObject_GetAttrString(module(), "TAKE_FLOATS");
  const bool takesFloats = takeFloats && PySet_Contains(takeFloats, function) == 1, hasKey = name == "operator getitem" || name == "operator setitem";
  bool isAtSymbols = false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    PyObject* o = PyTuple_GET_ITEM(args, i);
    PyRef made = i == 1 && hasKey ? changingKey(o, tensors.get()) : PyRef();
    if (PyErr_Occurred()) return {};
    if (made) isAtSymbols = true;
    else made = takesFloats && (isSymbolicFloat(o) || e_.isNumber(o)) ? changingFloat(o, tensors.get()) : operand(o, name, tensors.get());
    if (!made) return {};
    PyTuple_SET_ITEM(given.get(), i, made.release());
  }
  PyObject *key, *value;
  if (PyObject* out = PyDict_GetItemString(kwargs, "out")) {
    if (PyTuple_CheckExact(out) && PyTuple_GET_SIZE(out) == 1) out = PyTuple_GET_ITEM(out, 0);
    if (isArray(out)) requireOwnMemory(out, name);
  }
  for (Py_ssize_t at = 0; PyDict_Next(kwargs, &at, &key, &value);) PyDict_SetItem(named.get(), key, operand(value, name, tensors.get()).get());
  PyRef answer;
  {
    const c10::impl::ExcludeDispatchKeyGuard noAutocast(c10::autocast_dispatch_keyset);
    answer = ask("apply", {function, given.get(), named.get(), tensors.get()});
  }
  e_.throwIfBreak();
  if (!answer) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return {};
    clearError();
    refuse(name, "is called in a way that is not followed");
  }
  if (PyUnicode_Check(answer.get())) refuse(name, utf8Of(answer.get()));
  enum { kMade, kView, kSame, kNumber };
  PyObject *array = PyTuple_GET_ITEM(answer.get(), 0), *tensor = PyTuple_GET_ITEM(answer.get(), 1), *condition = PyTuple_GET_ITEM(answer.get(), 3);
  const long kind = PyLong_AsLong(PyTuple_GET_ITEM(answer.get(), 2));
  if (condition != Py_None) {
    if (!quiet_.defined()) {
      if (!ignoresUnderflow(nullptr, nullptr)) refuse(name, "may warn of an underflow");
      e_.guardCustom(e_.sources().pinned(torchObject("numpy.ndarray"), Why::Process), ignoresUnderflow, nullptr, "numpy ignores an underflow");
      quietSince_ = e_.rootCount();
    }
    quiet_ = quiet_.defined() ? tensorOf(ask("both", {PyRef::steal(newTensorObject(quiet_)).get(), condition}).get()) : tensorOf(condition);
  }
  if (kind == kSame) return PyRef::borrow(array);
  if (kind == kNumber) return deferredArrayScalar(e_, tensorOf(tensor));
  Value made{.kind = kind == kView ? Value::Kind::View : Value::Kind::Made, .array = PyRef::borrow(array), .tensor = PyRef::borrow(tensor)};
  if (kind == kView) {
    made.function = PyRef::borrow(PyTuple_GET_ITEM(answer.get(), 4));
    made.args = PyRef::borrow(isAtSymbols ? args : PyTuple_GET_ITEM(answer.get(), 5));
    made.owner = PyTuple_GET_ITEM(made.args.get(), 0);
  }
  return keep(std::move(made));
}

/// What numpy writes is no new version of a tensor, which autograd would notice.
void Arrays::requireOwnMemory(PyObject* array, const std::string& name) {
  if (!isArray(array)) return;
  const Value* v = &valueOf(array);
  while (v->kind == Value::Kind::View) v = &values_.at(v->owner);
  if (v->kind == Value::Kind::OfTensor || v->isShared) refuse(name, "writes to the memory of a tensor of the program");
}

PyRef Arrays::operate(const char* name, std::initializer_list<PyObject*> operands) {
  const std::string_view wanted = name;
  if (wanted == "setitem" || (wanted.starts_with('i') && wanted != "invert")) requireOwnMemory(*operands.begin(), std::string("operator ") + name);
  const std::string dotted = std::string("_operator.") + name;
  PyObject* function = std::string_view(name) == "abs" ? torchObject("builtins.abs") : torchObject(dotted.c_str());
  PyRef args = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(operands.size()))), none = PyRef::steal(PyDict_New());
  Py_ssize_t i = 0;
  for (PyObject* o : operands) PyTuple_SET_ITEM(args.get(), i++, Py_NewRef(o));
  return follow(function, args.get(), none.get(), std::string("operator ") + name);
}

/// Whether a number beside this operand and a tensor without dimensions in its place are the same.
static bool takesTensorForNumber(Evaluation& e, int op, PyObject* other) {
  const int plain = op % kFirstInPlace;
  if (plain != kAdd && plain != kSubtract && plain != kMultiply && plain != kTrueDivide) return false;
  if (!e.isStandIn(other) || e.mayBePython(other) || !tensorOf(other).is_cpu() || tensorOf(other).dim() == 0) return false;
  return tensorOf(other).scalar_type() == at::kFloat || tensorOf(other).scalar_type() == at::kDouble;
}

PyRef Arrays::binary(int op, const std::string& function, PyObject* a, PyObject* b) {
  // torch takes a number of numpy's as one of Python's, and numpy leaves an operator beside a tensor to that.
  const auto plain = [&](PyObject* o) { return besideTensor(o); };
  const bool turns = isArrayScalar(a) && op == kTrueDivide;  // torch multiplies what it divides a number by, turned
  const bool isNumber = isArrayScalar(a) || isArrayScalar(b);
  if (isNumber && e_.torchCalls() && !turns && takesTensorForNumber(e_, op, isArrayScalar(a) ? b : a))
    return e_.binary(op, (isArrayScalar(a) ? tensorOfOperand(a) : PyRef::borrow(a)).get(), (isArrayScalar(b) ? tensorOfOperand(b) : PyRef::borrow(b)).get());
  if ((isArrayScalar(a) && e_.isTensor(b)) || (isArrayScalar(b) && e_.isTensor(a))) return e_.binary(op, plain(a).get(), plain(b).get());
  const bool ownInPlace = op >= kFirstInPlace && isArray(a);
  PyRef made = operate(ownInPlace || op < kFirstInPlace ? function.c_str() : function.c_str() + 1, {a, b});
  return isArray(a) || isArray(b) ? made : madeByOperator(std::move(made), op % kFirstInPlace, a, b);
}

/// An int that is a symbol beside a number of numpy's of 64 bits: what they give is numpy's.
bool Arrays::meetsNumber(PyObject* a, PyObject* b) const {
  const auto meets = [&](PyObject* symbol, PyObject* number) {
    return isSymbolicInt(symbol) && !isDeferred(symbol) && isNumpyScalar(Py_TYPE(number)) && isOfWideNumbers(Py_TYPE(number));
  };
  return (meets(a, b) || meets(b, a)) && isFollowing();
}

PyRef Arrays::asNumpys(PyObject* o) { return isSymbolicInt(o) ? numberOfSymbol(o) : PyRef::borrow(o); }

PyRef Arrays::besideTensor(PyObject* o) {
  if (!isArrayScalar(o)) return PyRef::borrow(o);
  if (PyRef known = pythonNumberOf(o)) return known;
  PyRef number = deferredItem(e_, tensorOfOperand(o).get(), 'v');
  return number ? number : (refuseDeferred(o, "an operand beside a tensor"), PyRef());
}

PyRef Arrays::compare(int op, PyObject* a, PyObject* b) {
  static constexpr const char* kNames[] = {"lt", "le", "eq", "ne", "gt", "ge"};
  if ((isArrayScalar(a) && e_.isTensor(b)) || (isArrayScalar(b) && e_.isTensor(a))) return e_.compare(op, besideTensor(a).get(), besideTensor(b).get());
  PyRef made = operate(kNames[op], {a, b});
  return isArray(a) || isArray(b) ? made : madeByOperator(std::move(made), DeferredNumber::kCompare + op, a, b);
}

/// What _arrays.py has in the place of a function of numpy or a method of its arrays, which the evaluator goes into; borrowed, null: nothing.
PyObject* Arrays::writtenInPython(PyObject* function) {
  static PyObject* const known = PyObject_GetAttrString(module(), "FOLLOWED");
  PyObject* found = known && PyObject_Hash(function) != -1 ? PyDict_GetItemWithError(known, function) : nullptr;
  clearError();
  return found;
}

/// The arguments of a function of numpy that makes arrays of tensors, with these arrays; empty: there are no tensors, or it does something else with them.
std::vector<PyRef> Arrays::arraysOfTensors(PyObject* function, const CallArguments& a) {
  std::vector<PyRef> made;
  bool any = false;
  const auto arrayOf = [&](PyObject* o) {
    if (!e_.isTensor(o)) return PyRef::borrow(o);
    any = true;
    return ofTensor(o);
  };
  for (size_t i = 0; i < a.total(); ++i) {
    PyObject* o = a.args[i];
    if (!PyTuple_CheckExact(o) && !PyList_CheckExact(o)) {
      made.push_back(arrayOf(o));
    } else {
      made.push_back(PyRef::steal(PyList_New(0)));
      for (Py_ssize_t k = 0; k < e_.builtinLength(o); ++k) {
        const PyRef array = arrayOf(e_.element(o, k).get());
        if (!array) return {};
        PyList_Append(made.back().get(), array.get());
      }
      if (PyTuple_CheckExact(o)) made.back() = PyRef::steal(PyList_AsTuple(made.back().get()));
    }
    if (!made.back()) return {};
  }
  if (!any) return {};
  static PyObject* const known = PyObject_GetAttrString(module(), "OF_TENSORS");
  return known && PySet_Contains(known, function) == 1 ? std::move(made) : std::vector<PyRef>();
}

/// A ufunc with tensors among its operands, which makes arrays of them and has torch.Tensor wrap what it gives. Null without error: it is none.
PyRef Arrays::ofTensorsWrapped(PyObject* ufunc, const CallArguments& a) {
  std::vector<PyRef> arrays;
  std::vector<PyObject*> operands;
  PyObject* tensor = nullptr;
  for (PyObject* o : std::span(a.args.begin(), a.positional)) {
    const bool isWrapped = e_.isTensor(o);
    if (isWrapped && !tensor) tensor = o;
    arrays.push_back(isWrapped ? ofTensor(o) : PyRef::borrow(o));
    if (!arrays.back()) return {};
    operands.push_back(arrays.back().get());
  }
  if (!tensor || a.keywords() > 0) return {};
  PyRef result = call(ufunc, {operands.data(), operands.size(), nullptr});
  if (!result) return {};
  static PyObject* const warn = torchObject("warnings.warn");
  for (const KeptWarnings::Warning& warning : saidOfWrapping()) {
    PyObject* said[] = {warning.text.get(), warning.category};
    if (!e_.call(warn, said, 2, nullptr)) return {};
  }
  if (!is(result.get())) refuse(nameOf(ufunc), "gives several arrays for a tensor");
  PyRef made = tensorOfOperand(result.get());
  if (tensorOf(made.get()).scalar_type() == at::kBool) return ask("as_bytes", {made.get()});
  PyObject* wrapped[] = {result.get()};
  return isArrayScalar(result.get()) ? made : tensorFrom(torchObject("torch.from_numpy"), {wrapped, 1, nullptr});
}

PyRef Arrays::call(PyObject* callable, const CallArguments& a) {
  if (isUfunc(callable))
    if (PyRef made = ofTensorsWrapped(callable, a); made || PyErr_Occurred()) return made;
  if (isNumpyFunction(callable) || makesArray(callable))
    if (const std::vector<PyRef> arrays = arraysOfTensors(callable, a); !arrays.empty()) {
      std::vector<PyObject*> args;
      for (const PyRef& o : arrays) args.push_back(o.get());
      return call(callable, {args.data(), a.positional, a.kwNames});
    }
  bool given = false;
  for (size_t i = 0; i < a.total(); ++i) given = given || holdsArray(a.args[i]);
  PyObject* self = given ? nullptr : selfOfMethod(callable);
  if (!given && !(self && isArray(self))) return {};
  if (given && makesTensor(callable)) return tensorFrom(callable, a);
  PyRef function = PyRef::borrow(callable);
  if (self && isArray(self)) function = unboundMethod(callable);
  else self = nullptr;
  if (PyObject* written = function ? writtenInPython(function.get()) : nullptr) {
    std::vector<PyObject*> args(self ? 1 : 0, self);
    args.insert(args.end(), a.args.begin(), a.args.begin() + static_cast<ptrdiff_t>(a.total()));
    e_.pin(written, Why::Process);
    return e_.call(written, args.data(), a.positional + (self ? 1 : 0), a.kwNames);
  }
  const bool isAbs = callable == torchObject("builtins.abs");
  if (!function || !(isNumpyFunction(callable) || isMethodOfArray(function.get()) || isAbs || makesArray(callable))) return {};
  PyRef args = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(a.positional) + (self ? 1 : 0))), kwargs = PyRef::steal(PyDict_New());
  Py_ssize_t at = 0;
  if (self) PyTuple_SET_ITEM(args.get(), at++, Py_NewRef(self));
  for (size_t i = 0; i < a.positional; ++i) PyTuple_SET_ITEM(args.get(), at++, Py_NewRef(a.args[i]));
  for (size_t i = 0; i < a.keywords(); ++i) PyDict_SetItem(kwargs.get(), a.keywordName(i), a.args[a.positional + i]);
  const std::string name = nameOf(function.get());
  if (PyTuple_GET_SIZE(args.get()) == 1 && a.keywords() == 0 && isMethodOfArray(function.get()) && (name == "item" || name == "tolist")) {
    PyRef tensor = tensorOfOperand(PyTuple_GET_ITEM(args.get(), 0));
    const bool isList = name == "tolist" && tensorOf(tensor.get()).dim() > 0;
    if (PyRef read = isList ? deferredList(e_, tensor.get()) : deferredItem(e_, tensor.get(), 'v')) return read;
  }
  return follow(function.get(), args.get(), kwargs.get(), name);
}

PyRef Arrays::tensorFrom(PyObject* function, const CallArguments& a) {
  const std::string name = nameOf(function);
  requireGraph(name);
  const auto given = [&](const char* keyword) { return a.keyword(keyword) ? a.keyword(keyword) : Py_None; };
  PyObject *dtype = given("dtype"), *device = given("device");
  const bool isFollowed = a.positional == 1 && a.keywords() == size_t{a.keyword("dtype") != nullptr} + (a.keyword("device") != nullptr);
  if (isFollowed && name == "tensor" && PyList_CheckExact(a.args[0])) {
    PyRef tensors = PyRef::steal(PyList_New(0));
    const Py_ssize_t n = e_.builtinLength(a.args[0]);
    for (Py_ssize_t i = 0; i < n; ++i)
      if (const PyRef item = e_.element(a.args[0], i); isArrayScalar(item.get())) PyList_Append(tensors.get(), tensorOfOperand(item.get()).get());
    PyRef made = PyList_GET_SIZE(tensors.get()) == n ? ask("tensor_of_numbers", {tensors.get(), dtype, device}) : PyRef();
    e_.throwIfBreak();
    if (made && made.get() != Py_None) return made;
    clearError();
  }
  if (!isFollowed || !is(a.args[0]) || (isArrayScalar(a.args[0]) && name == "from_numpy"))
    refuse("ndarray", "is given to torch." + name + " in a way that is not followed");
  PyObject* array = a.args[0];
  PyRef tensor = tensorOfOperand(array);
  PyRef made = ask("tensor_of", {function, array, tensor.get(), dtype, device});
  e_.throwIfBreak();
  if (made && PyUnicode_Check(made.get())) refuse("ndarray", utf8Of(made.get()));
  if (!made) {
    clearError();
    refuse("ndarray", "is given to torch." + name + " in a way that is not followed");
  }
  if (isArrayScalar(array)) return made;
  const at::Tensor &of = tensorOf(tensor.get()), &result = tensorOf(made.get());
  const bool shares = name != "tensor" && result.scalar_type() == of.scalar_type() && result.device() == of.device();
  for (Value* v = &values_.at(array); shares; v = &values_.at(v->owner)) {
    v->isShared = true;
    if (v->kind != Value::Kind::View) break;
  }
  return made;
}

PyRef Arrays::getAttrOfScalar(PyObject* scalar, PyObject* name) {
  const char* text = utf8Of(name);
  const std::string_view wanted = text ? text : "";
  if (wanted == "T" || wanted == "real") return PyRef::borrow(scalar);
  PyRef any = PyRef::steal(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(pythonTypeOf(scalar))));
  PyRef attribute = any ? PyRef::steal(PyObject_GetAttr(any.get(), name)) : PyRef();
  if (!attribute || wanted == "__class__") return {};
  if (wanted == "dtype") return e_.pin(attribute.get(), Why::Process);
  for (const char* known : kOfLayout)
    if (wanted == known) return attribute;
  PyObject* method = _PyType_Lookup(pythonTypeOf(scalar), name);
  if (method && isMethodOfArray(method)) return PyRef::steal(PyMethod_New(method, scalar));
  refuseDeferred(scalar, "an attribute of the number");
}

PyRef Arrays::getAttr(PyObject* array, PyObject* name) {
  if (isArrayScalar(array)) return getAttrOfScalar(array, name);
  const char* text = utf8Of(name);
  const std::string_view wanted = text ? text : "";
  if (wanted == "T") {
    PyObject* args[] = {array};
    return call(torchObject("numpy.ndarray.transpose"), {args, 1, nullptr});
  }
  if (wanted == "dtype") {
    valueOf(array);
    PyRef type = PyRef::steal(PyObject_GetAttr(array, name));
    return type ? e_.pin(type.get(), Why::Process) : PyRef();
  }
  for (const char* known : kOfLayout)
    if (wanted == known) return valueOf(array), PyRef::steal(PyObject_GetAttr(array, name));
  PyRef attribute = PyRef::steal(PyObject_GetAttr(torchObject("numpy.ndarray"), name));
  clearError();
  if ((wanted == "real" || wanted == "imag") && values_.contains(array)) {
    PyRef args = PyRef::steal(PyTuple_Pack(2, array, name)), none = PyRef::steal(PyDict_New());
    return follow(torchObject("builtins.getattr"), args.get(), none.get(), std::string(wanted));
  }
  if (attribute && !Py_IS_TYPE(attribute.get(), &PyMethodDescr_Type) && values_.contains(array)) refuse("ndarray", "is asked for its " + std::string(wanted));
  return {};
}

Py_ssize_t Arrays::length(PyObject* array) { return PyObject_Size(valueOf(array).array.get()); }

PyRef Arrays::ofTensor(PyObject* object) {
  if (!e_.isStandIn(object) || e_.isNumber(object) || !isFollowing() || !isPlainTensorClass(Py_TYPE(object))) return {};
  const at::Tensor& t = tensorOf(object);
  if (t.requires_grad() || !t.is_cpu() || t.layout() != at::kStrided || t.is_conj() || t.is_neg() || t.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) return {};
  PyRef array;
  {
    const trace::NoTrace off;
    PyRef memory = PyRef::steal(newTensorObject(at::empty_strided(t.sizes(), t.strides(), at::TensorOptions().dtype(t.scalar_type()).device(at::kCPU))));
    array = memory ? PyRef::steal(PyObject_CallMethod(memory.get(), "numpy", nullptr)) : PyRef();
    PyRef follows = array ? PyRef::steal(PyObject_CallMethod(module(), "is_followed", "O", array.get())) : PyRef();
    clearError();
    if (follows.get() != Py_True) return {};
  }
  return keep({.kind = Value::Kind::OfTensor, .array = std::move(array), .tensor = PyRef::borrow(object)});
}

PyRef Arrays::constant(PyObject* array, const std::string& name) {
  requireGraph(name);
  PyRef tensor = ask("constant", {array});
  e_.throwIfBreak();
  if (tensor && PyUnicode_Check(tensor.get())) refuse(name, std::string("makes an array that ") + utf8Of(tensor.get()));
  if (!tensor) return {};
  return keep({.kind = Value::Kind::Made, .array = PyRef::borrow(array), .tensor = std::move(tensor)});
}

void Arrays::finish() {
  if (!quiet_.defined()) return;
  if (TorchCalls* calls = e_.torchCalls()) return calls->assume(PyRef::steal(newTensorObject(quiet_)).get(), quietSince_);
  if (!assumeOutcome(quiet_, true, "that numpy warns of nothing"))
    throw CaptureBreak{{"numpy", "whether numpy warns of something cannot be told when the graph runs", "", e_.place(), e_.stackPlaces()}, quietSince_};
}

}  // namespace fusebox::capture
