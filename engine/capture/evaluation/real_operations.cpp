#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/cached_calls.h"
#include "engine/capture/evaluation/call_errors.h"
#include "engine/capture/evaluation/interpreter.h"
#include "engine/capture/effects/segment.h"

extern "C" {
// Exported by CPython, declared only in its internal headers.
void _PyTraceback_Add(const char* function, const char* file, int line);
PyObject* _PyType_Lookup(PyTypeObject*, PyObject*);
}

namespace fusebox::capture {

namespace {

using BinaryFunction = PyObject* (*)(PyObject*, PyObject*);
PyObject* power(PyObject* a, PyObject* b) { return PyNumber_Power(a, b, Py_None); }
PyObject* inPlacePower(PyObject* a, PyObject* b) { return PyNumber_InPlacePower(a, b, Py_None); }

/// By CPython's NB_ number.
constexpr BinaryFunction kBinary[] = {
    PyNumber_Add,           PyNumber_And,           PyNumber_FloorDivide,          PyNumber_Lshift,
    PyNumber_MatrixMultiply, PyNumber_Multiply,     PyNumber_Remainder,            PyNumber_Or,
    power,                  PyNumber_Rshift,        PyNumber_Subtract,             PyNumber_TrueDivide,
    PyNumber_Xor,           PyNumber_InPlaceAdd,    PyNumber_InPlaceAnd,           PyNumber_InPlaceFloorDivide,
    PyNumber_InPlaceLshift, PyNumber_InPlaceMatrixMultiply, PyNumber_InPlaceMultiply, PyNumber_InPlaceRemainder,
    PyNumber_InPlaceOr,     inPlacePower,           PyNumber_InPlaceRshift,        PyNumber_InPlaceSubtract,
    PyNumber_InPlaceTrueDivide, PyNumber_InPlaceXor,
};

PyRef steal(PyObject* o) { return PyRef::steal(o); }

/// CPython's own behaviour, for the one instruction that capture stops at.
class RealOperations final : public Operations {
 public:
  PyRef getAttr(PyObject* o, PyObject* name) override { return steal(PyObject_GetAttr(o, name)); }
  PyRef getMethod(PyObject* o, PyObject* name, PyRef*) override { return steal(PyObject_GetAttr(o, name)); }
  PyRef getSpecial(PyObject* o, PyObject* name) override {
    PyObject* found = _PyType_Lookup(Py_TYPE(o), name);
    if (!found) return {};
    const descrgetfunc bind = Py_TYPE(found)->tp_descr_get;
    return bind ? steal(bind(found, o, reinterpret_cast<PyObject*>(Py_TYPE(o)))) : PyRef::borrow(found);
  }
  bool setAttr(PyObject* o, PyObject* name, PyObject* value) override { return PyObject_SetAttr(o, name, value) == 0; }

  PyRef call(PyObject* callable, PyObject* const* args, size_t positional, PyObject* kwNames) override {
    if (callable == reinterpret_cast<PyObject*>(&PySuper_Type) && positional == 0 && frame_) return superOf(*frame_);
    if (raiseAhead(callable, args, positional, kwNames)) return {};
    return steal(PyObject_Vectorcall(callable, args, positional, kwNames));
  }
  PyRef callEx(PyObject* callable, PyObject* args, PyObject* kwargs) override {
    return steal(PyObject_Call(callable, args, kwargs));
  }

  PyRef binary(int op, PyObject* a, PyObject* b) override { return steal(binaryFunction(op)(a, b)); }
  PyRef unary(Op op, PyObject* a) override {
    return steal(op == Op::UNARY_NEGATIVE ? PyNumber_Negative(a)
                                          : op == Op::UNARY_INVERT ? PyNumber_Invert(a) : PyNumber_Positive(a));
  }
  PyRef compare(int op, PyObject* a, PyObject* b) override { return steal(PyObject_RichCompare(a, b, op)); }
  int contains(PyObject* container, PyObject* item) override { return PySequence_Contains(container, item); }
  int truth(PyObject* o) override { return PyObject_IsTrue(o); }
  Py_ssize_t length(PyObject* o) override { return PyObject_Size(o); }

  PyRef getItem(PyObject* o, PyObject* key) override { return steal(PyObject_GetItem(o, key)); }
  bool setItem(PyObject* o, PyObject* key, PyObject* value) override {
    return (value ? PyObject_SetItem(o, key, value) : PyObject_DelItem(o, key)) == 0;
  }

  PyRef iter(PyObject* o) override { return steal(PyObject_GetIter(o)); }
  PyRef next(PyObject* iterator) override { return steal(PyIter_Next(iterator)); }
  int send(PyObject* receiver, PyObject* value, PyRef* result) override {
    PyObject* out = nullptr;
    const PySendResult status = PyIter_Send(receiver, value, &out);
    *result = steal(out);
    return status == PYGEN_NEXT ? 1 : status == PYGEN_RETURN ? 0 : -1;
  }
  PyRef makeGenerator(std::unique_ptr<Frame>) override {
    PyErr_SetString(PyExc_SystemError, "a generator frame cannot be executed step by step");
    return {};
  }

  PyRef format(PyObject* value, PyObject* spec) override { return steal(PyObject_Format(value, spec)); }
  PyRef convert(char conversion, PyObject* value) override {
    return steal(conversion == 's' ? PyObject_Str(value)
                                   : conversion == 'r' ? PyObject_Repr(value) : PyObject_ASCII(value));
  }

  PyRef loadGlobal(Frame& frame, PyObject* name) override {
    for (PyObject* dict : {frame.globals, frame.builtins}) {
      // A subclass of dict may have a __missing__.
      PyRef found = PyDict_CheckExact(dict) ? PyRef::borrow(PyDict_GetItemWithError(dict, name)) : steal(PyObject_GetItem(dict, name));
      if (found) return found;
      if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_KeyError)) return {};
      clearError();
    }
    nameNotDefined(name);
    return {};
  }
  bool storeGlobal(Frame& frame, PyObject* name, PyObject* value) override {
    if (value) return PyDict_SetItem(frame.globals, name, value) == 0;
    if (PyDict_DelItem(frame.globals, name) == 0) return true;
    nameNotDefined(name);
    return false;
  }
  PyRef loadCell(PyObject* cell) override { return PyRef::borrow(PyCell_GET(cell)); }
  bool hasCellContents(PyObject* cell) override { return PyCell_GET(cell) != nullptr; }
  void storeCell(PyObject* cell, PyObject* value) override { PyCell_Set(cell, value); }
  void readLocal(Frame&, int) override {}

  PyRef importName(Frame& frame, PyObject* name, PyObject* fromList, PyObject* level) override {
    static PyObject* const kImport = PyUnicode_InternFromString("__import__");
    PyObject* import = PyDict_GetItemWithError(frame.builtins, kImport);
    if (!import) {
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_ImportError, "__import__ not found");
      return {};
    }
    return steal(PyObject_CallFunctionObjArgs(import, name, frame.globals, Py_None, fromList, level, nullptr));
  }
  PyRef importFrom(PyObject* module, PyObject* name) override {
    if (PyObject* found = PyObject_GetAttr(module, name)) return steal(found);
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return {};
    clearError();
    PyRef moduleName = steal(PyObject_GetAttrString(module, "__name__"));
    PyRef full = moduleName ? steal(PyUnicode_FromFormat("%U.%U", moduleName.get(), name)) : PyRef();
    clearError();
    if (full)
      if (PyObject* found = PyImport_GetModule(full.get())) return steal(found);
    cannotImport(module, name);
    return {};
  }

  bool updateDict(PyObject* dict, PyObject* mapping) override { return PyDict_Update(dict, mapping) == 0; }
  PyRef makeSuper(Frame& frame, PyObject*, PyObject*) override { return superOf(frame); }
  int exceptionMatches(PyObject* exception, PyObject* type) override {
    if (!checkExceptionClasses(type)) return -1;
    return PyErr_GivenExceptionMatches(exception, type);
  }
  /// An exception that a captured stretch raised has none, but __exit__ is always told of one.
  PyRef tracebackOf(PyObject* exception) override {
    PyRef own = steal(PyException_GetTraceback(exception));
    PyFrameObject* here = own ? nullptr : PyEval_GetFrame();
    if (!here) return own;
    return steal(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyTraceBack_Type), "OOii", Py_None, here, 0, PyFrame_GetLineNumber(here)));
  }
  void adopt(PyObject*) override {}
  void noteTraceback(Frame& frame) override {
    PyFrameObject* current = PyEval_GetFrame();
    if (current && reinterpret_cast<PyObject*>(frame.code()) == PyRef::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(current))).get()) {
      PyTraceBack_Here(current);
      return;
    }
    _PyTraceback_Add(utf8Of(frame.code()->co_name), utf8Of(frame.code()->co_filename), frame.line());
  }

  static BinaryFunction binaryFunction(int op) { return kBinary[op]; }
  void setFrame(Frame* frame) { frame_ = frame; }

 private:
  /// super() without arguments looks at its caller's frame, which CPython does not have here.
  PyRef superOf(Frame& frame) {
    PyObject* names = frame.code()->co_localsplusnames;
    PyObject* type = nullptr;
    for (int i = frame.decoded->freeOffset; i < frame.code()->co_nlocalsplus; ++i)
      if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), "__class__") == 0 && frame.locals[static_cast<size_t>(i)]) {
        type = PyCell_GET(frame.locals[static_cast<size_t>(i)].get());
        if (!checkSuperClass(type)) return {};
      }
    PyObject* self = frame.code()->co_argcount == 0 ? nullptr : frame.locals[0].get();
    if (self && PyCell_Check(self)) self = PyCell_GET(self);
    if (!type || !self) {
      PyErr_SetString(PyExc_RuntimeError, "super(): no arguments");
      return {};
    }
    return steal(PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(&PySuper_Type), type, self, nullptr));
  }
  Frame* frame_ = nullptr;
};

}  // namespace

PyObject* evaluateBinary(int op, PyObject* a, PyObject* b) { return kBinary[op](a, b); }

StepOutcome executeInstruction(FrameState& state) {
  RealOperations ops;
  std::unique_ptr<Frame> frame = Frame::make(state.function.get());
  if (frame->code() != state.code) frame->decoded = decodeCode(state.code);
  frame->locals = std::move(state.locals);
  frame->stack = std::move(state.stack);
  frame->isRoot = true;
  const auto& index = frame->decoded->indexOfOffset;
  frame->pc = index[static_cast<size_t>(state.offset)];
  ops.setFrame(frame.get());
  Flow flow;
  // KW_NAMES and PRECALL belong to the CALL behind them.
  do {
    flow = step(ops, *frame);
  } while (flow == Flow::Next && (frame->kwNames || frame->instruction().op == Op::PRECALL));
  state.locals = std::move(frame->locals);
  state.stack = std::move(frame->stack);
  StepOutcome outcome;
  switch (flow) {
    case Flow::Next:
    case Flow::Jumped:
      state.offset = frame->instruction().offset;
      outcome.kind = StepOutcome::Kind::Continue;
      break;
    case Flow::Return:
      outcome.kind = StepOutcome::Kind::Returned;
      outcome.value = std::move(frame->result);
      break;
    case Flow::Error:
      outcome.kind = StepOutcome::Kind::Raised;
      outcome.reraised = frame->reraises;
      break;
    default:
      outcome.kind = StepOutcome::Kind::Unsupported;
      break;
  }
  return outcome;
}

}  // namespace fusebox::capture
