#pragma once

#include "engine/capture/evaluation/evaluation.h"

namespace fusebox::capture {

/// isinstance() and issubclass() in CPython's order. What Python code decides (`__instancecheck__`, `__class__` of a proxy, a
/// class's own `__subclasshook__`) is evaluated; what abstract base classes have registered is guarded. -1: a Python error is set.
int isInstance(Evaluation& e, PyObject* object, PyObject* classes);
int isSubclass(Evaluation& e, PyObject* type, PyObject* classes);

/// Rules of what those two call themselves.
PyRef ruleIsinstance(Evaluation& e, PyObject* callable, const CallArguments& a);
PyRef ruleIssubclass(Evaluation& e, PyObject* callable, const CallArguments& a);
PyRef ruleAbcInstance(Evaluation& e, PyObject* callable, const CallArguments& a);   ///< _abc._abc_instancecheck(class, object)
PyRef ruleAbcSubclass(Evaluation& e, PyObject* callable, const CallArguments& a);   ///< _abc._abc_subclasscheck(class, type)
PyRef ruleTypeInstance(Evaluation& e, PyObject* callable, const CallArguments& a);  ///< type.__instancecheck__
PyRef ruleTypeSubclass(Evaluation& e, PyObject* callable, const CallArguments& a);  ///< type.__subclasscheck__

}  // namespace fusebox::capture
