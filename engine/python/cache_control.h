#pragma once

#include <pybind11/pybind11.h>

namespace fusebox::python {

/// save_cache_artifacts and load_cache_artifacts: what this process has used or made, as one piece of bytes.
void bindCache(pybind11::module_& m);

}  // namespace fusebox::python
