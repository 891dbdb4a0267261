#include "engine/capture/evaluation/fresh_contents.h"

#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {

namespace {

int collect(PyObject* part, void* into) {
  static_cast<std::vector<PyRef>*>(into)->push_back(PyRef::borrow(part));
  return 0;
}

/// What it refers to, in its order. An instance's dict is asked for, so that it is there before and after.
std::vector<PyRef> contents(PyObject* object) {
  std::vector<PyRef> parts;
  Py_TYPE(object)->tp_traverse(object, collect, &parts);
  if (PyObject** dict = isPythonClass(Py_TYPE(object)) ? _PyObject_GetDictPtr(object) : nullptr; dict && *dict)
    PyDict_Type.tp_traverse(*dict, collect, &parts);
  return parts;
}

bool isContainer(PyObject* o) {
  return PyList_Check(o) || PyDict_Check(o) || PyAnySet_Check(o) || PyCell_Check(o) || isDeque(o) || isPythonClass(Py_TYPE(o));
}

}  // namespace

FreshContents::FreshContents(Evaluation& evaluation) {
  for (const auto& [object, origin] : evaluation.origins().all()) {
    if (!origin.fresh() || isTensorObject(object) || PyType_Check(object) || !isContainer(object) || !PyObject_IS_GC(object)) continue;
    if (isPythonClass(Py_TYPE(object)) && !PyRef::steal(PyObject_GenericGetDict(object, nullptr))) clearError();
    held_.emplace_back(PyRef::borrow(object), contents(object));
  }
}

bool FreshContents::changed() const {
  for (const auto& [object, before] : held_) {
    const std::vector<PyRef> now = contents(object.get());
    if (now.size() != before.size()) return true;
    for (size_t i = 0; i < now.size(); ++i)
      if (now[i].get() != before[i].get()) return true;
  }
  return false;
}

}  // namespace fusebox::capture
