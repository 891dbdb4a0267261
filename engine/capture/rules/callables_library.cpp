// Functions of C of other libraries, which Python functions of the package stand in for (engine/python/package/_optree.py).
#include <optional>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/rules/call_rules.h"

namespace fusebox::capture {
namespace {

/// What the package knows of a library's functions.
struct Tables {
  PyObject *followed, *asItIs;  ///< kept for good; null: another version of the library has other names
};

/// Null while the program has not imported the library.
const Tables* tables() {
  static PyObject* const library = PyUnicode_InternFromString("optree._C");
  static std::optional<Tables> known;
  if (!known && PyDict_GetItem(PyImport_GetModuleDict(), library)) {
    const PyRef package = PyRef::steal(PyImport_ImportModule("fusebox._optree"));
    clearError();
    const auto table = [&](const char* name) { return package ? PyObject_GetAttrString(package.get(), name) : nullptr; };
    known = Tables{table("FOLLOWED"), table("AS_IT_IS")};
  }
  return known && known->followed && known->asItIs ? &*known : nullptr;
}

PyRef ruleFollowed(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyObject* function = PyDict_GetItem(tables()->followed, callable);
  e.pin(function, Why::Process);
  return e.call(function, a);
}

/// Called as it is; all that it is given is known, and what it gives is a constant.
PyRef ruleAsConstant(Evaluation& e, PyObject* callable, const CallArguments& a) {
  std::vector<PyRef> keep;
  std::vector<PyObject*> args;
  for (PyObject* given : std::span(a.args.begin(), a.total()))
    args.push_back(keep.emplace_back(isPinned(e.sourceOf(given)) ? PyRef::borrow(given) : e.expose(given)).get());
  PyRef result = PyRef::steal(PyObject_Vectorcall(callable, args.data(), a.positional, a.kwNames));
  if (!result || !PyTuple_CheckExact(result.get())) return result ? e.pin(result.get(), Why::Process) : PyRef();
  PyRef made = PyRef::steal(PyTuple_New(PyTuple_GET_SIZE(result.get())));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result.get()); ++i)
    PyTuple_SET_ITEM(made.get(), i, e.pin(PyTuple_GET_ITEM(result.get(), i), Why::Process).release());
  e.adopt(made.get());
  return made;
}

}  // namespace

CallRule libraryRuleOf(PyObject* callable) {
  if (!PyCFunction_Check(callable) && !PyFunction_Check(callable) && !PyType_Check(callable)) return nullptr;
  const Tables* known = tables();
  if (!known) return nullptr;
  if (PyDict_GetItem(known->followed, callable)) return ruleFollowed;
  return PySet_Contains(known->asItIs, callable) == 1 ? ruleAsConstant : nullptr;
}

}  // namespace fusebox::capture
