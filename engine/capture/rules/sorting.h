#pragma once

#include "engine/capture/evaluation/evaluation.h"

namespace fusebox::capture {

/// Sorts a list that nobody else sees as list.sort does, by its own algorithm, with comparisons that the evaluator makes. `key` may be
/// null or None. False: an exception is set and the list is as it was.
bool sortList(Evaluation& e, PyObject* list, PyObject* key, bool reverse);

}  // namespace fusebox::capture
