// match statements, and what else has opcodes of its own: except*, class statements.
#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/interpreter.h"

namespace fusebox::capture {

namespace {

/// A function of the builtins module.
PyObject* builtin(const char* name) { return PyDict_GetItemString(PyEval_GetBuiltins(), name); }

int isInstance(Operations& ops, PyObject* object, PyObject* type) {
  static PyObject* const kIsInstance = Py_NewRef(builtin("isinstance"));
  PyObject* args[] = {object, type};
  PyRef answer = ops.call(kIsInstance, args, 2, nullptr);
  return answer ? ops.truth(answer.get()) : -1;
}

template <unsigned long kFlag>
Flow matchFlag(Operations&, Frame& f, const Instruction&) {
  f.push(PyRef::borrow(PyType_HasFeature(Py_TYPE(f.peek(1).get()), kFlag) ? Py_True : Py_False));
  return Flow::Next;
}

/// [subject, keys] -> [subject, keys, values or None]
Flow matchKeys(Operations& ops, Frame& f, const Instruction&) {
  static PyObject* const kGet = internedName("get");
  PyRef keys = f.peek(1), subject = f.peek(2);
  const Py_ssize_t n = PyTuple_GET_SIZE(keys.get());
  PyRef values = PyRef::steal(PyTuple_New(n)), seen = PyRef::steal(PySet_New(nullptr));
  PyRef get = n ? ops.getAttr(subject.get(), kGet) : PyRef();
  if (n && !get) return Flow::Error;
  PyRef missing = PyRef::steal(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type)));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* key = PyTuple_GET_ITEM(keys.get(), i);
    const int known = PySet_Contains(seen.get(), key);
    if (known || PySet_Add(seen.get(), key) < 0) {
      if (known > 0) PyErr_Format(PyExc_ValueError, "mapping pattern checks duplicate key (%R)", key);
      return Flow::Error;
    }
    PyObject* args[] = {key, missing.get()};
    PyRef value = ops.call(get.get(), args, 2, nullptr);
    if (!value) return Flow::Error;
    if (value.get() == missing.get()) return pushed(f, PyRef::borrow(Py_None));
    PyTuple_SET_ITEM(values.get(), i, value.release());
  }
  ops.adopt(values.get());
  return pushed(f, std::move(values));
}

/// The attributes that a class pattern looks at.
struct ClassPattern {
  Operations& ops;
  PyObject *subject, *type;
  PyRef seen = PyRef::steal(PySet_New(nullptr));
  std::vector<PyRef> found;

  const char* typeName() const { return reinterpret_cast<PyTypeObject*>(type)->tp_name; }

  /// 1: found, 0: the subject lacks it, -1: error.
  int attribute(PyObject* name) {
    const int known = PySet_Contains(seen.get(), name);
    if (known || PySet_Add(seen.get(), name) < 0) {
      if (known > 0) PyErr_Format(PyExc_TypeError, "%s() got multiple sub-patterns for attribute %R", typeName(), name);
      return -1;
    }
    PyRef value = ops.getAttr(subject, name);
    if (value) {
      found.push_back(std::move(value));
      return 1;
    }
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
    clearError();
    return 0;
  }

  int positional(Py_ssize_t count) {
    static PyObject* const kMatchArgs = internedName("__match_args__");
    PyRef names = ops.getAttr(type, kMatchArgs);
    bool wholeSubject = false;
    if (names) {
      if (!PyTuple_CheckExact(names.get()))
        return PyErr_Format(PyExc_TypeError, "%s.__match_args__ must be a tuple (got %s)", typeName(), Py_TYPE(names.get())->tp_name), -1;
    } else if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
      clearError();
      names = PyRef::steal(PyTuple_New(0));
      wholeSubject = PyType_HasFeature(reinterpret_cast<PyTypeObject*>(type), _Py_TPFLAGS_MATCH_SELF);
    } else {
      return -1;
    }
    const Py_ssize_t allowed = wholeSubject ? 1 : PyTuple_GET_SIZE(names.get());
    if (allowed < count)
      return PyErr_Format(PyExc_TypeError, "%s() accepts %zd positional sub-pattern%s (%zd given)", typeName(), allowed, allowed == 1 ? "" : "s", count), -1;
    if (wholeSubject) return found.push_back(PyRef::borrow(subject)), 1;
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* name = PyTuple_GET_ITEM(names.get(), i);
      if (!PyUnicode_CheckExact(name))
        return PyErr_Format(PyExc_TypeError, "__match_args__ elements must be strings (got %s)", Py_TYPE(name)->tp_name), -1;
      if (const int status = attribute(name); status <= 0) return status;
    }
    return 1;
  }
};

/// [subject, class, names] -> [attributes or None]
Flow matchClass(Operations& ops, Frame& f, const Instruction& i) {
  PyRef names = f.pop(), type = f.pop(), subject = f.pop();
  if (!PyType_Check(type.get())) {
    PyErr_SetString(PyExc_TypeError, "called match pattern must be a class");
    return Flow::Error;
  }
  int status = isInstance(ops, subject.get(), type.get());
  ClassPattern pattern{ops, subject.get(), type.get()};
  if (status > 0 && i.arg > 0) status = pattern.positional(i.arg);
  for (Py_ssize_t k = 0; status > 0 && k < PyTuple_GET_SIZE(names.get()); ++k) status = pattern.attribute(PyTuple_GET_ITEM(names.get(), k));
  if (status < 0) return Flow::Error;
  if (status == 0) return pushed(f, PyRef::borrow(Py_None));
  PyRef values = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(pattern.found.size())));
  for (size_t k = 0; k < pattern.found.size(); ++k) PyTuple_SET_ITEM(values.get(), static_cast<Py_ssize_t>(k), pattern.found[k].release());
  ops.adopt(values.get());
  return pushed(f, std::move(values));
}

/// Groups are taken apart by except*, which therefore may not name their classes.
bool refuseGroupClass(PyObject* type) {
  const auto isOfGroups = [](PyObject* t) { return PyType_Check(t) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(t), reinterpret_cast<PyTypeObject*>(PyExc_BaseExceptionGroup)); };
  bool refused = isOfGroups(type);
  for (Py_ssize_t i = 0; PyTuple_Check(type) && i < PyTuple_GET_SIZE(type); ++i) refused |= isOfGroups(PyTuple_GET_ITEM(type, i));
  if (refused) PyErr_SetString(PyExc_TypeError, "catching ExceptionGroup with except* is not allowed. Use except instead.");
  return refused;
}

/// except*: [exception, type] -> [rest, matching part or None]
Flow checkGroupMatch(Operations& ops, Frame& f, const Instruction&) {
  static PyObject* const kSplit = internedName("split");
  PyRef type = f.pop(), exception = f.peek(1);
  const int whole = ops.exceptionMatches(exception.get(), type.get());
  if (whole < 0 || refuseGroupClass(type.get())) return Flow::Error;
  PyRef match = PyRef::borrow(Py_None), rest = exception;
  const int isGroup = isInstance(ops, exception.get(), PyExc_BaseExceptionGroup);
  if (isGroup < 0) return Flow::Error;
  if (whole) {
    rest = PyRef::borrow(Py_None);
    match = exception;
    if (!isGroup) {
      PyRef text = PyRef::steal(PyUnicode_FromString("")), list = PyRef::steal(PyTuple_Pack(1, exception.get()));
      PyObject* args[] = {text.get(), list.get()};
      match = ops.call(PyExc_BaseExceptionGroup, args, 2, nullptr);
      if (!match) return Flow::Error;
    }
  } else if (isGroup) {
    PyRef split = ops.getAttr(exception.get(), kSplit);
    PyObject* args[] = {type.get()};
    PyRef pair = split ? ops.call(split.get(), args, 1, nullptr) : PyRef();
    if (!pair) return Flow::Error;
    match = PyRef::borrow(PyTuple_GetItem(pair.get(), 0));
    rest = PyRef::borrow(PyTuple_GetItem(pair.get(), 1));
  }
  if (match.get() != Py_None) PyErr_SetHandledException(match.get());
  f.peek(1) = std::move(rest);
  return pushed(f, std::move(match));
}

/// The end of except*: [exception, list of raised] -> [what to raise, or None]. 3.11 keeps the function for it to itself.
Flow callIntrinsic2(Operations&, Frame& f, const Instruction& i) {
#if PY_VERSION_HEX >= 0x030C0000
  enum { kPrepareReraise = 1 };
  // CPython's public function insists on a traceback, which an exception of captured code does not have.
  PyObject* original = i.arg == kPrepareReraise ? f.peek(2).get() : nullptr;
  if (original && PyExceptionInstance_Check(original) && PyRef::steal(PyException_GetTraceback(original))) {
    PyRef raised = f.pop(), group = f.pop();
    return pushed(f, PyRef::steal(PyUnstable_Exc_PrepReraiseStar(group.get(), raised.get())));
  }
#endif
  (void)f, (void)i;
  return Flow::Unsupported;
}

Flow loadBuildClass(Operations& ops, Frame& f, const Instruction&) {
  static PyObject* const kBuildClass = internedName("__build_class__");
  return pushed(f, ops.loadGlobal(f, kBuildClass));
}

constexpr HandlerRow kMatchRows[] = {
    {Op::MATCH_MAPPING, matchFlag<Py_TPFLAGS_MAPPING>},
    {Op::MATCH_SEQUENCE, matchFlag<Py_TPFLAGS_SEQUENCE>},
    {Op::MATCH_KEYS, matchKeys},
    {Op::MATCH_CLASS, matchClass},
    {Op::CHECK_EG_MATCH, checkGroupMatch},
    {Op::CALL_INTRINSIC_2, callIntrinsic2},
    {Op::LOAD_BUILD_CLASS, loadBuildClass},
};

}  // namespace

HandlerRows matchHandlers() { return {kMatchRows, std::size(kMatchRows)}; }

}  // namespace fusebox::capture
