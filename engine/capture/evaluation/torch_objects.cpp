#include "engine/capture/evaluation/torch_objects.h"

#include <array>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/once.h"
#include "engine/capture/evaluation/value_kinds.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/PyInterpreter.h>
#include <torch/csrc/Size.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/python_symnode.h>

namespace fusebox::capture {

bool isTensorObject(PyObject* object) { return PyObject_TypeCheck(object, tensorType()); }

const at::Tensor& tensorOf(PyObject* object) { return THPVariable_Unpack(object); }

bool asksForSizes(const c10::TensorImpl& impl) {
  struct Asked : c10::TensorImpl {
    static bool of(const c10::TensorImpl& impl) { return (impl.*(&Asked::matches_python_custom))(SizesStridesPolicy::CustomStrides); }
  };
  return Asked::of(impl);
}

PyObject* newTensorObject(const at::Tensor& tensor) { return THPVariable_Wrap(tensor); }

PyTypeObject* tensorType() { return reinterpret_cast<PyTypeObject*>(THPVariableClass); }

PyTypeObject* sizeType() { return &THPSizeType; }

bool isSizeObject(PyObject* object) { return Py_IS_TYPE(object, &THPSizeType); }

bool isSymbolObject(PyObject* object) {
  static Once<std::array<PyObject*, 3>> symbolTypes;
  const auto& types = symbolTypes.get([] {
    return std::array{torch::get_symint_class().ptr(), torch::get_symfloat_class().ptr(), torch::get_symbool_class().ptr()};
  });
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  return type == types[0] || type == types[1] || type == types[2];
}

PyObject* newSymIntObject(const c10::SymInt& value) {
  HANDLE_TH_ERRORS
  return py::cast(value).release().ptr();
  END_HANDLE_TH_ERRORS
}

PyObject* newSymFloatObject(const c10::SymFloat& value) {
  HANDLE_TH_ERRORS
  return torch::get_symfloat_class()(value.toSymNodeImpl()).release().ptr();
  END_HANDLE_TH_ERRORS
}

std::optional<c10::SymInt> symIntOf(PyObject* object) {
  if (!torch::is_symint(object)) return std::nullopt;
  return py::cast<c10::SymInt>(py::handle(object));
}

std::optional<c10::SymFloat> symFloatOf(PyObject* object) {
  if (!torch::is_symfloat(object)) return std::nullopt;
  return py::cast<c10::SymFloat>(py::handle(object));
}

PyObject* symbolConstant(PyObject* object) {
  HANDLE_TH_ERRORS
  if (torch::is_symfloat(object)) return PyFloat_FromDouble(py::cast<c10::SymFloat>(py::handle(object)).guard_float(__FILE__, __LINE__));
  return PyBool_FromLong(py::cast<c10::SymBool>(py::handle(object)).guard_bool(__FILE__, __LINE__));
  END_HANDLE_TH_ERRORS
}

namespace {

constexpr const char* kErrorOnGraphBreak = "_error_on_graph_break";

/// The dict of torch._dynamo.utils, borrowed; null where it is not imported.
PyObject* dynamoUtils() {
  PyObject* modules = PyImport_GetModuleDict();
  PyObject* module = modules ? PyDict_GetItemString(modules, "torch._dynamo.utils") : nullptr;
  return module && PyModule_Check(module) ? PyModule_GetDict(module) : nullptr;
}

}  // namespace

bool errorOnGraphBreak() {
  PyObject* dict = dynamoUtils();
  return dict && PyDict_GetItemString(dict, kErrorOnGraphBreak) == Py_True;
}

void setErrorOnGraphBreak(bool on) {
  if (PyObject* dict = dynamoUtils(); dict && PyDict_SetItemString(dict, kErrorOnGraphBreak, on ? Py_True : Py_False) != 0) clearError();
}

std::optional<c10::Device> defaultDeviceMode() {
  static PyObject* deviceMode = nullptr;
  if (!deviceMode) deviceMode = torchObject("torch.utils._device.DeviceContext");
  for (int64_t i = 0; i < at::impl::PythonTorchFunctionTLS::stack_len(); ++i) {
    PyObject* mode = at::impl::PythonTorchFunctionTLS::get_stack_at(i)->ptr(getPyInterpreter());
    if (reinterpret_cast<PyObject*>(Py_TYPE(mode)) != deviceMode) continue;
    PyRef device = PyRef::steal(PyObject_GetAttrString(mode, "device"));
    if (device && THPDevice_Check(device.get())) return reinterpret_cast<THPDevice*>(device.get())->device;
    clearError();
  }
  return std::nullopt;
}

PyObject* functionModeAt(int64_t index) {
  const bool isThere = index < at::impl::PythonTorchFunctionTLS::stack_len();
  return isThere ? at::impl::PythonTorchFunctionTLS::get_stack_at(index)->ptr(getPyInterpreter()) : nullptr;
}

void pushFunctionMode(PyObject* mode) {
  at::impl::PythonTorchFunctionTLS::push_onto_stack(std::make_shared<c10::SafePyObject>(Py_NewRef(mode), getPyInterpreter()));
}

WithoutCpuMode::WithoutCpuMode() {
  const auto device = defaultDeviceMode();
  if (!device || !device->is_cpu() || at::impl::PythonTorchFunctionTLS::stack_len() != 1) return;
  mode_ = at::impl::PythonTorchFunctionTLS::pop_stack();
}

WithoutCpuMode::~WithoutCpuMode() {
  if (mode_) at::impl::PythonTorchFunctionTLS::push_onto_stack(std::static_pointer_cast<c10::SafePyObject>(mode_));
}

void raiseInPython(std::exception_ptr error) {
  HANDLE_TH_ERRORS
  std::rethrow_exception(error);
  END_HANDLE_TH_ERRORS_RET()
}

bool restorePythonError(std::exception& error) {
  if (auto* raised = dynamic_cast<python_error*>(&error)) return raised->restore(), true;
  if (auto* raised = dynamic_cast<pybind11::error_already_set*>(&error)) return raised->restore(), true;
  return false;
}

}  // namespace fusebox::capture
