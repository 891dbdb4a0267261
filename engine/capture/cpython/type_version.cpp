#include "engine/capture/cpython/errors.h"
#include "engine/capture/guards/guard_tree_op.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {

PyObject* instanceDictOf(PyObject* object) {
  if (isThreadLocal(Py_TYPE(object))) {
    // This thread's, made on first use; the thread keeps it.
    PyObject* dict = PyObject_GetAttrString(object, "__dict__");
    Py_XDECREF(dict);
    return dict;
  }
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

namespace {

/// A C object that Python code is wrapped in: it says nothing when it dies, so that it is known by its address and by what it holds.
const char* const* partsOfWrapper(PyObject* o) {
  static constexpr const char* kProperty[] = {"fget", "fset", "fdel", nullptr};
  static constexpr const char* kMethod[] = {"__func__", nullptr};
  static constexpr const char* kNone[] = {nullptr};
  if (Py_TYPE(o) == &PyProperty_Type) return kProperty;
  if (Py_TYPE(o) == &PyStaticMethod_Type || Py_TYPE(o) == &PyClassMethod_Type) return kMethod;
  return Py_TYPE(o) == &PyMemberDescr_Type || Py_TYPE(o) == &PyGetSetDescr_Type ? kNone : nullptr;
}

/// An attribute of a class as the snapshot keeps it: (object,), (weak reference, None), (address, type, parts in that form), or () for any number.
PyRef heldForm(PyObject* value) {
  if (const char* const* name = partsOfWrapper(value)) {
    PyRef parts = PyRef::steal(PyList_New(0)), address = PyRef::steal(PyLong_FromVoidPtr(value));
    for (; parts && *name; ++name) {
      PyRef part = PyRef::steal(PyObject_GetAttrString(value, *name)), held = part ? heldForm(part.get()) : PyRef();
      if (!held || PyList_Append(parts.get(), held.get()) < 0) return clearError(), PyRef();
    }
    return PyRef::steal(PyTuple_Pack(3, address.get(), reinterpret_cast<PyObject*>(Py_TYPE(value)), parts.get()));
  }
  if (PyObject_IS_GC(value) && PyType_SUPPORTS_WEAKREFS(Py_TYPE(value))) {
    if (PyRef weak = PyRef::steal(PyWeakref_NewRef(value, nullptr))) return PyRef::steal(PyTuple_Pack(2, weak.get(), Py_None));
    clearError();
  }
  return PyRef::steal(PyTuple_Pack(1, value));
}

bool isPlainNumber(PyObject* value) { return PyLong_CheckExact(value) || PyFloat_CheckExact(value); }

bool isHeldForm(PyObject* held, PyObject* value) {
  if (PyTuple_GET_SIZE(held) == 0) return isPlainNumber(value);
  if (PyTuple_GET_SIZE(held) == 1) return PyTuple_GET_ITEM(held, 0) == value;
  if (PyTuple_GET_SIZE(held) == 2) return PyWeakref_GET_OBJECT(PyTuple_GET_ITEM(held, 0)) == value;
  if (PyLong_AsVoidPtr(PyTuple_GET_ITEM(held, 0)) != value || PyTuple_GET_ITEM(held, 1) != reinterpret_cast<PyObject*>(Py_TYPE(value)))
    return false;
  PyObject* parts = PyTuple_GET_ITEM(held, 2);
  const char* const* name = partsOfWrapper(value);
  for (Py_ssize_t i = 0; name && name[i] && i < PyList_GET_SIZE(parts); ++i) {
    PyRef part = PyRef::steal(PyObject_GetAttrString(value, name[i]));
    if (!part || !isHeldForm(PyList_GET_ITEM(parts, i), part.get())) return clearError(), false;
  }
  return true;
}

}  // namespace

GuardTree::TypeSnapshot GuardTree::TypeSnapshot::of(PyTypeObject* type, const GuardSet& set) {
  TypeSnapshot s;
  const std::unordered_set<PyObject*>& names = set.attributesOf(type);
  s.ordered = names.count(nullptr) > 0;
  if (!s.ordered) {
    s.names = names;
    s.numbers = set.numbersOf(type);
  }
  s.version = assignTypeVersion(type);
  for (Py_ssize_t i = 0; type->tp_mro && i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    s.mro.push_back(reinterpret_cast<PyObject*>(base));
    if (!isChangeable(base) || !base->tp_dict) continue;
    PyRef copy = PyRef::steal(PyDict_New());
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (copy && PyDict_Next(base->tp_dict, &position, &key, &value))
      if (PyRef held = s.isRelevant(key) ? s.heldAs(key, value) : PyRef()) PyDict_SetItem(copy.get(), key, held.get());
    s.dicts.push_back({i, std::move(copy)});
  }
  return s;
}

PyRef GuardTree::TypeSnapshot::heldAs(PyObject* key, PyObject* value) const {
  return numbers.count(key) && isPlainNumber(value) ? PyRef::steal(PyTuple_New(0)) : heldForm(value);
}

bool GuardTree::TypeSnapshot::matches(PyTypeObject* type) const {
  if (!type->tp_mro || PyTuple_GET_SIZE(type->tp_mro) != static_cast<Py_ssize_t>(mro.size())) return false;
  for (size_t i = 0; i < mro.size(); ++i)
    if (PyTuple_GET_ITEM(type->tp_mro, static_cast<Py_ssize_t>(i)) != mro[i]) return false;
  for (const Entry& entry : dicts) {
    if (!entry.copy) return false;
    PyObject* dict = reinterpret_cast<PyTypeObject*>(mro[static_cast<size_t>(entry.position)])->tp_dict;
    Py_ssize_t position = 0, found = 0, inCopy = 0;
    PyObject *key, *value;
    while (PyDict_Next(dict, &position, &key, &value)) {
      if (!isRelevant(key)) continue;
      if (!PyUnicode_CheckExact(key)) return false;
      PyObject *keyThen = nullptr, *held = nullptr;
      if (ordered && (!PyDict_Next(entry.copy.get(), &inCopy, &keyThen, &held) || keyThen != key)) return false;
      if (!ordered) held = PyDict_GetItemWithError(entry.copy.get(), key);
      if (!held || !isHeldForm(held, value)) return clearError(), false;
      ++found;
    }
    if (found != PyDict_GET_SIZE(entry.copy.get())) return false;
  }
  return true;
}

bool GuardTree::TypeSnapshot::isRelevant(PyObject* key) const {
  if (names.empty() || !PyUnicode_CheckExact(key) || !PyUnicode_CHECK_INTERNED(key) || names.count(key)) return true;
  static PyObject* const kCopied = PyUnicode_InternFromString("__slotnames__");
  if (key == kCopied) return false;  // copyreg notes there, with the first copy of an instance, what the class always had
  const Py_ssize_t length = PyUnicode_GET_LENGTH(key);  // CPython looks special methods up itself
  return length > 4 && PyUnicode_READ_CHAR(key, 0) == '_' && PyUnicode_READ_CHAR(key, 1) == '_' &&
         PyUnicode_READ_CHAR(key, length - 1) == '_' && PyUnicode_READ_CHAR(key, length - 2) == '_';
}

}  // namespace fusebox::capture
