// The one file that includes CPython's internal headers. A new minor version must be read and tried before it is let in.
#include "engine/capture/cpython/frame_internals.h"

#include <string_view>
#include <utility>
#include <vector>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/frame_walk.h"

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030D0000
#error "Fusebox knows the frames of CPython 3.11 and 3.12 only"
#endif

#define Py_BUILD_CORE
#undef _PyGC_FINALIZED
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#include <opcode.h>

#define FUSEBOX_PY312 (PY_VERSION_HEX >= 0x030C0000)

namespace fusebox::capture {

static_assert(sizeof(PyRef) == sizeof(PyObject*), "FrameView reads vectors of PyRef as arrays of PyObject*");
static_assert(sizeof(_Py_CODEUNIT) == 2);
#if FUSEBOX_PY312
static_assert(offsetof(_PyInterpreterFrame, f_code) == 0);
#else
static_assert(offsetof(_PyInterpreterFrame, f_func) == 0);
#endif

PyCodeObject* codeOf(InterpreterFrame* frame) { return frame->f_code; }

PyFunctionObject* functionOf(InterpreterFrame* frame) {
#if FUSEBOX_PY312
  return reinterpret_cast<PyFunctionObject*>(frame->f_funcobj);
#else
  return frame->f_func;
#endif
}

PyObject* globalsOf(InterpreterFrame* frame) { return frame->f_globals; }

void visitFrames(bool (*visit)(PyCodeObject* code, int offset, void* context), void* context) {
  PyThreadState* thread = PyGILState_GetThisThreadState();
  if (!thread || !thread->cframe) return;
  for (auto* frame = thread->cframe->current_frame; frame; frame = frame->previous) {
    PyCodeObject* code = frame->f_code;
    const auto offset = static_cast<int>(frame->prev_instr - _PyCode_CODE(code)) * static_cast<int>(sizeof(_Py_CODEUNIT));
#if FUSEBOX_PY312
    if (frame->owner == FRAME_OWNED_BY_CSTACK) continue;
#endif
    if (offset >= 0 && !visit(code, offset, context)) return;
  }
}

bool isFresh(InterpreterFrame* frame) {
  constexpr int kFunction = CO_OPTIMIZED | CO_NEWLOCALS;
  constexpr int kSuspends = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE;
  return frame->owner == FRAME_OWNED_BY_THREAD && !frame->f_locals && !frame->frame_obj &&
         frame->prev_instr == _PyCode_CODE(frame->f_code) - 1 && (frame->f_code->co_flags & kFunction) == kFunction &&
         !(frame->f_code->co_flags & kSuspends);
}

bool isImportedModule(PyThreadState* thread, InterpreterFrame* frame) {
  if (frame->f_code->co_flags & CO_NEWLOCALS) return false;
  InterpreterFrame* caller = thread->cframe->current_frame;  // `frame->previous` is set by the evaluation, which is to come
#if FUSEBOX_PY312
  while (caller && caller->owner == FRAME_OWNED_BY_CSTACK) caller = caller->previous;
#endif
  if (!caller) return false;
  const char* file = utf8Of(caller->f_code->co_filename);
  if (!file) clearError();
  return file && std::string_view(file).starts_with("<frozen importlib.");
}

FrameView viewOf(InterpreterFrame* frame) {
  FrameView v;
  v.locals = frame->localsplus;
  v.localCount = frame->f_code->co_nlocalsplus;
  v.freeOffset = v.localCount - frame->f_code->co_nfreevars;
  PyObject* closure = functionOf(frame)->func_closure;
  v.closure = closure ? reinterpret_cast<PyTupleObject*>(closure)->ob_item : nullptr;
  return v;
}

FrameView viewOf(const FrameState& state) {
  FrameView v;
  v.locals = reinterpret_cast<PyObject* const*>(state.locals.data());
  v.localCount = static_cast<int>(state.locals.size());
  v.stack = reinterpret_cast<PyObject* const*>(state.stack.data());
  v.stackDepth = static_cast<int>(state.stack.size());
  v.freeOffset = v.localCount;
  if (state.offset == 0) {
    v.freeOffset -= state.code->co_nfreevars;
    PyObject* closure = reinterpret_cast<PyFunctionObject*>(state.function.get())->func_closure;
    v.closure = closure ? reinterpret_cast<PyTupleObject*>(closure)->ob_item : nullptr;
  }
  return v;
}

FrameState stateOf(InterpreterFrame* frame) {
  FrameState s;
  s.function = PyRef::borrow(reinterpret_cast<PyObject*>(functionOf(frame)));
  s.code = frame->f_code;
  s.locals.reserve(static_cast<size_t>(frame->f_code->co_nlocalsplus));
  for (int i = 0; i < frame->f_code->co_nlocalsplus; ++i) s.locals.push_back(PyRef::borrow(frame->localsplus[i]));
  return s;
}

PyObject* evaluate(PyThreadState* thread, InterpreterFrame* frame, int throwing) {
  return _PyEval_EvalFrameDefault(thread, frame, throwing);
}

namespace {

/// Makes the frame's locals those of `state`.
void storeLocals(InterpreterFrame* frame, const FrameState& state) {
  for (size_t i = 0; i < state.locals.size(); ++i) {
    PyObject* old = frame->localsplus[i];
    PyObject* now = state.locals[i].get();
    if (old == now) continue;
    Py_XINCREF(now);
    frame->localsplus[i] = now;
    Py_XDECREF(old);
  }
  frame->stacktop = frame->f_code->co_nlocalsplus;
}

/// Takes the state's references.
void storeStack(InterpreterFrame* frame, FrameState& state) {
  for (PyRef& value : state.stack) frame->localsplus[frame->stacktop++] = value.release();
  state.stack.clear();
}

#if FUSEBOX_PY312
/// As _PyThreadState_PopFrame, which is not exported.
void popFrame(PyThreadState* thread, InterpreterFrame* frame) {
  auto** base = reinterpret_cast<PyObject**>(frame);
  if (base != &thread->datastack_chunk->data[0]) {
    thread->datastack_top = base;
    return;
  }
  _PyStackChunk* chunk = thread->datastack_chunk;
  _PyStackChunk* previous = chunk->previous;
  thread->datastack_top = &previous->data[previous->top];
  thread->datastack_chunk = previous;
  PyObjectArenaAllocator arena;
  PyObject_GetArenaAllocator(&arena);
  arena.free(arena.ctx, chunk, chunk->size);
  thread->datastack_limit = reinterpret_cast<PyObject**>(reinterpret_cast<char*>(previous) + previous->size);
}

/// Somebody holds the frame object (a traceback, sys._getframe): CPython itself must end the frame, because it moves the contents
/// there. It does so when it runs a return instruction.
PyObject* returnThroughInterpreter(PyThreadState* thread, InterpreterFrame* frame, PyObject* result) {
  PyCodeObject* code = frame->f_code;
  PyRef bytes = PyRef::steal(PyCode_GetCode(code));  // without specialisation and instrumentation
  const auto* units = reinterpret_cast<const uint8_t*>(PyBytes_AS_STRING(bytes.get()));
  const Py_ssize_t n = PyBytes_GET_SIZE(bytes.get()) / 2;
  for (Py_ssize_t i = n - 1; i >= 0; --i) {
    const uint8_t op = units[2 * i];
    const bool isReturn = op == RETURN_VALUE;
    const bool isSameConstant = op == RETURN_CONST && PyTuple_GET_ITEM(code->co_consts, units[2 * i + 1]) == result &&
                                (i == 0 || units[2 * i - 2] != EXTENDED_ARG);
    if (!isReturn && !isSameConstant) continue;
    if (isReturn) frame->localsplus[frame->stacktop++] = result;
    frame->prev_instr = _PyCode_CODE(code) + i - 1;
    PyObject* r = _PyEval_EvalFrameDefault(thread, frame, 0);
    if (!isReturn) Py_DECREF(result);
    return r;
  }
  Py_FatalError("fusebox: a frame without a return instruction returned");
}
#endif

}  // namespace

PyObject* leaveFrame(PyThreadState* thread, InterpreterFrame* frame, PyObject* result) {
#if FUSEBOX_PY312
  if (PyFrameObject* object = frame->frame_obj) {
    if (Py_REFCNT(object) > 1 && result) return returnThroughInterpreter(thread, frame, result);
    frame->frame_obj = nullptr;
    Py_DECREF(object);
  }
  for (int i = 0; i < frame->stacktop; ++i) Py_XDECREF(frame->localsplus[i]);
  Py_XDECREF(frame->f_locals);
  Py_DECREF(frame->f_funcobj);
  PyCodeObject* code = frame->f_code;
  popFrame(thread, frame);
  Py_DECREF(code);
#endif
  // 3.11: _PyEval_Vector clears and pops.
  return result;
}

PyObject* resumeAt(PyThreadState* thread, InterpreterFrame* frame, FrameState& state) {
  storeLocals(frame, state);
  storeStack(frame, state);
  state.locals.clear();
  frame->prev_instr = _PyCode_CODE(frame->f_code) + state.offset - 1;
  return _PyEval_EvalFrameDefault(thread, frame, 0);
}

#if FUSEBOX_PY312
namespace {

/// Ends the frame with the exception that is set, whose traceback stays as it is. CPython must do that itself, because it moves the
/// contents of a frame that is still referred to.
PyObject* raiseAgain(PyThreadState* thread, InterpreterFrame* frame) {
  PyRef exception = PyRef::steal(PyErr_GetRaisedException());
  PyRef traceback = PyRef::steal(PyException_GetTraceback(exception.get()));
  PyErr_SetRaisedException(Py_NewRef(exception.get()));
  PyObject* result = _PyEval_EvalFrameDefault(thread, frame, 1);
  PyException_SetTraceback(exception.get(), traceback ? traceback.get() : Py_None);
  return result;
}

}  // namespace
#endif

PyObject* raiseAt(PyThreadState* thread, InterpreterFrame* frame, FrameState& state, bool again) {
  storeLocals(frame, state);
  if (again) state.stack.clear();
  else storeStack(frame, state);
  state.locals.clear();
  frame->prev_instr = _PyCode_CODE(frame->f_code) + state.offset;
  if (!again) return _PyEval_EvalFrameDefault(thread, frame, 1);
#if FUSEBOX_PY312
  return raiseAgain(thread, frame);
#else
  return nullptr;
#endif
}

void giveLocals(InterpreterFrame* frame, FrameState& state) {
  storeLocals(frame, state);
  state = FrameState();
}

void unbindLocals(InterpreterFrame* frame, const std::vector<bool>& which) {
  for (size_t i = 0; i < which.size(); ++i)
    if (which[i]) PyRef::steal(std::exchange(frame->localsplus[i], nullptr));
}

LinkedFrame::LinkedFrame(PyThreadState* thread, InterpreterFrame* frame, const FrameState& state) : thread_(thread), frame_(frame) {
  storeLocals(frame, state);
  frame->prev_instr = _PyCode_CODE(frame->f_code) + state.offset;
  frame->previous = thread->cframe->current_frame;
  thread->cframe->current_frame = frame;
}

void LinkedFrame::refresh(const FrameState& state) { storeLocals(frame_, state); }

LinkedFrame::~LinkedFrame() {
  thread_->cframe->current_frame = frame_->previous;
  frame_->previous = nullptr;
}

namespace {

int& remainingRecursion(PyThreadState* thread) {
#if FUSEBOX_PY312
  return thread->py_recursion_remaining;
#else
  return thread->recursion_remaining;
#endif
}

}  // namespace

RecursionCount::RecursionCount(PyThreadState* thread) : thread_(thread) {
  exhausted_ = remainingRecursion(thread) <= 1;
  if (exhausted_) return;
  --remainingRecursion(thread);
  counted_ = true;
}

void RecursionCount::release() {
  if (std::exchange(counted_, false)) ++remainingRecursion(thread_);
}

namespace {

InterpreterFrame* frameOf(PyObject* generator) { return reinterpret_cast<InterpreterFrame*>(reinterpret_cast<PyGenObject*>(generator)->gi_iframe); }

/// Its stack goes first, and last first; then the locals in their order.
void releaseSlots(InterpreterFrame* frame) {
  while (frame->stacktop > frame->f_code->co_nlocalsplus) PyRef::steal(std::exchange(frame->localsplus[--frame->stacktop], nullptr));
  for (int i = 0; i < frame->stacktop; ++i) PyRef::steal(std::exchange(frame->localsplus[i], nullptr));
}

}  // namespace

PyRef generatorParts(PyObject* generator) {
  const auto* g = reinterpret_cast<PyGenObject*>(generator);
  if (g->gi_frame_state >= FRAME_COMPLETED) return PyRef::steal(PyTuple_New(0));
  if (g->gi_frame_state == FRAME_EXECUTING || g->gi_exc_state.exc_value) return {};
  InterpreterFrame* frame = frameOf(generator);
  const int n = frame->stacktop;
  PyRef parts = PyRef::steal(PyTuple_New(kGeneratorSlots + n)), bound = PyRef::steal(PyBytes_FromStringAndSize(nullptr, n));
  if (!parts || !bound) return {};
  for (int i = 0; i < n; ++i) {
    PyObject* slot = frame->localsplus[i];
    PyBytes_AS_STRING(bound.get())[i] = slot ? 1 : 0;
    PyTuple_SET_ITEM(parts.get(), kGeneratorSlots + i, Py_NewRef(slot ? slot : Py_None));
  }
  const auto next = static_cast<long>(frame->prev_instr - _PyCode_CODE(frame->f_code)) + 1;
  PyTuple_SET_ITEM(parts.get(), 0, Py_NewRef(reinterpret_cast<PyObject*>(frame->f_code)));
  PyTuple_SET_ITEM(parts.get(), 1, Py_NewRef(reinterpret_cast<PyObject*>(functionOf(frame))));
  PyTuple_SET_ITEM(parts.get(), 2, PyLong_FromLong(next));
  PyTuple_SET_ITEM(parts.get(), 3, bound.release());
  return parts;
}

bool restoreGenerator(PyObject* generator, PyObject* const* args, Py_ssize_t count) {
  auto* g = reinterpret_cast<PyGenObject*>(generator);
  if (g->gi_frame_state >= FRAME_COMPLETED) return true;  // and has no frame any more
  InterpreterFrame* frame = frameOf(generator);
  _Py_CODEUNIT* const first = _PyCode_CODE(frame->f_code);
  const auto isStart = [](const _Py_CODEUNIT* unit) { return _Py_OPCODE(*unit) == RETURN_GENERATOR; };
  if (args[0] == Py_None) {
    // Closed where no handler is, it ends as CPython ends it.
    releaseSlots(frame);
    _Py_CODEUNIT* at = first;
    while (!isStart(at)) ++at;
    frame->prev_instr = at;
    g->gi_frame_state = FRAME_CREATED;
    return static_cast<bool>(PyRef::steal(PyObject_CallMethod(generator, "close", nullptr)));
  }
  const char* bound = PyBytes_AS_STRING(args[1]);
  std::vector<PyRef> before;
  for (int i = 0; i < frame->stacktop; ++i) before.push_back(PyRef::steal(frame->localsplus[i]));
  const int slots = static_cast<int>(count) - 2;
  for (int i = 0; i < slots; ++i) frame->localsplus[i] = bound[i] ? Py_NewRef(args[2 + i]) : nullptr;
  frame->stacktop = slots;
  frame->prev_instr = first + PyLong_AsLong(args[0]) - 1;
  g->gi_frame_state = isStart(frame->prev_instr) ? FRAME_CREATED : FRAME_SUSPENDED;
  while (before.size() > static_cast<size_t>(frame->f_code->co_nlocalsplus)) before.pop_back();
  return true;
}

PyObject* makeGenerator(PyObject* const* args, Py_ssize_t count) {
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(args[0]));
  const int positional = code->co_argcount, keywords = code->co_kwonlyargcount;
  const std::vector<PyObject*> nothing(static_cast<size_t>(positional + keywords) + 1, Py_None);
  PyRef names = PyRef::steal(PyTuple_GetSlice(code->co_localsplusnames, positional, positional + keywords));
  // It runs to where it is a generator, and binds its arguments.
  PyRef made = PyRef::steal(PyObject_Vectorcall(args[0], nothing.data(), static_cast<size_t>(positional), names.get()));
  return made && restoreGenerator(made.get(), args + 1, count - 1) ? made.release() : nullptr;
}

Py_ssize_t requestCodeSlot(void (*free)(void*)) {
#if FUSEBOX_PY312
  return PyUnstable_Eval_RequestCodeExtraIndex(free);
#else
  return _PyEval_RequestCodeExtraIndex(free);
#endif
}

void* codeSlot(PyCodeObject* code, Py_ssize_t slot) {
  void* value = nullptr;
#if FUSEBOX_PY312
  PyUnstable_Code_GetExtra(reinterpret_cast<PyObject*>(code), slot, &value);
#else
  _PyCode_GetExtra(reinterpret_cast<PyObject*>(code), slot, &value);
#endif
  return value;
}

void setCodeSlot(PyCodeObject* code, Py_ssize_t slot, void* value) {
#if FUSEBOX_PY312
  PyUnstable_Code_SetExtra(reinterpret_cast<PyObject*>(code), slot, value);
#else
  _PyCode_SetExtra(reinterpret_cast<PyObject*>(code), slot, value);
#endif
}

PyRef typeDict(PyTypeObject* type) {
#if FUSEBOX_PY312
  return PyRef::steal(PyType_GetDict(type));
#else
  return PyRef::borrow(type->tp_dict);
#endif
}

FrameEvaluator frameEvaluator() { return _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()); }

void setFrameEvaluator(FrameEvaluator evaluator) {
  _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), evaluator ? evaluator : _PyEval_EvalFrameDefault);
}

bool isTraced(PyThreadState* thread) {
#if FUSEBOX_PY312
  return thread->c_tracefunc || thread->c_profilefunc;
#else
  return thread->cframe->use_tracing;
#endif
}

}  // namespace fusebox::capture
