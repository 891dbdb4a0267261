#include "engine/capture/evaluation/suspended_frame.h"

#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/frame_internals.h"
#include "engine/capture/effects/recipes.h"
#include "engine/capture/evaluation/call_errors.h"
#include "engine/capture/evaluation/interpreter.h"

namespace fusebox::capture {

namespace {

/// The error indicator put aside while other code runs.
class SavedError {
 public:
  SavedError() { PyErr_Fetch(&type_, &value_, &traceback_); }
  ~SavedError() { PyErr_Restore(type_, value_, traceback_); }
  SavedError(const SavedError&) = delete;

 private:
  PyObject *type_ = nullptr, *value_ = nullptr, *traceback_ = nullptr;
};

void raise(PyObject* exception) { PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception); }

/// The value of a `yield from` whose delegate raised StopIteration; null, the error as it was: it raised another.
PyRef stopValue() {
  if (!PyErr_ExceptionMatches(PyExc_StopIteration)) return {};
  PyRef stop = takeException();
  PyObject* value = reinterpret_cast<PyStopIterationObject*>(stop.get())->value;
  return PyRef::borrow(value ? value : Py_None);
}

constexpr size_t kMakeHead = 3;  // what makeGenerator() takes before the slots

/// In 3.12 all of a generator's body stands in a handler that only renames StopIteration.
bool onlyRenames(const DecodedCode& code, const HandlerRange& range) {
  constexpr int kStopIterationError = 3;
  const Instruction& first = code.instructions[static_cast<size_t>(range.target)];
  return first.op == Op::CALL_INTRINSIC_1 && first.arg == kStopIterationError;
}

}  // namespace

bool SuspendedFrame::refuseReentry() const {
  if (running_) PyErr_Format(PyExc_ValueError, "%s already executing", noun());
  return running_;
}

bool SuspendedFrame::refuseReuse() const {
  const bool refused = isCoroutine_ && !frame_ && !closing_;
  if (refused) PyErr_SetString(PyExc_RuntimeError, "cannot reuse already awaited coroutine");
  return refused;
}

bool SuspendedFrame::runsWhenClosed() const {
  if (!frame_ || running_) return false;
  if (!started_) return isCoroutine_;  // CPython warns of one that was never awaited
  if (delegate()) return true;
  const HandlerRange* range = frame_->decoded->handlerOf(frame_->pc - 1);
  return range && !onlyRenames(*frame_->decoded, *range);
}

PyObject* SuspendedFrame::delegate() const {
  if (!frame_ || !started_ || frame_->stack.empty()) return nullptr;
  const Instruction& next = frame_->instruction();
  return next.op == Op::RESUME && next.arg >= 2 ? frame_->stack.back().get() : nullptr;
}

int SuspendedFrame::resume(Evaluation& e, PyRef* result) {
  running_ = true;
  advancedAt_ = e.rootCount();
  PyRef callers = PyRef::steal(PyErr_GetHandledException());
  if (handled_) PyErr_SetHandledException(handled_.get());
  int status;
  try {
    status = e.runUntilYield(*frame_, result);
  } catch (...) {
    running_ = false;
    throw;
  }
  {
    SavedError error;
    PyRef now = PyRef::steal(PyErr_GetHandledException());
    handled_ = status > 0 && now.get() != callers.get() ? now : PyRef();
    PyErr_SetHandledException(callers ? callers.get() : Py_None);
  }
  running_ = false;
  if (status < 0) return fail();
  if (status == 0) frame_.reset();
  return status;
}

PyRef SuspendedFrame::next(Evaluation& e) {
  PyRef result;
  const int status = send(e, Py_None, &result);
  return status == 1 ? result : PyRef();
}

int SuspendedFrame::send(Evaluation& e, PyObject* value, PyRef* result) {
  if (refuseReentry() || refuseReuse()) return -1;
  if (!frame_) {
    *result = PyRef::borrow(Py_None);
    return 0;
  }
  if (!started_ && value != Py_None) {
    PyErr_Format(PyExc_TypeError, "can't send non-None value to a just-started %s", noun());
    return -1;
  }
  started_ = true;
  frame_->push(PyRef::borrow(value));
  return resume(e, result);
}

int SuspendedFrame::fail() {
  const std::unique_ptr<Frame> ended = std::move(frame_);
  if (!ended || !PyErr_ExceptionMatches(PyExc_StopIteration)) return -1;
  const PyRef stop = takeException();
  raise(errorOfStop(ended->code(), stop.get()).get());
  return -1;
}

int SuspendedFrame::raiseHere(Evaluation& e, PyObject* exception, PyRef* result) {
  if (!frame_) return raise(exception), -1;
  raise(exception);
  if (!started_) return fail();
  --frame_->pc;  // at the yield itself
  const HandlerRange* range = frame_->decoded->handlerOf(frame_->pc);
  if (closing_ && (!range || onlyRenames(*frame_->decoded, *range))) return fail();  // the frame ends with close(), and what it alone refers to
  if (!enterHandler(e, *frame_)) {
    e.unwind(*frame_);
    return fail();
  }
  return resume(e, result);
}

bool SuspendedFrame::closeDelegate(Evaluation& e, PyObject* delegate) {
  PyRef keep = PyRef::borrow(delegate);
  if (LazyIterator* lazy = lazyOf(delegate)) return lazy->close(e);
  PyRef method = e.getAttr(delegate, internedName("close"));
  if (!method) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return false;
    clearError();
    return true;
  }
  return static_cast<bool>(e.call(method.get(), nullptr, 0, nullptr));
}

int SuspendedFrame::throwIntoDelegate(Evaluation& e, PyObject* delegate, PyObject* exception, PyRef* result) {
  PyRef keep = PyRef::borrow(delegate);
  if (LazyIterator* lazy = lazyOf(delegate))
    return dynamic_cast<SuspendedFrame*>(lazy) ? lazy->throwInto(e, exception, result) : -2;
  PyRef method = e.getAttr(delegate, internedName("throw"));
  if (!method) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
    clearError();
    return -2;
  }
  PyObject* args[] = {exception};
  *result = e.call(method.get(), args, 1, nullptr);
  return *result ? 1 : -1;
}

int SuspendedFrame::leaveDelegate(Evaluation& e, PyRef value, PyRef* result) {
  Frame& f = *frame_;
  int send = f.pc;
  while (f.decoded->instructions[static_cast<size_t>(send)].op != Op::SEND) --send;
#if PY_VERSION_HEX >= 0x030C0000
  f.push(std::move(value));  // END_SEND takes the delegate away
#else
  f.peek(1) = std::move(value);
#endif
  f.pc = f.decoded->instructions[static_cast<size_t>(send)].target;
  return resume(e, result);
}

int SuspendedFrame::throwInto(Evaluation& e, PyObject* exception, PyRef* result) {
  if (refuseReentry() || refuseReuse()) return -1;
  PyObject* waitsFor = delegate();
  if (!waitsFor) return raiseHere(e, exception, result);
  if (PyErr_GivenExceptionMatches(exception, PyExc_GeneratorExit)) {
    running_ = true;
    const bool closed = closeDelegate(e, waitsFor);
    running_ = false;
    return closed ? raiseHere(e, exception, result) : raiseHere(e, takeException().get(), result);
  }
  running_ = true;
  const int status = throwIntoDelegate(e, waitsFor, exception, result);
  running_ = false;
  if (status == 1) return 1;
  if (status == -2) return raiseHere(e, exception, result);
  PyRef value = status == 0 ? *result : stopValue();
  return value ? leaveDelegate(e, std::move(value), result) : raiseHere(e, takeException().get(), result);
}

bool SuspendedFrame::close(Evaluation& e) {
  if (refuseReentry()) return false;
  if (!frame_ || !started_) {
    frame_.reset();
    return true;
  }
  PyRef exit = PyRef::steal(PyObject_CallNoArgs(PyExc_GeneratorExit)), result;
  closing_ = true;
  const int status = throwInto(e, exit.get(), &result);
  closing_ = false;
  if (status > 0) {
    PyErr_Format(PyExc_RuntimeError, "%s ignored GeneratorExit", noun());
    return false;
  }
  if (status < 0) {
    if (!PyErr_ExceptionMatches(PyExc_GeneratorExit) && !PyErr_ExceptionMatches(PyExc_StopIteration)) return false;
    clearError();
  }
  return true;
}

bool SuspendedFrame::letGo(Evaluation& e) {
  if (isCoroutine_ && !started_) e.breakHere("generator", "a coroutine is let go of that was never awaited, of which CPython warns", "Await it, or close it.");
  return close(e);
}

std::pair<PyRef, PyRef> SuspendedFrame::position() const {
  const Frame& f = *frame_;
  std::string bound;
  for (const auto* slots : {&f.locals, &f.stack})
    for (const PyRef& slot : *slots) bound.push_back(slot ? 1 : 0);
  return {PyRef::steal(PyLong_FromLong(f.instruction().offset)), PyRef::steal(PyBytes_FromStringAndSize(bound.data(), static_cast<Py_ssize_t>(bound.size())))};
}

Remaking SuspendedFrame::remake(Evaluation&) const {
  if (!frame_ || running_ || frame_->handling > 0) return {};
  static PyMethodDef method = {"make_generator",
                               reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(+[](PyObject*, PyObject* const* args, Py_ssize_t count) { return makeGenerator(args, count); })),
                               METH_FASTCALL, nullptr};
  static PyObject* const function = PyCFunction_New(&method, nullptr);
  const auto [offset, bound] = position();
  PyRef args = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(kMakeHead + frame_->locals.size() + frame_->stack.size())));
  Py_ssize_t at = 0;
  for (const PyRef& part : {frame_->function, offset, bound}) PyTuple_SET_ITEM(args.get(), at++, Py_NewRef(part.get()));
  for (const auto* slots : {&frame_->locals, &frame_->stack})
    for (const PyRef& slot : *slots) PyTuple_SET_ITEM(args.get(), at++, Py_NewRef(slot ? slot.get() : Py_None));
  return {PyRef::borrow(function), args, {}, {}};
}

std::vector<std::shared_ptr<Recipe>> SuspendedFrame::stateAfter(Evaluation& e, RecipeMaker& recipes) const {
  if (!frame_) return {recipes.make(Py_None)};
  if (frame_->handling > 0)
    throw CaptureBreak{{"iterator from outside", "a generator that was made before this segment is suspended where it handles an exception", "", e.place(), {}}, advancedAt_};
  const auto [offset, bound] = position();
  std::vector<std::shared_ptr<Recipe>> state = {recipes.make(offset.get()), recipes.make(bound.get())};
  for (size_t i = 0; i < frame_->locals.size(); ++i) {
    PyObject* local = frame_->locals[i].get();
    state.push_back(local && frame_->unread[i] ? e.unreadRecipe(frame_->unreadSource[i]) : recipes.make(local ? local : Py_None));
  }
  for (const PyRef& slot : frame_->stack) state.push_back(recipes.make(slot ? slot.get() : Py_None));
  return state;
}

}  // namespace fusebox::capture
