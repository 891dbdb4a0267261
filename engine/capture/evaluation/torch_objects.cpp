#include "engine/capture/evaluation/torch_objects.h"

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

namespace fusebox::capture {

bool isTensorObject(PyObject* object) { return THPVariable_Check(object); }

const at::Tensor& tensorOf(PyObject* object) { return THPVariable_Unpack(object); }

PyObject* newTensorObject(const at::Tensor& tensor) { return THPVariable_Wrap(tensor); }

PyTypeObject* tensorType() { return reinterpret_cast<PyTypeObject*>(THPVariableClass); }

void raiseInPython(std::exception_ptr error) {
  HANDLE_TH_ERRORS
  std::rethrow_exception(error);
  END_HANDLE_TH_ERRORS_RET()
}

bool restorePythonError(std::exception& error) {
  auto* raised = dynamic_cast<python_error*>(&error);
  if (raised) raised->restore();
  return raised != nullptr;
}

}  // namespace fusebox::capture
