#include "engine/capture/evaluation/interpreter.h"

#include <array>

namespace fusebox::capture {

namespace {

using Table = std::array<Handler, static_cast<size_t>(Op::UNKNOWN) + 1>;

const Table& handlerTable() {
  static const Table table = [] {
    Table t{};
    for (HandlerRows rows : {stackHandlers(), nameHandlers(), operatorHandlers(), containerHandlers(), flowHandlers(),
                             callHandlers(), exceptionHandlers(), matchHandlers(), asyncHandlers()})
      for (size_t i = 0; i < rows.count; ++i) t[static_cast<size_t>(rows.first[i].op)] = rows.first[i].handler;
    return t;
  }();
  return table;
}

}  // namespace

PyRef takeException() {
#if PY_VERSION_HEX >= 0x030C0000
  return PyRef::steal(PyErr_GetRaisedException());
#else
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return PyRef::steal(value);
#endif
}

Handler handlerOf(Op op) { return handlerTable()[static_cast<size_t>(op)]; }

std::unique_ptr<Frame> Frame::make(PyObject* function) {
  auto frame = std::make_unique<Frame>();
  auto* f = reinterpret_cast<PyFunctionObject*>(function);
  frame->decoded = decodeCode(reinterpret_cast<PyCodeObject*>(f->func_code));
  frame->function = PyRef::borrow(function);
  frame->globals = f->func_globals;
  frame->builtins = f->func_builtins;
  frame->locals.resize(static_cast<size_t>(frame->code()->co_nlocalsplus));
  frame->stack.reserve(static_cast<size_t>(frame->code()->co_stacksize));
  return frame;
}

bool enterHandler(Operations& ops, Frame& frame) {
  const HandlerRange* range = frame.decoded->handlerOf(frame.pc);
  if (!range) return false;  // CPython, or the caller, adds the frame to the traceback when the exception leaves it
  if (!frame.reraises) ops.noteTraceback(frame);
  PyRef exception = takeException();
  while (frame.stack.size() > static_cast<size_t>(range->depth)) frame.stack.pop_back();
  if (range->pushLasti) frame.push(PyRef::steal(PyLong_FromLong(frame.instruction().offset)));
  frame.push(std::move(exception));
  frame.kwNames = PyRef();
  frame.pc = range->target;
  return true;
}

Flow step(Operations& ops, Frame& frame) {
  const Instruction& instruction = frame.instruction();
  Handler handler = handlerTable()[static_cast<size_t>(instruction.op)];
  if (!handler) return Flow::Unsupported;
  frame.reraises = false;
  Flow flow = handler(ops, frame, instruction);
  if (flow == Flow::Next || flow == Flow::Yield) {
    ++frame.pc;
  } else if (flow == Flow::Jumped) {
    flow = Flow::Next;
  } else if (flow == Flow::Error) {
    if (!PyErr_Occurred()) PyErr_Format(PyExc_SystemError, "%s failed without an exception", name(instruction.op));  // a frame that raises is run by CPython
    if (enterHandler(ops, frame)) flow = Flow::Next;
  }
  return flow;
}

}  // namespace fusebox::capture
