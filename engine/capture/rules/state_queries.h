#pragma once

#include <vector>

#include "engine/capture/evaluation/evaluation.h"

namespace fusebox::capture {

/// Functions of torch._C and its submodules.
bool isOfTorchC(PyObject* callable);

/// The rule of a function of torch._C that reads libtorch's state or the types of its arguments; null for all others.
CallRule stateQueryOf(PyObject* callable);

/// Assumes that the C function goes on giving for these constants what it gives now, which a guard asks again at every check: it
/// must not run Python. `text`: what is assumed, for people. Breaks if the answer is no constant. Returns the answer.
PyRef guardAnswer(Evaluation& e, PyObject* callable, const std::vector<PyObject*>& args, const char* text);

}  // namespace fusebox::capture
