#pragma once

#include "engine/capture/entries/entry_cache.h"
#include "engine/capture/cpython/frame_internals.h"

namespace fusebox::capture {

/// Runs a fresh frame through compiled entries, capturing and compiling where none fits, and returns what the frame returns (null
/// with a Python error set when it raises). Takes care of ending the frame as its CPython version asks. Whatever cannot be
/// compiled is run by CPython from exactly where it is.
PyObject* runFrame(PyThreadState* thread, InterpreterFrame* frame, CodeState& code, const RegionOptions* options);

/// While positive, frames on this thread are left to CPython: capture is working, or a graph runs.
int& captureSuspended();

/// Positive while captureSegment() works on this thread: what torch.compiler.is_compiling() answers.
int& captureDepth();

/// Counts one of them up while it lives.
class Counted {
 public:
  explicit Counted(int& counter) : counter_(counter) { ++counter_; }
  ~Counted() { --counter_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  int& counter_;
};

/// Python exceptions that the driver raises; set once by the extension module. Null: RuntimeError.
struct CaptureExceptions {
  PyObject* graphBreak = nullptr;      ///< a break (or anything else that prevents one graph) under fullgraph=True
  PyObject* recompile = nullptr;       ///< recompile limit hit with fail_on_recompile_limit_hit; error_on_recompile
};
CaptureExceptions& captureExceptions();

/// What a compiled callable (fusebox.compile's result) compiles, borrowed; null: not one. Set by the layer that defines them.
extern PyObject* (*originalOfCompiled)(PyObject* callable);

/// What set_stance() asked for.
enum class Stance : uint8_t { Default, ForceEager, EagerOnRecompile, FailOnRecompile, EagerThenCompile };
Stance& captureStance();

}  // namespace fusebox::capture
