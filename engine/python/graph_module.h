#pragma once

#include <pybind11/pybind11.h>

namespace fusebox::python {

/// Saved graphs as Python sees them: reading one, running it operator by operator, compiling it alone, recording about
/// it.
void bindGraphs(pybind11::module_& m);

}  // namespace fusebox::python
