#pragma once

#include <pybind11/pybind11.h>

namespace fusebox::python {

/// From now on captures are kept in the cache, and looked for there (capture/entries/kept_captures.h). Defines in `module` what naming the
/// program's objects needs.
void keepCaptures(pybind11::module_& module);

}  // namespace fusebox::python
