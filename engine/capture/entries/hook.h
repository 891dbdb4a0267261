#pragma once

#include <Python.h>

#include <string_view>

#include "engine/capture/entries/entry_cache.h"

namespace fusebox::capture {

/// While one exists on a thread, frames that start there are looked at and compiled. The interpreter's frame hook is set while
/// any thread has a region. `root` is the code that the user asked to compile: its frame is taken even where the rules would
/// skip it.
class Region {
 public:
  Region(const RegionOptions* options, PyCodeObject* root);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

 private:
  const RegionOptions* previousOptions_;
  PyCodeObject* previousRoot_;
  int previousDisabled_;
  size_t previousRefusal_;
};

/// While one exists, frames on this thread are left alone (torch.compiler.disable inside a region).
class RegionPause {
 public:
  RegionPause();
  ~RegionPause();
  RegionPause(const RegionPause&) = delete;
};

/// Inside a region that is not paused.
bool inRegion();
/// Whether the code is what the user asked to compile, in the region of this thread.
bool isRegionRoot(const PyCodeObject* code);
/// Whether the frame before, of this call of a compiled function, was left to Python for the same reason; from now on one was.
bool isRefusedAgain(std::string_view why);
/// Capture is at work on this thread: torch.compiler.is_compiling().
bool isCapturing();

}  // namespace fusebox::capture
