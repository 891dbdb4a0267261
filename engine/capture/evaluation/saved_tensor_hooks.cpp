#include "engine/capture/evaluation/saved_tensor_hooks.h"

#include <Python.h>

#include <ATen/SavedTensorHooks.h>
#include <torch/csrc/PyInterpreter.h>

#include <string_view>

namespace fusebox::capture {
namespace {

bool isTorchs(PyObject* hook) {
  if (PyMethod_Check(hook)) hook = PyMethod_GET_FUNCTION(hook);
  PyObject* module = PyFunction_Check(hook) ? PyFunction_GET_MODULE(hook) : nullptr;
  const char* name = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : nullptr;
  return name && std::string_view(name).starts_with("torch.");
}

}  // namespace

SavedTensorHooks savedTensorHooksSet() {
  if (!at::SavedTensorDefaultHooks::is_enabled()) return SavedTensorHooks::None;
  const auto hooks = at::SavedTensorDefaultHooks::get_hooks();
  if (!hooks) return SavedTensorHooks::None;
  const bool areTorchs = isTorchs(hooks->first.ptr(getPyInterpreter())) && isTorchs(hooks->second.ptr(getPyInterpreter()));
  return areTorchs ? SavedTensorHooks::Torchs : SavedTensorHooks::Programs;
}

}  // namespace fusebox::capture
