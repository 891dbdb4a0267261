#pragma once

#include "engine/capture/evaluation/evaluation.h"

namespace fusebox::capture {

/// A C callable (or a Python function that is not to be interpreted) by dotted name: "builtins.len", "builtins.list.append".
struct RuleRow {
  const char* name;
  CallRule rule;
};
struct RuleRows {
  const RuleRow* first;
  size_t count;
};
RuleRows builtinRules();
RuleRows containerRules();
RuleRows typeRules();
RuleRows iteratorRules();
RuleRows torchRules();
RuleRows outputRules();
RuleRows randomRules();

/// Shared rules.
PyRef rulePure(Evaluation& e, PyObject* callable, const CallArguments& a);    ///< run for real on exposed arguments
PyRef ruleText(Evaluation& e, PyObject* callable, const CallArguments& a);    ///< the same of a method that makes text of them
PyRef ruleOnFloats(Evaluation& e, PyObject* callable, const CallArguments& a);  ///< of a function of numbers
PyRef ruleReordered(Evaluation& e, PyObject* callable, const CallArguments& a);  ///< of a function of Python that is called after the graph
PyRef ruleMutate(Evaluation& e, PyObject* callable, const CallArguments& a);  ///< args[0] changes; others are stored as they are
PyRef ruleDictUpdate(Evaluation& e, PyObject* callable, const CallArguments& a);  ///< dict.update and dict.__init__

/// No filter of a list as warnings.filters turns a warning into an exception; the second argument is of no account.
bool noErrorFilter(PyObject* filters, PyObject*);

/// Of a function or number type of numpy; null for everything else.
CallRule numpyRuleOf(PyObject* callable);
/// Of a function of another library that the package knows.
CallRule libraryRuleOf(PyObject* callable);

/// next() of any iterator, or StopIteration with the value that a generator returns.
PyRef nextOrStop(Evaluation& e, PyObject* iterator);
/// Methods of generators and other lazy iterators; args[0] is the iterator.
PyRef generatorSend(Evaluation& e, PyObject* callable, const CallArguments& a);
PyRef generatorClose(Evaluation& e, PyObject* callable, const CallArguments& a);
PyRef generatorThrow(Evaluation& e, PyObject* callable, const CallArguments& a);
/// The PyMethodDef entries of the lazy iterator type, by which `ruleOf` finds those.
const void* lazyMethod(const char* name);

/// Whether the name of a rule is that of a C slot of any builtin type ("__setattr__"); rules for those get the descriptor.
CallRule slotRuleOf(PyObject* wrapperDescriptor);

}  // namespace fusebox::capture
