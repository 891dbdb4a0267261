// What a finished entry holds weakly: the program's functions, classes, modules and objects.
#include <unordered_map>

#include "engine/capture/evaluation/deferred_calls.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/guards/guard_tree_op.h"

namespace fusebox::capture {
namespace {

using References = std::unordered_map<PyObject*, std::vector<HeldRef*>>;

/// Objects through which a program's code and data can be reached, and that say when they die.
bool mayLeadToProgram(PyObject* o) {
  if (PyType_Check(o)) return isChangeable(reinterpret_cast<PyTypeObject*>(o));
  if (PyCFunction_Check(o) || PyMethod_Check(o) || PyWeakref_Check(o)) return false;
  if (Py_IS_TYPE(o, &Py_GenericAliasType)) return false;  // made wherever list[int] is written, and gone when nobody reads it any more
  return (PyObject_IS_GC(o) || PyCode_Check(o)) && PyType_SUPPORTS_WEAKREFS(Py_TYPE(o));
}

}  // namespace

void GuardTree::loosen(const std::vector<HeldRef*>& others, PyObject* globals) {
  References references;
  const auto add = [&](HeldRef& reference) {
    if (PyObject* object = reference.get()) references[object].push_back(&reference);
  };
  for (HeldRef* reference : others) add(*reference);
  for (Guard& guard : const_cast<std::vector<Guard>&>(set_->guards())) add(guard.expected);
  for (Source& source : set_->sources().all()) add(source.key);
  set_->sources().release();
  std::unordered_map<PyObject*, PyRef> namespaces;  // by dict: what does not outlive it
  for (auto& [object, held] : references) {
    // Nobody but this entry holds it, or will: made while capturing, or for a capture of another process, it lives for the entry.
    if (!mayLeadToProgram(object) || Py_REFCNT(object) <= static_cast<Py_ssize_t>(held.size()) || isCaller(object)) continue;
    PyRef weak = watch(object);
    if (!weak) continue;
    if (PyFunction_Check(object)) namespaces.emplace(PyFunction_GET_GLOBALS(object), weak);
    if (PyModule_Check(object)) namespaces.emplace(PyModule_GetDict(object), weak);
    for (HeldRef* reference : held) reference->loosen(weak);
  }
  for (auto& [object, held] : references) {
    if (Py_TYPE(object) == &PyMemberDescr_Type || Py_TYPE(object) == &PyGetSetDescr_Type) {
      if (PyRef weak = isChangeable(PyDescr_TYPE(object)) ? watch(reinterpret_cast<PyObject*>(PyDescr_TYPE(object))) : PyRef())
        for (HeldRef* reference : held) reference->loosen(weak);
      continue;
    }
    if (!PyDict_Check(object)) continue;
    const auto owner = namespaces.find(object);
    if (object != globals && owner == namespaces.end()) continue;
    // The frame that runs over its globals holds them.
    for (HeldRef* reference : held) reference->loosen(object == globals ? PyRef() : owner->second);
  }
}

}  // namespace fusebox::capture
