#include "engine/capture/rules/kept_predicates.h"

#include "engine/capture/evaluation/arrays.h"
#include "engine/capture/evaluation/cached_calls.h"
#include "engine/capture/evaluation/namespaces.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/rules/call_rules.h"
#include "engine/capture/rules/state_queries.h"

namespace fusebox::capture {

bool handlesNothing(PyObject*, PyObject*) {
  const PyRef handled = PyRef::steal(PyErr_GetHandledException());
  return !handled || handled.get() == Py_None;
}

namespace {

/// A check runs no Python, and asks nothing but questions.
bool isQuestion(PyObject* callable, PyObject* expected) {
  const bool asks = stateQueryOf(callable) || callable == torchObject("torch._C._cuda_getDevice") || callable == torchObject("_abc.get_cache_token") ||
                    callable == torchObject("sys.getrecursionlimit");
  return asks && expected && PyTuple_CheckExact(expected) && PyTuple_GET_SIZE(expected) == 2 && PyTuple_CheckExact(PyTuple_GET_ITEM(expected, 0));
}
bool isClass(PyObject* value, PyObject*) { return PyType_Check(value); }
bool isAnything(PyObject*, PyObject*) { return true; }

bool isTuple(PyObject*, PyObject* expected) { return expected && PyTuple_CheckExact(expected); }
bool isFunction(PyObject* value, PyObject*) { return PyFunction_Check(value); }
bool isNamespace(PyObject* value, PyObject*) { return PyDict_Check(value); }
bool isThere(PyObject*, PyObject* expected) { return expected; }

/// A digest of the function tells whether they are those that it had.
PyRef defaultsNow(PyObject* function) { return PyRef::borrow(PyFunction_GET_DEFAULTS(function)); }
PyRef namespaceNow(PyObject* globals) { return isUntouched(globals) ? PyRef::steal(namespaceState(globals)) : PyRef(); }

constexpr KeptPredicate kPredicates[] = {
    {"answers", answersAsBefore, isQuestion},
    {"underflow", ignoresUnderflow, isAnything},
    {"torch's methods", torchsMethods, isClass},
    {"no exception", handlesNothing, isAnything, true},
    {"no filter that raises", noErrorFilter, isAnything, true},
    {"set contents", sameSetContents, isTuple, true},
    {"set elements", sameSetElements, isTuple, true},
    {"value", sameValue, isThere, true},
    {"array to write to", writeableOfType, isThere, true},
    {"array to read", readOnlyOfType, isThere, true},
    {"defaults", sameDefaults, isFunction, true, defaultsNow},
    {"namespace", sameNamespace, isNamespace, true, namespaceNow},
    {"remembered", stillCached, isCached, true, nullptr, writtenOfCached, expectedOfCached},
};

}  // namespace

const KeptPredicate* keptPredicateOf(GuardPredicate holds, PyObject* value, bool ofProgram) {
  // Counts what the process has registered so far.
  if (!ofProgram && value && value == torchObject("_abc.get_cache_token")) return nullptr;
  for (const KeptPredicate& predicate : kPredicates)
    if (predicate.holds == holds) return ofProgram || !predicate.ofProgram ? &predicate : nullptr;
  return nullptr;
}

const KeptPredicate* keptPredicateNamed(std::string_view name) {
  for (const KeptPredicate& predicate : kPredicates)
    if (predicate.name == name) return &predicate;
  return nullptr;
}

}  // namespace fusebox::capture
