#pragma once

#include <pybind11/pybind11.h>

namespace fusebox::python {

/// `listen_to_records(on, code, instructions)` and `take_records()`: what is compiled, as dicts, for the logs of the program (_records.py).
void bindRecordQueue(pybind11::module_& m);

}  // namespace fusebox::python
