#pragma once

#include <Python.h>

#include "engine/capture/cpython/frame_view.h"
#include "engine/capture/effects/segment.h"

struct _PyInterpreterFrame;

/// What Fusebox needs to know of CPython's private frame layout. Everything that differs between 3.11 and 3.12 is in
/// frame_internals.cpp; the GIL is held throughout.
namespace fusebox::capture {

using InterpreterFrame = _PyInterpreterFrame;

PyCodeObject* codeOf(InterpreterFrame* frame);
PyFunctionObject* functionOf(InterpreterFrame* frame);
PyObject* globalsOf(InterpreterFrame* frame);
/// A function's frame that has not run an instruction and that no generator or frame object owns.
bool isFresh(InterpreterFrame* frame);
/// A frame about to run a module's own code because the module is imported.
bool isImportedModule(PyThreadState* thread, InterpreterFrame* frame);
/// The roots of guards, borrowed from the frame.
FrameView viewOf(InterpreterFrame* frame);
FrameView viewOf(const FrameState& state);
/// Copies a fresh frame: references are added.
FrameState stateOf(InterpreterFrame* frame);

/// The attributes of a class itself; its tp_dict is empty for builtin types of 3.12.
PyRef typeDict(PyTypeObject* type);

/// CPython's own evaluator.
PyObject* evaluate(PyThreadState* thread, InterpreterFrame* frame, int throwing);
/// Ends a frame whose result was made without running it: gives back its references and pops it, where CPython leaves that to
/// the evaluator. Returns `result`, which is handed through.
PyObject* leaveFrame(PyThreadState* thread, InterpreterFrame* frame, PyObject* result);
/// Lets CPython run the frame from `state` on. Takes the state's references.
PyObject* resumeAt(PyThreadState* thread, InterpreterFrame* frame, FrameState& state);
/// Raises the exception that is set at instruction `state.offset`: CPython adds the traceback entry and unwinds, to a handler of the frame
/// that covers the instruction, for which the state's stack is what it is there. Where the instruction hands on what was handled before
/// (`again`), no handler may cover it.
PyObject* raiseAt(PyThreadState* thread, InterpreterFrame* frame, FrameState& state, bool again);

/// Leaves the state's locals to the frame alone, which lets go of them in their order when it ends.
void giveLocals(InterpreterFrame* frame, FrameState& state);
/// Unbinds locals, so that a frame object that outlives the frame does not keep what they held.
void unbindLocals(InterpreterFrame* frame, const std::vector<bool>& which);

/// While one exists the frame is on the thread's stack of frames, at `state`'s instruction and with its locals, so that callees
/// find it (sys._getframe, warnings, tracebacks).
class LinkedFrame {
 public:
  LinkedFrame(PyThreadState* thread, InterpreterFrame* frame, const FrameState& state);
  ~LinkedFrame();
  /// After an instruction: what a local variable let go of is not kept by the frame.
  void refresh(const FrameState& state);
  LinkedFrame(const LinkedFrame&) = delete;
  LinkedFrame& operator=(const LinkedFrame&) = delete;

 private:
  PyThreadState* thread_;
  InterpreterFrame* frame_;
};

/// Counts a frame that CPython does not run against the limit of sys.setrecursionlimit(), as CPython counts those that it does.
class RecursionCount {
 public:
  explicit RecursionCount(PyThreadState* thread);
  ~RecursionCount() { release(); }
  RecursionCount(const RecursionCount&) = delete;
  RecursionCount& operator=(const RecursionCount&) = delete;
  /// The limit is reached: CPython raises RecursionError when it is given the frame.
  bool exhausted() const { return exhausted_; }
  /// Before the frame goes to CPython, which counts it itself.
  void release();

 private:
  PyThreadState* thread_;
  bool exhausted_ = false, counted_ = false;
};

/// What a generator consists of: its code, its function, the offset of its next instruction in code units, which slots are bound (bytes of 0 and 1),
/// and the slots, localsplus and then its stack, where None stands for what is not bound. () for one that has ended; null without error: it runs, or
/// handles an exception.
PyRef generatorParts(PyObject* generator);
/// A generator or a coroutine, whose frames are kept in the same way.
inline bool ownsFrame(PyObject* object) { return PyGen_CheckExact(object) || PyCoro_CheckExact(object); }
inline constexpr Py_ssize_t kGeneratorSlots = 4;  ///< position of the first slot
/// A generator of `function`, suspended: args are the function and what restoreGenerator() is given.
PyObject* makeGenerator(PyObject* const* args, Py_ssize_t count);
/// Suspends a generator elsewhere: args are the offset, which slots are bound, and the slots. None instead: it has ended.
bool restoreGenerator(PyObject* generator, PyObject* const* args, Py_ssize_t count);

/// Slot of code objects that holds our data; `free` is called when a code object dies.
Py_ssize_t requestCodeSlot(void (*free)(void*));
void* codeSlot(PyCodeObject* code, Py_ssize_t slot);
void setCodeSlot(PyCodeObject* code, Py_ssize_t slot, void* value);

using FrameEvaluator = PyObject* (*)(PyThreadState*, InterpreterFrame*, int);
/// The interpreter's frame evaluator; null as CPython's own.
FrameEvaluator frameEvaluator();
void setFrameEvaluator(FrameEvaluator evaluator);

/// Whether a debugger, profiler or coverage tool watches this thread: frames are then left to CPython.
bool isTraced(PyThreadState* thread);

}  // namespace fusebox::capture
