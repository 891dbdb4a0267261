#pragma once

#include <Python.h>

#include <memory>
#include <thread>

#include "engine/capture/entries/hook.h"

namespace fusebox::python {

/// What calling a wrapper does with the region.
enum class WrapperKind : uint8_t {
  Compile,  ///< opens a region: what torch.compile returns
  Disable,  ///< leaves the call and everything below it to CPython: what torch.compiler.disable returns
};

/// A region that the program opens and closes itself: what is called on this thread meanwhile is compiled; without options, left to CPython.
class OpenRegion {
 public:
  explicit OpenRegion(const capture::RegionOptions* options);
  /// Closes it; dropped on another thread, it stays open.
  ~OpenRegion();
  /// False on another thread than the one that opened it: it stays open.
  bool close();

 private:
  std::thread::id thread_;
  std::unique_ptr<capture::Region> region_;
  std::unique_ptr<capture::RegionPause> pause_;
};

/// From now on every compiled function's backend is this one; null: its own again.
void forceBackend(const capture::RegionOptions* options);

/// Defines the type `CompiledFunction` in `module`. -1 with a Python error set on failure.
int addCompiledFunctionType(PyObject* module);

/// A callable around `original` (new reference; null with an error set). `root`: code whose frame is to be captured, found from
/// the callable when null. It binds as a method, can be weakly referenced, and answers for the attributes of `original`.
PyObject* makeCompiledFunction(PyObject* original, WrapperKind kind, const capture::RegionOptions* options, PyObject* root);

}  // namespace fusebox::python
