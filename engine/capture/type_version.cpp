#include "engine/capture/guard_tree_op.h"

namespace fusebox::capture {

PyObject* instanceDictOf(PyObject* object) {
  PyObject** slot = _PyObject_GetDictPtr(object);
  if (!slot) return nullptr;
  if (!*slot) {
    // Made on first use, as reading __dict__ would; the object keeps it.
    PyObject* made = PyObject_GenericGetDict(object, nullptr);
    if (!made) return nullptr;
    Py_DECREF(made);
  }
  slot = _PyObject_GetDictPtr(object);
  return slot ? *slot : nullptr;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
uint64_t dictVersion(PyObject* dict) { return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag; }
#pragma GCC diagnostic pop

uint32_t typeVersion(PyTypeObject* type) {
  return type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG ? type->tp_version_tag : 0;
}

uint32_t assignTypeVersion(PyTypeObject* type) {
#if PY_VERSION_HEX >= 0x030C0000
  PyUnstable_Type_AssignVersionTag(type);
#else
  // A look-up through the method cache gives the type its tag.
  static PyObject* name = PyUnicode_InternFromString("__init__");
  _PyType_Lookup(type, name);
#endif
  return typeVersion(type);
}

GuardTree::TypeSnapshot GuardTree::TypeSnapshot::of(PyTypeObject* type) {
  TypeSnapshot s;
  s.version = assignTypeVersion(type);
  s.mro = PyRef::borrow(type->tp_mro);
  for (Py_ssize_t i = 0; type->tp_mro && i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    // Static types cannot be changed.
    if (!(base->tp_flags & Py_TPFLAGS_HEAPTYPE) || (base->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) || !base->tp_dict) continue;
    s.dicts.push_back({PyRef::borrow(base->tp_dict), PyRef::steal(PyDict_Copy(base->tp_dict))});
  }
  return s;
}

bool GuardTree::TypeSnapshot::matches(PyTypeObject* type) const {
  if (type->tp_mro != mro.get()) return false;
  for (const Entry& entry : dicts) {
    if (!entry.copy || PyDict_GET_SIZE(entry.dict.get()) != PyDict_GET_SIZE(entry.copy.get())) return false;
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(entry.copy.get(), &position, &key, &value)) {
      if (!PyUnicode_CheckExact(key)) return false;
      PyObject* now = PyDict_GetItemWithError(entry.dict.get(), key);
      if (now != value) return PyErr_Clear(), false;
    }
  }
  return true;
}

}  // namespace fusebox::capture
