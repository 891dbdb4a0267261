#include "engine/capture/evaluation/interpreter.h"

namespace fusebox::capture {

Flow raiseAgain(Frame& f, PyRef exception) {
  f.reraises = true;
#if PY_VERSION_HEX >= 0x030C0000
  PyErr_SetRaisedException(exception.release());
#else
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(exception.get()));
  Py_INCREF(type);
  PyObject* traceback = PyException_GetTraceback(exception.get());
  PyErr_Restore(type, exception.release(), traceback);
#endif
  return Flow::Error;
}

namespace {

Flow pushExcInfo(Operations&, Frame& f, const Instruction&) {
  PyRef exception = f.pop();
  PyObject* handled = PyErr_GetHandledException();
  f.push(handled ? PyRef::steal(handled) : PyRef::borrow(Py_None));
  PyErr_SetHandledException(exception.get());
  f.push(std::move(exception));
  ++f.handling;
  return Flow::Next;
}

Flow popExcept(Operations&, Frame& f, const Instruction&) {
  PyRef previous = f.pop();
  PyErr_SetHandledException(previous.get());
  --f.handling;
  return Flow::Next;
}

Flow checkExcMatch(Operations& ops, Frame& f, const Instruction&) {
  PyRef type = f.pop();
  const int matches = ops.exceptionMatches(f.peek(1).get(), type.get());
  if (matches < 0) return Flow::Error;
  f.push(PyRef::borrow(matches ? Py_True : Py_False));
  return Flow::Next;
}

Flow reraise(Operations&, Frame& f, const Instruction&) { return raiseAgain(f, f.pop()); }

/// An exception object from what stands behind `raise` or `from`: itself, or an instance of the class.
PyRef exceptionOf(Operations& ops, PyObject* value, const char* refusal) {
  if (PyExceptionInstance_Check(value)) return PyRef::borrow(value);
  if (PyExceptionClass_Check(value)) {
    PyRef made = ops.call(value, nullptr, 0, nullptr);
    if (made && !PyExceptionInstance_Check(made.get())) {
      PyErr_Format(PyExc_TypeError, "calling %R should have returned an instance of BaseException, not %R", value,
                   Py_TYPE(made.get()));
      return {};
    }
    return made;
  }
  PyErr_SetString(PyExc_TypeError, refusal);
  return {};
}

Flow raiseVarargs(Operations& ops, Frame& f, const Instruction& i) {
  if (i.arg == 0) {
    PyRef handled = PyRef::steal(PyErr_GetHandledException());
    if (!handled || handled.get() == Py_None) {
      PyErr_SetString(PyExc_RuntimeError, "No active exception to reraise");
      return Flow::Error;
    }
    return raiseAgain(f, std::move(handled));
  }
  PyRef cause = i.arg == 2 ? f.pop() : PyRef(), value = f.pop();
  PyRef exception = exceptionOf(ops, value.get(), "exceptions must derive from BaseException");
  if (!exception) return Flow::Error;
  ops.willRaise(exception.get());
  if (cause) {
    if (cause.get() == Py_None) {
      PyException_SetCause(exception.get(), nullptr);
    } else {
      PyRef made = exceptionOf(ops, cause.get(), "exception causes must derive from BaseException");
      if (!made) return Flow::Error;
      PyException_SetCause(exception.get(), made.release());
    }
  }
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.get())), exception.get());
  return Flow::Error;
}

Flow loadAssertionError(Operations&, Frame& f, const Instruction&) {
  f.push(PyRef::borrow(PyExc_AssertionError));
  return Flow::Next;
}

Flow beforeWith(Operations& ops, Frame& f, const Instruction& i) {
  static PyObject* const names[2][2] = {{internedName("__enter__"), internedName("__exit__")}, {internedName("__aenter__"), internedName("__aexit__")}};
  const bool isAsync = i.op == Op::BEFORE_ASYNC_WITH;
  PyRef manager = f.peek(1);
  PyRef enter = ops.getSpecial(manager.get(), names[isAsync][0]);
  PyRef exit = enter ? ops.getSpecial(manager.get(), names[isAsync][1]) : PyRef();
  if (!exit) {
    if (!PyErr_Occurred())
      PyErr_Format(PyExc_TypeError, "'%.200s' object does not support the %scontext manager protocol%s", Py_TYPE(manager.get())->tp_name,
                   isAsync ? "asynchronous " : "", !enter ? "" : isAsync ? " (missed __aexit__ method)" : " (missed __exit__ method)");
    return Flow::Error;
  }
  PyRef entered = ops.call(enter.get(), nullptr, 0, nullptr);
  if (!entered) return Flow::Error;
  f.peek(1) = std::move(exit);
  f.push(std::move(entered));
  return Flow::Next;
}

Flow withExceptStart(Operations& ops, Frame& f, const Instruction&) {
  PyRef exception = f.peek(1), exit = f.peek(4);
  PyRef traceback = ops.tracebackOf(exception.get());
  PyObject* args[] = {reinterpret_cast<PyObject*>(Py_TYPE(exception.get())), exception.get(),
                      traceback ? traceback.get() : Py_None};
  PyRef result = ops.call(exit.get(), args, 3, nullptr);
  if (!result) return Flow::Error;
  f.push(std::move(result));
  return Flow::Next;
}

/// 3.12, around a SEND: StopIteration becomes the value of `yield from`, anything else goes on.
Flow cleanupThrow(Operations&, Frame& f, const Instruction&) {
  PyRef exception = f.pop();
  if (!PyErr_GivenExceptionMatches(exception.get(), PyExc_StopIteration)) return raiseAgain(f, std::move(exception));
  f.pop();
  PyRef value = PyRef::borrow(reinterpret_cast<PyStopIterationObject*>(exception.get())->value);
  f.peek(1) = PyRef::borrow(Py_None);
  f.push(std::move(value));
  return Flow::Next;
}

constexpr HandlerRow kExceptionRows[] = {
    {Op::PUSH_EXC_INFO, pushExcInfo},
    {Op::POP_EXCEPT, popExcept},
    {Op::CHECK_EXC_MATCH, checkExcMatch},
    {Op::RERAISE, reraise},
    {Op::RAISE_VARARGS, raiseVarargs},
    {Op::LOAD_ASSERTION_ERROR, loadAssertionError},
    {Op::BEFORE_WITH, beforeWith},
    {Op::BEFORE_ASYNC_WITH, beforeWith},
    {Op::WITH_EXCEPT_START, withExceptStart},
    {Op::CLEANUP_THROW, cleanupThrow},
};

}  // namespace

HandlerRows exceptionHandlers() { return {kExceptionRows, std::size(kExceptionRows)}; }

}  // namespace fusebox::capture
