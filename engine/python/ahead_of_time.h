#pragma once

#include <pybind11/pybind11.h>

#include "engine/capture/entries/entry_cache.h"

namespace fusebox::python {

/// Captures that outlive their process: capture_ahead, stored_function, write_ahead and read_ahead.
void bindAheadOfTime(pybind11::module_& m, const capture::RegionOptions* (*optionsFrom)(const pybind11::dict&));

}  // namespace fusebox::python
