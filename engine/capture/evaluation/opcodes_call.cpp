#include "engine/capture/evaluation/call_errors.h"
#include "engine/capture/evaluation/interpreter.h"

namespace fusebox::capture {

namespace {

Flow kwNames(Operations&, Frame& f, const Instruction& i) {
  f.kwNames = PyRef::borrow(PyTuple_GET_ITEM(f.decoded->consts.get(), i.arg));
  return Flow::Next;
}

/// The stack holds [method, self, args…] or [NULL, callable, args…].
Flow call(Operations& ops, Frame& f, const Instruction& i) {
  const size_t base = f.stack.size() - static_cast<size_t>(i.arg) - 2;
  const bool isMethod = static_cast<bool>(f.stack[base]);
  PyRef names = std::move(f.kwNames);
  f.kwNames = PyRef();
  const size_t keywords = names ? static_cast<size_t>(PyTuple_GET_SIZE(names.get())) : 0;
  const size_t first = base + (isMethod ? 1 : 2);
  std::vector<PyObject*> args;
  args.reserve(f.stack.size() - first);
  for (size_t k = first; k < f.stack.size(); ++k) args.push_back(f.stack[k].get());
  PyRef callable = f.stack[isMethod ? base : base + 1];
  if (ops.handsOver(callable.get(), args.data(), args.size())) f.handedOver = first;
  PyRef result = ops.call(callable.get(), args.data(), args.size() - keywords, names.get());
  f.handedOver = 0;
  if (!result) return Flow::Error;
  f.stack.resize(base);
  f.push(std::move(result));
  return Flow::Next;
}

/// Whether CPython spreads a dict of keywords for this callable, which takes strings only; some C functions get the dict itself.
bool spreadsKeywords(PyObject* callable) { return !PyCFunction_Check(callable) || PyVectorcall_Function(callable); }

bool areStrings(PyObject* dict) {
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);)
    if (!PyUnicode_Check(key)) return false;
  return true;
}

Flow callFunctionEx(Operations& ops, Frame& f, const Instruction& i) {
  PyRef kwargs = (i.arg & 1) ? f.pop() : PyRef(), args = f.pop(), callable = f.pop();
  if (!PyTuple_CheckExact(args.get())) {
    PyRef given = std::move(args);
    args = ops.collect(given.get(), true, true);
    if (!args && PyErr_ExceptionMatches(PyExc_TypeError) && !Py_TYPE(given.get())->tp_iter && !PySequence_Check(given.get()))
      refuseUnpacked(callable.get(), "* must be an iterable", given.get());
  }
  if (!args) return Flow::Error;
  if (kwargs && !PyDict_CheckExact(kwargs.get())) {
    PyRef copy = PyRef::steal(PyDict_New());
    ops.adopt(copy.get());
    if (!ops.updateDict(copy.get(), kwargs.get())) return Flow::Error;
    kwargs = std::move(copy);
  }
  if (kwargs && spreadsKeywords(callable.get()) && !areStrings(kwargs.get())) {
    PyErr_SetString(PyExc_TypeError, "keywords must be strings");
    return Flow::Error;
  }
  PyRef result = ops.callEx(callable.get(), args.get(), kwargs.get());
  if (!result) return Flow::Error;
  f.peek(1) = std::move(result);  // over the NULL
  return Flow::Next;
}

Flow makeFunction(Operations& ops, Frame& f, const Instruction& i) {
  PyRef code = f.pop();
  PyRef function = PyRef::steal(PyFunction_New(code.get(), f.globals));
  if (!function) return Flow::Error;
  // Cells in a tuple from before the segment come from there: writes to them are undone.
  if (i.arg & 8) PyFunction_SetClosure(function.get(), ops.tupleOf(f.pop().get()).get());
  if (i.arg & 4) {
    PyRef pairs = ops.tupleOf(f.pop().get());  // a flat tuple of names and annotations
    PyRef annotations = PyRef::steal(PyDict_New());
    for (Py_ssize_t k = 0; k + 1 < PyTuple_GET_SIZE(pairs.get()); k += 2)
      PyDict_SetItem(annotations.get(), PyTuple_GET_ITEM(pairs.get(), k), PyTuple_GET_ITEM(pairs.get(), k + 1));
    PyFunction_SetAnnotations(function.get(), annotations.get());
  }
  if (i.arg & 2) PyFunction_SetKwDefaults(function.get(), f.pop().get());
  if (i.arg & 1) PyFunction_SetDefaults(function.get(), ops.tupleOf(f.pop().get()).get());
  ops.adopt(function.get());
  f.push(std::move(function));
  return Flow::Next;
}

/// 3.12's small helpers that had opcodes of their own before.
Flow callIntrinsic1(Operations& ops, Frame& f, const Instruction& i) {
  enum { kStopIterationError = 3, kUnaryPositive = 5, kListToTuple = 6 };
  PyRef value = f.pop(), result;
  if (i.arg == kListToTuple) {
    result = ops.tupleOf(value.get());
    if (result) ops.adopt(result.get());
  } else if (i.arg == kUnaryPositive) {
    result = ops.unary(Op::UNARY_POSITIVE, value.get());
  } else if (i.arg == kStopIterationError) {
    result = errorOfStop(f.code(), value.get());
    if (!result) result = std::move(value);
  } else {
    return Flow::Unsupported;
  }
  if (!result) return Flow::Error;
  f.push(std::move(result));
  return Flow::Next;
}

constexpr HandlerRow kCallRows[] = {
    {Op::KW_NAMES, kwNames},           {Op::CALL, call},
    {Op::CALL_FUNCTION_EX, callFunctionEx}, {Op::MAKE_FUNCTION, makeFunction},
    {Op::CALL_INTRINSIC_1, callIntrinsic1},
};

}  // namespace

HandlerRows callHandlers() { return {kCallRows, std::size(kCallRows)}; }

}  // namespace fusebox::capture
