#include "engine/capture/guards/guard_tree_op.h"
#include "engine/capture/evaluation/value_kinds.h"

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

GuardTree::TypeSnapshot GuardTree::TypeSnapshot::of(PyTypeObject* type, const std::unordered_set<PyObject*>& names) {
  TypeSnapshot s;
  s.names = names;
  s.version = assignTypeVersion(type);
  s.mro = PyRef::borrow(type->tp_mro);
  for (Py_ssize_t i = 0; type->tp_mro && i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    if (!isChangeable(base) || !base->tp_dict) continue;
    PyRef copy = PyRef::steal(PyDict_New());
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (copy && PyDict_Next(base->tp_dict, &position, &key, &value))
      if (s.isRelevant(key)) PyDict_SetItem(copy.get(), key, value);
    s.dicts.push_back({PyRef::borrow(base->tp_dict), std::move(copy)});
  }
  return s;
}

bool GuardTree::TypeSnapshot::matches(PyTypeObject* type) const {
  if (type->tp_mro != mro.get()) return false;
  for (const Entry& entry : dicts) {
    if (!entry.copy) return false;
    Py_ssize_t position = 0, found = 0;
    PyObject *key, *value;
    while (PyDict_Next(entry.dict.get(), &position, &key, &value)) {
      if (!isRelevant(key)) continue;
      if (!PyUnicode_CheckExact(key)) return false;
      if (PyDict_GetItemWithError(entry.copy.get(), key) != value) return PyErr_Clear(), false;
      ++found;
    }
    if (found != PyDict_GET_SIZE(entry.copy.get())) return false;
  }
  return true;
}

bool GuardTree::TypeSnapshot::isRelevant(PyObject* key) const {
  if (names.empty() || !PyUnicode_CheckExact(key) || !PyUnicode_CHECK_INTERNED(key) || names.count(key)) return true;
  const Py_ssize_t length = PyUnicode_GET_LENGTH(key);  // CPython looks special methods up itself
  return length > 4 && PyUnicode_READ_CHAR(key, 0) == '_' && PyUnicode_READ_CHAR(key, 1) == '_' &&
         PyUnicode_READ_CHAR(key, length - 1) == '_' && PyUnicode_READ_CHAR(key, length - 2) == '_';
}

}  // namespace fusebox::capture
