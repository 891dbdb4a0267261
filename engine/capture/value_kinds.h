#pragma once

#include <Python.h>

namespace fusebox::capture {

/// Immutable values that are compared, not identified: numbers, str, bytes, None, torch.dtype, device, layout, Size, and tuples
/// and slices of them.
bool isConstantValue(PyObject* object);
/// Objects whose identity is what matters and that are not looked into by value: classes, modules, C functions, code, enum
/// members, operator objects.
bool isIdentityValue(PyObject* object);
/// torch.Tensor, Parameter, Buffer: classes without an own __torch_function__.
bool isPlainTensorClass(PyTypeObject* type);
/// A C base class of torch.Tensor (torch._C.TensorBase).
bool isPlainTensorBase(PyTypeObject* type);
/// A class whose metaclass is enum.EnumMeta or derived.
bool isEnumClass(PyObject* type);
/// torch.nn.Module or a subclass.
bool isModuleClass(PyTypeObject* type);
/// Objects of torch's Python package, looked up once a process ("torch.nn.Module"); borrowed, null when absent.
PyObject* torchObject(const char* dottedName);

}  // namespace fusebox::capture
