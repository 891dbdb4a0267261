#include "engine/capture/evaluation/namespaces.h"

#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/frame_internals.h"
#include "engine/capture/cpython/py_ref.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/guards/guard_tree_op.h"

namespace fusebox::capture {

namespace {

/// "torch" of "torch.nn.functional"; empty for anything that is no str.
std::string_view package(PyObject* moduleName) {
  const char* text = moduleName && PyUnicode_Check(moduleName) ? utf8Of(moduleName) : nullptr;
  if (!text) clearError();
  const std::string_view name = text ? text : "";
  return name.substr(0, name.find('.'));
}

bool isOf(std::string_view package, Library library) {
  if (library == Library::Torch) return package == "torch";
  static PyObject* const names = PySys_GetObject("stdlib_module_names");
  PyRef name = PyRef::steal(PyUnicode_FromStringAndSize(package.data(), static_cast<Py_ssize_t>(package.size())));
  return package == "typing_extensions" || (names && PySet_Contains(names, name.get()) == 1);
}

bool isOfLibrary(std::string_view package) { return isOf(package, Library::Torch) || isOf(package, Library::Standard); }

bool isSpecialName(PyObject* name) {
  const Py_ssize_t n = PyUnicode_Check(name) ? PyUnicode_GET_LENGTH(name) : 0;
  return n > 4 && PyUnicode_READ_CHAR(name, 0) == '_' && PyUnicode_READ_CHAR(name, 1) == '_' && PyUnicode_READ_CHAR(name, n - 1) == '_' &&
         PyUnicode_READ_CHAR(name, n - 2) == '_';
}

/// The module that a class says it is from.
PyObject* moduleOf(PyTypeObject* type) {
  PyRef dict = typeDict(type);
  return dict ? PyDict_GetItemString(dict.get(), "__module__") : nullptr;
}

/// Whether calling `value` runs nothing but code of torch, the standard library or C.
bool isLibrarys(PyObject* value) {
  static PyObject* const partial = torchObject("functools.partial");
  if (PyFunction_Check(value)) return isOfLibrary(package(PyDict_GetItemString(PyFunction_GET_GLOBALS(value), "__name__")));
  PyTypeObject* type = PyType_Check(value) ? reinterpret_cast<PyTypeObject*>(value) : Py_TYPE(value);
  if (reinterpret_cast<PyObject*>(type) == partial || PyMethod_Check(value)) return false;
  return !isChangeable(type) || isOfLibrary(package(moduleOf(type)));
}

/// What is in a namespace, but for the notes that the interpreter and warnings keep there.
struct Contents {
  uint64_t version = 0;  ///< of the dict, for which it is known to hold this
  PyRef entries;
  bool untouched = true;

  explicit Contents(PyObject* globals) : version(dictVersion(globals)), entries(PyRef::steal(PyDict_New())) {
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(globals, &at, &key, &value);) {
      if (isSpecialName(key)) continue;
      PyDict_SetItem(entries.get(), key, value);
      untouched = untouched && isLibrarys(value);
    }
  }

  bool holds(PyObject* globals) {
    if (dictVersion(globals) == version) return true;
    PyObject *key, *value;
    Py_ssize_t found = 0;
    for (Py_ssize_t at = 0; PyDict_Next(globals, &at, &key, &value);) {
      if (isSpecialName(key)) continue;
      if (PyDict_GetItemWithError(entries.get(), key) != value) return clearError(), false;
      ++found;
    }
    if (found != PyDict_GET_SIZE(entries.get())) return false;
    version = dictVersion(globals);
    return true;
  }
};

Contents* contentsIn(PyObject* capsule) { return static_cast<Contents*>(PyCapsule_GetPointer(capsule, nullptr)); }

/// The last state of each namespace that was asked for; the namespaces are those of a few modules of torch.
PyObject* stateOf(PyObject* globals) {
  static auto* states = new std::unordered_map<PyObject*, PyRef>;
  PyRef& state = (*states)[globals];
  if (!state || !contentsIn(state.get())->holds(globals))
    state = PyRef::steal(PyCapsule_New(new Contents(globals), nullptr, [](PyObject* capsule) { delete contentsIn(capsule); }));
  return state.get();
}

bool findTorchsMethods(PyTypeObject* tensorClass) {
  PyRef base = typeDict(tensorType()->tp_base);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tensorClass->tp_mro); ++i) {
    auto* type = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(tensorClass->tp_mro, i));
    PyRef dict = isChangeable(type) ? typeDict(type) : PyRef();
    PyObject *key, *value;
    for (Py_ssize_t at = 0; dict && PyDict_Next(dict.get(), &at, &key, &value);)
      if ((isSpecialName(key) || PyDict_Contains(base.get(), key) == 1) && !isLibrarys(value)) return false;
  }
  return true;
}

}  // namespace

bool isLibraryNamespace(PyObject* globals, Library library) { return isOf(packageOf(globals), library); }

std::string_view packageOf(PyObject* globals) { return package(PyDict_GetItemString(globals, "__name__")); }

bool isUntouched(PyObject* globals) { return contentsIn(stateOf(globals))->untouched; }

PyObject* namespaceState(PyObject* globals) { return Py_NewRef(stateOf(globals)); }

bool sameNamespace(PyObject* globals, PyObject* state) { return contentsIn(state)->holds(globals); }

bool hasTorchsMethods(PyTypeObject* tensorClass) {
  struct Answer {
    uint32_t version = 0;
    bool value = false;
  };
  static auto* answers = new std::unordered_map<PyTypeObject*, Answer>;
  Answer& a = (*answers)[tensorClass];
  const uint32_t version = typeVersion(tensorClass);
  if (version == 0 || version != a.version) {
    a.value = findTorchsMethods(tensorClass);
    a.version = assignTypeVersion(tensorClass);
  }
  return a.value;
}

}  // namespace fusebox::capture
