#pragma once

#include "engine/capture/evaluation/evaluation.h"

namespace fusebox::capture {

/// Whether an index of a tensor has symbolic ints in it.
bool indexHasSymbols(PyObject* key);
/// The view of a stand-in that the symbolic ints of an index ask for, and the index of that view that is left (null: all of it). Null
/// without error: the index has parts of unknown rank.
PyRef takeSymbols(Evaluation& e, PyObject* tensor, PyObject* key, PyRef* rest);
/// A key of a dict without symbolic numbers in it, which become constants; itself where it has none.
PyRef plainKey(PyObject* key, std::string_view use = "a key");
/// Whether a tuple or torch.Size holds symbolic numbers.
bool holdsSymbols(PyObject* tuple);

}  // namespace fusebox::capture
