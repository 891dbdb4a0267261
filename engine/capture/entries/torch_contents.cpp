#include "engine/capture/entries/torch_contents.h"

#include <string_view>
#include <unordered_set>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/arrays.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {
namespace {

bool isOfTorch(PyObject* name) { return name && PyUnicode_Check(name) && std::string_view(utf8Of(name)).starts_with("torch"); }

class Search {
 public:
  bool finds(PyObject* value) {
    if (!value || PyLong_CheckExact(value) || PyFloat_CheckExact(value) || PyUnicode_CheckExact(value) || PyBytes_CheckExact(value) || PyBool_Check(value) ||
        value == Py_None)
      return false;
    if (!seen_.insert(value).second) return false;
    if (seen_.size() > kMost || isTensorObject(value) || isArray(value) || isArrayScalar(value)) return true;
    if (PyFunction_Check(value)) return isOfTorch(reinterpret_cast<PyFunctionObject*>(value)->func_module);
    if (PyModule_Check(value)) return isOfTorch(PyDict_GetItemString(PyModule_GetDict(value), "__name__"));
    if (PyType_Check(value)) return isClass(reinterpret_cast<PyTypeObject*>(value));
    if (PyCode_Check(value)) return false;
    if (isClass(Py_TYPE(value))) return true;
    return PyObject_IS_GC(value) && Py_TYPE(value)->tp_traverse(value, [](PyObject* held, void* self) -> int { return static_cast<Search*>(self)->finds(held); }, this);
  }

  /// What the code, and the functions and comprehensions inside it, name of `globals`.
  bool findsNamed(PyCodeObject* code, PyObject* globals) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_names); ++i)
      if (finds(PyDict_GetItemWithError(globals, PyTuple_GET_ITEM(code->co_names, i)))) return true;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_consts); ++i)
      if (PyObject* inner = PyTuple_GET_ITEM(code->co_consts, i); PyCode_Check(inner) && findsNamed(reinterpret_cast<PyCodeObject*>(inner), globals)) return true;
    return false;
  }

 private:
  static constexpr size_t kMost = 512;

  bool isClass(PyTypeObject* type) const {
    if (isModuleClass(type)) return true;
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return std::string_view(type->tp_name).starts_with("torch");
    return isOfTorch(PyDict_GetItemString(type->tp_dict, "__module__"));
  }

  std::unordered_set<PyObject*> seen_;
};

}  // namespace

bool holdsTorch(PyObject* object) {
  const bool found = Search().finds(object);
  clearError();
  return found;
}

bool mayComputeWithTorch(const FrameState& state) {
  bool untraceable = false, traceable = false;
  for (const auto* values : {&state.locals, &state.stack})
    for (const PyRef& value : *values)
      if (value && isTensorObject(value.get())) (isUntraceable(value.get()) ? untraceable : traceable) = true;
  if (untraceable && !traceable) return false;
  Search search;
  for (const auto* values : {&state.locals, &state.stack})
    for (const PyRef& value : *values)
      if (search.finds(value.get())) return true;
  clearError();
  return search.findsNamed(state.code, reinterpret_cast<PyFunctionObject*>(state.function.get())->func_globals);
}

}  // namespace fusebox::capture
