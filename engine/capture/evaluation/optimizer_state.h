#pragma once

#include <Python.h>

#include <cstddef>

#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {

class Evaluation;
struct CallArguments;

/// Around a call of `_init_group` of torch's optimizers that is followed. What it gave its optimizer's state there is given for real, by its own code,
/// and capture starts over: a compiled step would otherwise be captured for the first call, which makes the state, and again for all others.
class OptimizerState {
 public:
  OptimizerState(Evaluation& e, PyObject* function, const CallArguments& a);
  /// After the call; throws CaptureBreak where the state was made, and nothing that it is made of was written by the segment.
  void settle() const;

 private:
  bool isWritten(PyObject* container) const;

  Evaluation& e_;
  PyRef function_, optimizer_, group_, given_, state_;
  size_t lists_ = 0;
};

}  // namespace fusebox::capture
