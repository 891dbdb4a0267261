#pragma once

#include <string_view>

#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {

using GuardPredicate = bool (*)(PyObject* value, PyObject* expected);

// Predicates of Custom guards that ask what state the process is in, not the program.
bool answersAsBefore(PyObject* callable, PyObject* expected);  ///< `expected`: the arguments and the answer
bool ignoresUnderflow(PyObject*, PyObject*);                   ///< numpy does
bool torchsMethods(PyObject* type, PyObject*);                 ///< hasTorchsMethods()

/// One of them by a name that means the same in every process, so that files can hold such guards.
struct ProcessPredicate {
  std::string_view name;
  GuardPredicate holds;
  /// Whether it can be asked about these objects.
  bool (*fits)(PyObject* value, PyObject* expected);
};
/// Null for all others, and for answers that other processes give as they happen to.
const ProcessPredicate* processPredicateOf(GuardPredicate holds, PyObject* value);
const ProcessPredicate* processPredicateNamed(std::string_view name);

}  // namespace fusebox::capture
