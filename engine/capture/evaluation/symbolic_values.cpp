// Symbolic ints in the hands of the evaluator: operators beside tensors and objects, what torch is given for them and gives back.
#include <algorithm>

#include "engine/capture/evaluation/deferred_numbers.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/nested_tensors.h"
#include "engine/capture/evaluation/operator_numbers.h"
#include "engine/capture/evaluation/symbolic_index.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/symbolic_texts.h"
#include "engine/capture/evaluation/tensor_subclasses.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/unread_tuples.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/trace/sym_int.h"

extern "C" PyObject* _PyType_Lookup(PyTypeObject*, PyObject*);

namespace fusebox::capture {

namespace {

/// By CPython's NB_ number.
constexpr const char* kReflected[] = {"__radd__", "__rand__", "__rfloordiv__", "__rlshift__", "__rmatmul__", "__rmul__", "__rmod__",
                                      "__ror__",  "__rpow__", "__rrshift__",   "__rsub__",    "__rtruediv__", "__rxor__"};

/// Objects that are not equal to any number, whatever it is.
bool isNeverANumber(PyObject* o) {
  if (PyComplex_Check(o)) return false;
  if (isConstantValue(o) || isIdentityValue(o) || PyFunction_Check(o)) return true;
  return PyTuple_CheckExact(o) || PyList_CheckExact(o) || PyDict_CheckExact(o) || PyAnySet_Check(o);
}

bool holdsSymbolicNumber(PyObject* sequence) {
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence); ++i)
    if (isSymbolicNumber(PySequence_Fast_GET_ITEM(sequence, i))) return true;
  return false;
}

bool hasSymbols(PyObject* o, int depth = 0) {
  constexpr int kDeepest = 3;
  if (isSymbolicNumber(o) || isSymbolicText(o) || isUnread(o)) return true;
  if (isTensorObject(o)) return tensorOf(o).unsafeGetTensorImpl()->has_symbolic_sizes_strides();
  if (depth == kDeepest || (!PyTuple_Check(o) && !PyList_Check(o))) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
    if (hasSymbols(PySequence_Fast_GET_ITEM(o, i), depth + 1)) return true;
  return false;
}

}  // namespace

bool isSymbolicSize(PyObject* o) { return isSizeObject(o) && holdsSymbolicNumber(o); }

PyRef newSize(PyObject* tuple) {
  PyRef args = PyRef::steal(PyTuple_Pack(1, tuple));
  // torch.Size's own constructor asks what it does not know for an __index__.
  return args ? PyRef::steal(PyTuple_Type.tp_new(sizeType(), args.get(), nullptr)) : PyRef();
}

PyRef plainKey(PyObject* key, std::string_view use) {
  if (isSymbolicNumber(key)) return specialisedNumber(key, use);
  if (!PyTuple_CheckExact(key) && !isSizeObject(key)) return PyRef::borrow(key);
  PyRef items;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i) {
    PyRef item = plainKey(PyTuple_GET_ITEM(key, i), use);
    if (item.get() == PyTuple_GET_ITEM(key, i)) continue;
    if (!items) items = PyRef::steal(PySequence_List(key));
    PyList_SetItem(items.get(), i, item.release());
  }
  if (!items) return PyRef::borrow(key);
  PyRef tuple = PyRef::steal(PyList_AsTuple(items.get()));
  return isSizeObject(key) ? newSize(tuple.get()) : tuple;
}

PyRef Evaluation::symbolicInt(const graph::SymExpr& e) { return newSymbolicInt(trace_->sharedShapes(), e); }

bool holdsSymbols(PyObject* tuple) { return holdsSymbolicNumber(tuple); }

PyRef Evaluation::plainNumber(PyObject* object, std::string_view use) {
  if (isSymbolicNumber(object)) return specialisedNumber(object, use);
  if (!PySlice_Check(object)) return PyRef::borrow(object);
  auto* s = reinterpret_cast<PySliceObject*>(object);
  if (!isSymbolicNumber(s->start) && !isSymbolicNumber(s->stop) && !isSymbolicNumber(s->step)) return PyRef::borrow(object);
  PyRef start = plainNumber(s->start, use), stop = plainNumber(s->stop, use), step = plainNumber(s->step, use);
  return start && stop && step ? PyRef::steal(PySlice_New(start.get(), stop.get(), step.get())) : PyRef();
}

bool Evaluation::givesNumbers(const CallArguments& a) const {
  return std::any_of(a.args.begin(), a.args.begin() + a.total(), isSymbolicNumber);
}

PyRef Evaluation::withPlainNumbers(PyObject* callable, const CallArguments& a, const char* use) {
  std::vector<PyRef> keep;
  std::vector<PyObject*> args;
  for (size_t i = 0; i < a.total(); ++i) {
    keep.push_back(isSymbolicNumber(a.args[i]) ? plainNumber(a.args[i], use) : PyRef::borrow(a.args[i]));
    if (!keep.back()) return {};
    args.push_back(keep.back().get());
  }
  return call(callable, args.data(), a.positional, a.kwNames);
}

bool Evaluation::givesSymbols(const CallArguments& a) const {
  if (trace_->shapes().empty() && !trace_->dataSizes().readsNumbers) return false;
  for (size_t i = 0; i < a.total(); ++i)
    if (hasSymbols(a.args[i])) return true;
  return false;
}

bool Evaluation::hasSymbolsInCells(PyObject* function) const {
  PyObject* cells = PyFunction_GET_CLOSURE(function);
  if (!cells || (trace_->shapes().empty() && !trace_->dataSizes().readsNumbers)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(cells); ++i)
    if (PyObject* held = PyCell_GET(PyTuple_GET_ITEM(cells, i)); held && hasSymbols(held)) return true;
  return false;
}

PyRef Evaluation::toTorch(PyObject* number) {
  if (isArrayScalar(number))
    if (const PyRef known = pythonNumberOf(number)) return isSymbolicNumber(known.get()) ? toTorch(known.get()) : known;
  if (isSymbolicFloat(number)) {
    if (isDeferred(number)) return specialisedNumber(number, "a float that is given to an operator");
    return PyRef::steal(newSymFloatObject(trace::toSymFloat(numberExpr(number), trace_->shapes())));
  }
  return PyRef::steal(newSymIntObject(trace::toSymInt(numberExpr(number).a, trace_->shapes())));
}

PyRef Evaluation::exposeSlice(PyObject* slice) {
  auto* s = reinterpret_cast<PySliceObject*>(slice);
  PyRef start = expose(s->start), stop = expose(s->stop), step = expose(s->step);
  if (!start || !stop || !step) return {};
  if (start.get() == s->start && stop.get() == s->stop && step.get() == s->step) return PyRef::borrow(slice);
  return copied(slice, PyRef::steal(PySlice_New(start.get(), stop.get(), step.get())));
}

PyRef Evaluation::fromTorch(PyRef value) {
  if (isSymbolObject(value.get())) {
    if (isRaggedSize(value.get())) return value;
    const std::optional<c10::SymInt> number = symIntOf(value.get());
    if (!number) return PyRef::steal(symbolConstant(value.get()));  // a float or bool is its value in this capture
    const std::optional<graph::SymExpr> e = trace::exprOf(*number);
    return e ? symbolicInt(*e) : PyRef::steal(PyLong_FromLongLong(number->guard_int(__FILE__, __LINE__)));
  }
  const bool tuple = PyTuple_CheckExact(value.get()) || isSizeObject(value.get());
  if (!tuple && !PyList_CheckExact(value.get())) return value;
  bool found = false;
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(value.get());
  for (Py_ssize_t i = 0; i < n; ++i) found = found || isSymbolObject(PySequence_Fast_GET_ITEM(value.get(), i));
  if (!found) return value;
  PyRef items = PyRef::steal(tuple ? PyTuple_New(n) : PyList_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyRef item = fromTorch(PyRef::borrow(PySequence_Fast_GET_ITEM(value.get(), i)));
    if (!item) return {};
    PySequence_Fast_ITEMS(items.get())[i] = item.release();
  }
  return isSizeObject(value.get()) ? newSize(items.get()) : items;
}

std::optional<PyRef> Evaluation::symbolicBinary(int op, PyObject* a, PyObject* b) {
  const int plainOp = op >= kFirstInPlace ? op - kFirstInPlace : op;
  PyObject *symbolic = isSymbolicNumber(a) ? a : b, *other = symbolic == a ? b : a;
  const auto onConstants = [&](const char* use) {
    PyRef x = plainNumber(a, use), y = x ? plainNumber(b, use) : PyRef();
    return y ? binary(op, x.get(), y.get()) : PyRef();
  };
  if (answersTorchFunctions(other)) return std::nullopt;
  if (const PyRef read = isNumber(other) ? asReadNumber(symbolic) : PyRef()) return numberBinary(op, symbolic == a ? read.get() : a, symbolic == a ? b : read.get());
  if (isNumber(other) && isDeferred(symbolic)) refuseNumber("computed with beside one that is read from a tensor on a GPU");  // as a symbol it can be
  if (isNumber(other) || (isTensor(other) && mayBePython(other))) return onConstants("an operand beside a tensor");
  if (isTensor(other)) {
    if (isDeferred(symbolic)) return deferredBesideTensor(*this, op, a, b);
    PyRef number = toTorch(symbolic);
    if (!number) return PyRef();
    if (symbolic == b) return checked(evaluateBinary(op, a, number.get()));
    // As CPython after int has declined. (torch.SymInt's own operators are not there before PyTorch's compiler is imported.)
    PyRef result = callMethodNamed(b, kReflected[plainOp], {a});
    return !result || result.get() != Py_NotImplemented ? result : onConstants("an operand beside a tensor");
  }
  PyRef made = deferredThatMayRaise(*this, plainOp, a, b);
  if (!made && !PyErr_Occurred()) made = symbolicArithmetic(plainOp, a, b);
  if (made || PyErr_Occurred()) return made;
  if (mayBePython(other)) return std::nullopt;
  return onConstants("an operand beside another kind of object");
}

std::optional<PyRef> Evaluation::symbolicCompare(int op, PyObject* a, PyObject* b) {
  PyObject *symbolic = isSymbolicNumber(a) ? a : b, *other = symbolic == a ? b : a;
  if (isTensor(other) && !isNumber(other) && !mayBePython(other)) {
    PyRef number = toTorch(symbolic);
    return number ? checked(PyObject_RichCompare(other, number.get(), symbolic == b ? op : kSwapped[op])) : PyRef();
  }
  if (PyRef deferred = deferredComparison(op, a, b)) return deferred;
  const int answer = symbolicComparison(op, a, b);
  if (answer == -1) return PyRef();
  if (answer >= 0) return PyRef::borrow(answer ? Py_True : Py_False);
  if (mayBePython(other)) return std::nullopt;
  if ((op == Py_EQ || op == Py_NE) && isNeverANumber(other)) return PyRef::borrow(op == Py_NE ? Py_True : Py_False);
  PyRef x = plainNumber(a, "a comparison"), y = x ? plainNumber(b, "a comparison") : PyRef();
  return y ? compare(op, x.get(), y.get()) : PyRef();
}

bool Evaluation::sameSymbolic(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (pythonTypeOf(a) != pythonTypeOf(b)) return false;
  // Small ints are one object for a value, others are objects of their own.
  PyRef x = plainNumber(a, "a comparison by identity"), y = plainNumber(b, "a comparison by identity");
  int overflow = 0;
  const long value = PyLong_Check(x.get()) ? PyLong_AsLongAndOverflow(x.get(), &overflow) : -1;
  if (PyObject_RichCompareBool(x.get(), y.get(), Py_EQ) != 1) return false;
  if (!PyLong_Check(x.get()) || overflow || value < -5 || value > 256) breakHere("identity", "equal numbers are compared by identity", "Compare values with ==.");
  return true;
}

PyRef Evaluation::symbolicGetAttr(PyObject* object, PyObject* name) {
  const auto is = [&](const char* text) { return PyUnicode_CompareWithASCIIString(name, text) == 0; };
  if (is("__class__")) return pin(reinterpret_cast<PyObject*>(pythonTypeOf(object)), Why::Class);
  if (is("real") || (is("numerator") && isSymbolicInt(object))) return PyRef::borrow(object);
  if (is("denominator") && isSymbolicInt(object)) return PyRef::steal(PyLong_FromLong(1));
  if (is("imag") && isSymbolicInt(object)) return PyRef::steal(PyLong_FromLong(0));
  if (!_PyType_Lookup(pythonTypeOf(object), name)) {
    PyRef any = isSymbolicInt(object) ? PyRef::steal(PyLong_FromLong(0)) : PyRef::steal(PyFloat_FromDouble(0));
    return getAttr(any.get(), name);  // no number has it
  }
  PyRef number = plainNumber(object, "an attribute of the number");
  return number ? getAttr(number.get(), name) : PyRef();
}

}  // namespace fusebox::capture
