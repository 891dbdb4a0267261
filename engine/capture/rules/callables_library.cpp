// Functions of C of other libraries, which Python functions of the package stand in for (engine/python/package/_optree.py).
#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/rules/call_rules.h"

namespace fusebox::capture {
namespace {

/// What the package knows of a library's functions; null while the program has not imported the library.
PyObject* tableOf(const char* name) {
  static PyObject* package = nullptr;
  static bool isAsked = false;
  if (!isAsked) {
    static PyObject* const library = PyUnicode_InternFromString("optree._C");
    if (!PyDict_GetItem(PyImport_GetModuleDict(), library)) return nullptr;
    isAsked = true;
    package = PyImport_ImportModule("fusebox._optree");  // kept for good; another version may have other names
    clearError();
  }
  if (!package) return nullptr;
  return torchObject((std::string("fusebox._optree.") + name).c_str());
}

PyRef ruleFollowed(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyObject* function = PyDict_GetItem(tableOf("FOLLOWED"), callable);
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
  PyObject* followed = tableOf("FOLLOWED");
  if (!followed) return nullptr;
  if (PyDict_GetItem(followed, callable)) return ruleFollowed;
  return PySet_Contains(tableOf("AS_IT_IS"), callable) == 1 ? ruleAsConstant : nullptr;
}

}  // namespace fusebox::capture
