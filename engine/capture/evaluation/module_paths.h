#pragma once

#include <optional>
#include <string>

#include "engine/capture/evaluation/frame.h"

namespace fusebox::capture {

/// What programs call a module, parameter or buffer that was reached through an iterator from before the segment: its source says only how far
/// ahead of the iterator it lies.

/// Whether `source` leads through such an iterator, or from the value stack.
bool liesAhead(const Source* source);

/// Where `object` is among the modules that the root frame's locals hold, found by identity; no Python code runs.
struct ModulePlace {
  std::string local;  ///< "self"
  std::string path;   ///< "layers.1.n1.weight"; empty for the local itself
};
std::optional<ModulePlace> placeInModules(const Frame* frame, PyObject* object);

}  // namespace fusebox::capture
