// What a finished entry holds weakly: the program's functions, classes, modules and objects.
#include <algorithm>
#include <span>
#include <unordered_map>

#include "engine/capture/evaluation/deferred_calls.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/guards/guard_tree_op.h"

namespace fusebox::capture {
namespace {

/// Sorted by object before it is looked at: a map of lists would be two allocations for each.
using References = std::vector<std::pair<PyObject*, HeldRef*>>;

/// `visit(object, references)` for each object.
template <class Visit>
void forEachObject(const References& references, Visit&& visit) {
  for (size_t i = 0, end = 0; i < references.size(); i = end) {
    while (end < references.size() && references[end].first == references[i].first) ++end;
    visit(references[i].first, std::span(references).subspan(i, end - i));
  }
}

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
    if (PyObject* object = reference.get()) references.emplace_back(object, &reference);
  };
  for (HeldRef* reference : others) add(*reference);
  for (Guard& guard : const_cast<std::vector<Guard>&>(set_->guards())) add(guard.expected);
  for (Source& source : set_->sources().all()) add(source.key);
  set_->sources().release();
  std::sort(references.begin(), references.end());
  std::unordered_map<PyObject*, PyRef> namespaces;  // by dict: what does not outlive it
  forEachObject(references, [&](PyObject* object, auto held) {
    // Nobody but this entry holds it, or will: made while capturing, or for a capture of another process, it lives for the entry.
    if (!mayLeadToProgram(object) || Py_REFCNT(object) <= static_cast<Py_ssize_t>(held.size()) || isCaller(object)) return;
    PyRef weak = watch(object);
    if (!weak) return;
    if (PyFunction_Check(object)) namespaces.emplace(PyFunction_GET_GLOBALS(object), weak);
    if (PyModule_Check(object)) namespaces.emplace(PyModule_GetDict(object), weak);
    for (const auto& [same, reference] : held) reference->loosen(weak);
  });
  forEachObject(references, [&](PyObject* object, auto held) {
    if (Py_TYPE(object) == &PyMemberDescr_Type || Py_TYPE(object) == &PyGetSetDescr_Type) {
      if (PyRef weak = isChangeable(PyDescr_TYPE(object)) ? watch(reinterpret_cast<PyObject*>(PyDescr_TYPE(object))) : PyRef())
        for (const auto& [same, reference] : held) reference->loosen(weak);
      return;
    }
    if (!PyDict_Check(object)) return;
    const auto owner = namespaces.find(object);
    if (object != globals && owner == namespaces.end()) return;
    // The frame that runs over its globals holds them.
    for (const auto& [same, reference] : held) reference->loosen(object == globals ? PyRef() : owner->second);
  });
}

}  // namespace fusebox::capture
