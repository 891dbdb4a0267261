#include "engine/capture/evaluation/compiling_flag.h"

#include "engine/capture/cpython/once.h"
#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {
namespace {

int captures = 0;
PyObject* before = nullptr;  ///< what it was when nothing was captured; owned

PyObject* flagDict() {
  static Once<PyObject*> module;
  return PyModule_GetDict(module.get([] { return PyImport_ImportModule("torch.compiler"); }));
}

void set(PyObject* value) { PyDict_SetItem(flagDict(), internedName("_is_compiling_flag"), value); }

}  // namespace

CompilingFlag::CompilingFlag() {
  PyObject* dict = flagDict();  // imports, so that other threads may come here
  if (captures++ == 0) before = Py_XNewRef(PyDict_GetItem(dict, internedName("_is_compiling_flag")));
  set(Py_True);
}

CompilingFlag::~CompilingFlag() {
  if (--captures > 0 || !before) return;
  set(before);
  Py_CLEAR(before);
}

NotCompiling::NotCompiling() { set(Py_False); }
NotCompiling::~NotCompiling() {
  if (captures > 0) set(Py_True);
}

}  // namespace fusebox::capture
