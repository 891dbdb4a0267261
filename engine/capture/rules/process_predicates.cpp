#include "engine/capture/rules/process_predicates.h"

#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/rules/state_queries.h"

namespace fusebox::capture {
namespace {

/// A check runs no Python, and asks nothing but questions.
bool isQuestion(PyObject* callable, PyObject* expected) {
  const bool asks = stateQueryOf(callable) || callable == torchObject("torch._C._cuda_getDevice");
  return asks && expected && PyTuple_CheckExact(expected) && PyTuple_GET_SIZE(expected) == 2 && PyTuple_CheckExact(PyTuple_GET_ITEM(expected, 0));
}
bool isClass(PyObject* value, PyObject*) { return PyType_Check(value); }
bool isAnything(PyObject*, PyObject*) { return true; }

constexpr ProcessPredicate kPredicates[] = {
    {"answers", answersAsBefore, isQuestion}, {"underflow", ignoresUnderflow, isAnything}, {"torch's methods", torchsMethods, isClass}};

}  // namespace

const ProcessPredicate* processPredicateOf(GuardPredicate holds, PyObject* value) {
  if (value && value == torchObject("_abc.get_cache_token")) return nullptr;  // counts what the process has registered so far
  for (const ProcessPredicate& predicate : kPredicates)
    if (predicate.holds == holds) return &predicate;
  return nullptr;
}

const ProcessPredicate* processPredicateNamed(std::string_view name) {
  for (const ProcessPredicate& predicate : kPredicates)
    if (predicate.name == name) return &predicate;
  return nullptr;
}

}  // namespace fusebox::capture
