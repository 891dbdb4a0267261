#pragma once

#include <Python.h>

#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {

/// Immutable values that are compared, not identified: numbers, str, bytes, None, torch.dtype, device, layout, Size, and tuples
/// and slices of them.
bool isConstantValue(PyObject* object);
/// Objects whose identity is what matters and that are not looked into by value: classes, modules, C functions, code, enum
/// members, operator objects.
bool isIdentityValue(PyObject* object);
/// A torch.Generator that no device draws from by default; the second argument is of no account.
bool isOwnGenerator(PyObject* object, PyObject* = nullptr);
/// Whether operators and comparisons in C of `o`, a tensor, a number or a set, take `other` for what its class derives from.
bool takesOperand(PyObject* o, PyObject* other);
/// A tensor whose elements do not lie in memory by strides, or stand for others: sparse, quantised.
bool isUntraceable(PyObject* o);
/// The object that a builtin method belongs to (`items` of items.append, also of a slot: items.__len__); borrowed, null for
/// anything but a C method that is bound to an instance. A C function may have an object that is none of its arguments (pybind11
/// keeps its record of the function there): such an object's class has no such method.
PyObject* boundSelf(PyObject* callable);
/// The same, quickly, of a callable that is known to be of the kind that boundSelf has answered for.
PyObject* selfOfMethod(PyObject* callable);
/// A class made by a class statement (as opposed to a heap type of a C module).
bool isPythonClass(PyTypeObject* type);
/// Whether attributes of the class, special methods among them, can be set: static C types and the immutable ones of C modules
/// keep theirs, and run no Python code.
inline bool isChangeable(PyTypeObject* type) {
  return (type->tp_flags & Py_TPFLAGS_HEAPTYPE) && !(type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE);
}
/// A set, frozenset or dict of constants: CPython adds its elements to a set by a merge, whose order is another one than that of additions.
bool isMergedAsWhole(PyObject* iterable);
/// Whether going through an iterable may run code of the program (generators, map, classes of its own), which sees what it is going into.
bool runsProgram(PyObject* iterable);
/// What the merge of such a one sees of it now, which nobody changes: a frozenset with the same slots, or a dict of the same keys.
PyRef mergedWhole(PyObject* iterable);
/// The C type that decides an object's layout.
PyTypeObject* builtinBase(PyTypeObject* type);
/// Whether objects of the type are numbers of numpy, which are immutable.
bool isNumpyScalar(PyTypeObject* type);
/// A function or number type of numpy.
bool isNumpyFunction(PyObject* object);
/// Immutable objects beyond the constants that are what their value says: ranges, slices and frozensets of constants, numpy
/// scalars, dates, decimals, and instances of subclasses of int, float, str, …
bool isValueObject(PyObject* object);
/// The same type and value; runs no Python code.
bool sameValue(PyObject* a, PyObject* b);
/// An object with a state of its own that only its C code can look at (an array, a file, a compiled pattern).
bool isOpaque(PyObject* object);
/// The descriptor that binding made a builtin method of, which is not always what the object's class has under that name (super());
/// null when it cannot be found.
PyRef unboundMethod(PyObject* bound);
/// A list of the (key, value) pairs of a dict without calling Python code; an OrderedDict (or a subclass) in its own order, which
/// move_to_end changes.
PyRef itemsInOrder(PyObject* dict);
/// A list of the elements of a list, tuple, set or deque, or of the keys of a dict, as the builtin type gives them, whatever a class of the
/// program says of its instances.
PyRef ownElements(PyObject* container);
/// torch.Tensor, Parameter, Buffer: classes without an own __torch_function__.
bool isPlainTensorClass(PyTypeObject* type);
/// Whether the string `name` is `text`.
inline bool nameIs(PyObject* name, const char* text) { return PyUnicode_CompareWithASCIIString(name, text) == 0; }
/// torch.ops' overloads and packets of them.
bool isTorchOperator(PyObject* object);
/// A torch._ops.OpOverloadPacket, such as torch.ops.aten.add.
bool isOperatorPacket(PyObject* object);
/// A torch.device: equal ones need not be one object.
bool isDeviceObject(PyObject* object);
/// A C base class of torch.Tensor (torch._C.TensorBase).
bool isPlainTensorBase(PyTypeObject* type);
/// A class whose metaclass is enum.EnumMeta or derived.
bool isEnumClass(PyObject* type);
/// torch.nn.Module or a subclass.
bool isModuleClass(PyTypeObject* type);
/// Objects of torch's Python package, looked up once a process ("torch.nn.Module"); borrowed, null when absent.
PyObject* torchObject(const char* dottedName);

/// threading.local and its subclasses that do not look attributes up themselves: each thread has attributes of its own.
bool isThreadLocal(PyTypeObject* type);
/// Whether it is a collections.deque, and no subclass of it.
bool isDeque(PyObject* object);

}  // namespace fusebox::capture
