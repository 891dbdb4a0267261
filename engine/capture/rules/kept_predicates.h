#pragma once

#include <string_view>

#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {

using GuardPredicate = bool (*)(PyObject* value, PyObject* expected);

// Predicates of Custom guards that ask what state the process is in.
bool answersAsBefore(PyObject* callable, PyObject* expected);  ///< `expected`: the arguments and the answer
bool ignoresUnderflow(PyObject*, PyObject*);                   ///< numpy does
bool torchsMethods(PyObject* type, PyObject*);                 ///< hasTorchsMethods()

// Predicates that ask what the program's objects are.
bool handlesNothing(PyObject*, PyObject*);                         ///< no exception is under handling
bool sameDefaults(PyObject* function, PyObject* expected);         ///< a function with these positional defaults
bool sameSetContents(PyObject* set, PyObject* expected);           ///< in its order
bool sameSetElements(PyObject* set, PyObject* expected);           ///< in any order

/// One of them by a name that means the same in every process, so that files can hold such guards.
struct KeptPredicate {
  std::string_view name;
  GuardPredicate holds;
  /// Whether it can be asked about these objects.
  bool (*fits)(PyObject* value, PyObject* expected);
  bool ofProgram = false;  ///< asks what the program's objects are
  /// What is expected of `value` in this process, where that cannot be written down; null: it can. An empty answer: nothing is.
  PyRef (*expectedNow)(PyObject* value) = nullptr;
  /// What is written down of what is expected, and what is expected in this process of what was written; null: the same. An empty answer: nothing is.
  PyRef (*written)(PyObject* value, PyObject* expected) = nullptr;
  PyRef (*expectedOf)(PyObject* value, PyObject* written) = nullptr;
};
/// Null for all others. `ofProgram`: also those that mean something only where the program is the same.
const KeptPredicate* keptPredicateOf(GuardPredicate holds, PyObject* value, bool ofProgram);
const KeptPredicate* keptPredicateNamed(std::string_view name);

}  // namespace fusebox::capture
