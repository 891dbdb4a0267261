#pragma once

#include <Python.h>

namespace fusebox::capture {

/// The roots that sources start from, borrowed from a running frame (or a FrameState): no copy, no reference counts.
struct FrameView {
  PyObject* const* locals = nullptr;   ///< localsplus
  int localCount = 0;
  PyObject* const* stack = nullptr;
  int stackDepth = 0;
  PyObject* const* closure = nullptr;  ///< cells of the function; stand in for free variables that COPY_FREE_VARS has yet to copy
  int freeOffset = 0;                  ///< localsplus index of the first free variable

  PyObject* local(int64_t index) const {
    if (index >= localCount) return nullptr;
    PyObject* o = locals[index];
    return o || index < freeOffset || !closure ? o : closure[index - freeOffset];
  }
  PyObject* onStack(int64_t index) const { return index < stackDepth ? stack[index] : nullptr; }
};

}  // namespace fusebox::capture
