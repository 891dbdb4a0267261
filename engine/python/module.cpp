#include "engine/python/engine_module.h"

PYBIND11_MODULE(_engine, m) { fusebox::python::bindEngine(m); }
