#include "engine/capture/evaluation/value_kinds.h"

#include <ATen/Context.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/MemoryFormat.h>

#include <cstring>
#include <string>
#include <unordered_map>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/frame_internals.h"
#include "engine/capture/cpython/once.h"
#include "engine/capture/cpython/py_ref.h"
#include "engine/capture/cpython/set_layout.h"
#include "engine/capture/evaluation/torch_objects.h"

namespace fusebox::capture {

namespace {

/// An attribute as it is now: modules that import what is missing when asked (torch and torch._dynamo, a second or two) are not.
PyRef presentAttribute(PyObject* owner, const std::string& name) {
  if (PyModule_Check(owner)) return PyRef::borrow(PyDict_GetItemString(PyModule_GetDict(owner), name.c_str()));
  return PyRef::steal(PyObject_GetAttrString(owner, name.c_str()));
}

}  // namespace

PyObject* torchObject(const char* dottedName) {
  static auto* cache = new std::unordered_map<std::string, PyObject*>;
  if (auto it = cache->find(dottedName); it != cache->end()) return it->second;
  const std::string full(dottedName);
  PyRef result;
  // The longest prefix that is an imported module, then attributes.
  for (size_t cut = full.rfind('.'); cut != std::string::npos && !result; cut = cut ? full.rfind('.', cut - 1) : std::string::npos) {
    PyRef moduleName = PyRef::steal(PyUnicode_FromString(full.substr(0, cut).c_str()));
    PyRef found = PyRef::steal(PyImport_GetModule(moduleName.get()));
    size_t at = cut;
    while (found && at != std::string::npos) {
      const size_t next = full.find('.', at + 1);
      found = presentAttribute(found.get(), full.substr(at + 1, next == std::string::npos ? next : next - at - 1));
      at = next;
    }
    result = std::move(found);
    clearError();
    if (cut == 0) break;
  }
  // A module that is not imported yet may be later: only remember what was found.
  PyObject* object = result.release();
  if (object) cache->emplace(full, object);
  return object;
}

namespace {

bool isTypeNamed(PyTypeObject* type, const char* dotted, PyTypeObject** slot) {
  if (!*slot) [[unlikely]] *slot = reinterpret_cast<PyTypeObject*>(torchObject(dotted));
  return type == *slot;
}

bool isScalarConstant(PyObject* o) {
  PyTypeObject* t = Py_TYPE(o);
  if (o == Py_None || o == Py_Ellipsis || o == Py_NotImplemented) return true;
  if (t == &PyLong_Type || t == &PyUnicode_Type || t == &PyFloat_Type || t == &PyBool_Type || t == &PyBytes_Type || t == &PyComplex_Type)
    return true;
  return THPDtype_Check(o) || THPDevice_Check(o) || THPLayout_Check(o);
}

}  // namespace

bool isConstantValue(PyObject* o) {
  static PyTypeObject* size = nullptr;
  if (isScalarConstant(o)) return true;
  if (PyTuple_CheckExact(o) || isTypeNamed(Py_TYPE(o), "torch.Size", &size)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
      if (!isConstantValue(PyTuple_GET_ITEM(o, i))) return false;
    return true;
  }
  return false;
}

bool isEnumClass(PyObject* type) {
  static Once<PyObject*> meta;
  PyObject* enumMeta = meta.get([] {
    PyRef module = PyRef::steal(PyImport_ImportModule("enum"));
    return PyObject_GetAttrString(module.get(), "EnumMeta");
  });
  return PyType_IsSubtype(Py_TYPE(type), reinterpret_cast<PyTypeObject*>(enumMeta));
}

PyTypeObject* builtinBase(PyTypeObject* type) {
  while (isPythonClass(type) && type->tp_base) type = type->tp_base;
  return type;
}

bool isPythonClass(PyTypeObject* type) {
  // CPython gives every class of a class statement the same deallocator; C modules give their types one of their own.
  static Once<destructor> ofStatements;
  const destructor deallocator = ofStatements.get([] {
    PyRef enumModule = PyRef::steal(PyImport_ImportModule("enum"));
    PyRef type = PyRef::steal(PyObject_GetAttrString(enumModule.get(), "auto"));
    return reinterpret_cast<PyTypeObject*>(type.get())->tp_dealloc;
  });
  return (type->tp_flags & Py_TPFLAGS_HEAPTYPE) && type->tp_dealloc == deallocator;
}

namespace {

bool isScalarType(PyTypeObject* t) {
  return t == &PyLong_Type || t == &PyUnicode_Type || t == &PyFloat_Type || t == &PyBytes_Type || t == &PyComplex_Type;
}

bool startsWith(const char* text, const char* prefix) { return std::strncmp(text, prefix, std::strlen(prefix)) == 0; }

bool allConstant(PyObject* iterable) {
  PyRef items = PyRef::steal(PySequence_Tuple(iterable));
  return items && isConstantValue(items.get());
}

}  // namespace

bool isMergedAsWhole(PyObject* iterable) {
  return (PyAnySet_CheckExact(iterable) || PyDict_CheckExact(iterable)) && allConstant(iterable);
}

bool runsProgram(PyObject* iterable) {
  static const getiterfunc kPlain[] = {PyList_Type.tp_iter, PyTuple_Type.tp_iter, PyDict_Type.tp_iter, PySet_Type.tp_iter, PyRange_Type.tp_iter,
                                       PyUnicode_Type.tp_iter, PyBytes_Type.tp_iter, PyDictKeys_Type.tp_iter, PyDictValues_Type.tp_iter,
                                       PyDictItems_Type.tp_iter};
  const getiterfunc iterate = Py_TYPE(iterable)->tp_iter;
  return iterate && std::find(std::begin(kPlain), std::end(kPlain), iterate) == std::end(kPlain) && !isTensorObject(iterable);
}

PyRef mergedWhole(PyObject* iterable) {
  if (PyDict_CheckExact(iterable)) return PyRef::steal(PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyDict_Type), "fromkeys", "O", iterable));
  PyRef whole = PyRef::steal(PyFrozenSet_New(nullptr));
  return whole && takeLayout(whole.get(), iterable) ? whole : PyRef();
}

bool isNumpyScalar(PyTypeObject* t) {
  static PyTypeObject* generic = nullptr;
  if (!startsWith(t->tp_name, "numpy.")) return false;
  if (!generic) generic = reinterpret_cast<PyTypeObject*>(torchObject("numpy.generic"));
  return generic && PyType_IsSubtype(t, generic);
}

bool isValueObject(PyObject* o) {
  PyTypeObject* t = Py_TYPE(o);
  if (PyRange_Check(o)) return true;
  if (PySlice_Check(o)) {
    auto* s = reinterpret_cast<PySliceObject*>(o);
    return isConstantValue(s->start) && isConstantValue(s->stop) && isConstantValue(s->step);
  }
  if (t == &PyFrozenSet_Type) return allConstant(o);
  if (isNumpyScalar(t)) return true;
  return isScalarType(builtinBase(t)) || startsWith(t->tp_name, "datetime.") || std::strcmp(t->tp_name, "decimal.Decimal") == 0;
}

bool sameValue(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_Check(a)) {  // bit by bit: -0.0 is not 0.0, and a NaN is itself
    const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  PyTypeObject* base = builtinBase(Py_TYPE(a));
  PyRef equal = base->tp_richcompare ? PyRef::steal(base->tp_richcompare(a, b, Py_EQ)) : PyRef();
  const int answer = equal ? PyObject_IsTrue(equal.get()) : 0;
  clearError();
  return answer == 1;
}

bool isOpaque(PyObject* o) {
  if (isConstantValue(o) || isIdentityValue(o) || isValueObject(o)) return false;
  if (PyFunction_Check(o) || PyMethod_Check(o) || PyCell_Check(o) || PyIter_Check(o) || PySlice_Check(o) || PyExceptionInstance_Check(o))
    return false;
  if (PyTuple_Check(o) || PyList_Check(o) || PyDict_Check(o) || PyAnySet_Check(o) || PyModule_Check(o)) return false;
  PyTypeObject* base = builtinBase(Py_TYPE(o));
  if (base == &PyBaseObject_Type || base == &PySuper_Type || base == &PyDictProxy_Type || base == &PyProperty_Type ||
      base == &PyStaticMethod_Type || base == &PyClassMethod_Type || std::strcmp(base->tp_name, "types.SimpleNamespace") == 0)
    return false;
  if (PyType_IsSubtype(Py_TYPE(o), tensorType())) return false;
  const char* name = base->tp_name;
  return !startsWith(name, "torch.") && !startsWith(name, "functools.") && !startsWith(name, "pybind11");
}

PyRef ownElements(PyObject* container) {
  PyRef iterator = PyRef::steal(builtinBase(Py_TYPE(container))->tp_iter(container));
  return iterator ? PyRef::steal(PySequence_List(iterator.get())) : PyRef();
}

PyRef itemsInOrder(PyObject* dict) {
  if (!PyODict_Check(dict)) return PyRef::steal(PyDict_Items(dict));
  PyRef items = PyRef::steal(PyList_New(0)), iterator = PyRef::steal(PyODict_Type.tp_iter(dict));
  while (PyRef key = PyRef::steal(PyIter_Next(iterator.get()))) {
    PyRef pair = PyRef::steal(PyTuple_Pack(2, key.get(), PyDict_GetItemWithError(dict, key.get())));
    PyList_Append(items.get(), pair.get());
  }
  return items;
}

PyObject* selfOfMethod(PyObject* callable) {
  if (Py_IS_TYPE(callable, &_PyMethodWrapper_Type)) {
    PyObject* self = PyRef::steal(PyObject_GetAttrString(callable, "__self__")).get();
    return self;  // held by the method
  }
  if (!PyCFunction_Check(callable)) return nullptr;
  PyObject* self = PyCFunction_GET_SELF(callable);
  return self && !PyModule_Check(self) && !PyType_Check(self) && !PyCapsule_CheckExact(self) ? self : nullptr;
}

namespace {

/// The descriptor in the classes of `self` that a bound C function is of; borrowed, null without one.
PyObject* descriptorOf(PyObject* function, PyObject* self) {
  PyMethodDef* definition = reinterpret_cast<PyCFunctionObject*>(function)->m_ml;
  PyObject* mro = Py_TYPE(self)->tp_mro;
  for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro); ++i) {
    PyRef dict = typeDict(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i)));
    PyObject* found = dict ? PyDict_GetItemString(dict.get(), definition->ml_name) : nullptr;
    if (found && PyObject_TypeCheck(found, &PyMethodDescr_Type) && reinterpret_cast<PyMethodDescrObject*>(found)->d_method == definition)
      return found;
  }
  return nullptr;
}

}  // namespace

PyObject* boundSelf(PyObject* callable) {
  PyObject* self = selfOfMethod(callable);
  return self && (!PyCFunction_Check(callable) || descriptorOf(callable, self)) ? self : nullptr;
}

PyRef unboundMethod(PyObject* bound) {
  PyObject* found = nullptr;
  if (Py_IS_TYPE(bound, &_PyMethodWrapper_Type)) {
    PyRef owner = PyRef::steal(PyObject_GetAttrString(bound, "__objclass__")), name = PyRef::steal(PyObject_GetAttrString(bound, "__name__"));
    PyRef dict = owner && PyType_Check(owner.get()) ? typeDict(reinterpret_cast<PyTypeObject*>(owner.get())) : PyRef();
    found = dict && name ? PyDict_GetItemWithError(dict.get(), name.get()) : nullptr;
  } else if (PyObject* self = selfOfMethod(bound)) {
    found = descriptorOf(bound, self);
  }
  clearError();
  return PyRef::borrow(found);
}

namespace {

/// numpy's functions: objects of types of its own, each of which computes something else.
bool isFunctionOfNumpy(PyTypeObject* t) {
  return std::strcmp(t->tp_name, "numpy.ufunc") == 0 || std::strcmp(t->tp_name, "numpy._ArrayFunctionDispatcher") == 0;
}

}  // namespace

/// An enumeration of C++ (torch.nn.attention.SDPBackend): its objects are made once with what they hold.
static bool isEnumOfPybind11(PyTypeObject* t) {
  static PyTypeObject* meta = nullptr;
  if (Py_TYPE(t) != meta) {
    if (std::strcmp(Py_TYPE(t)->tp_name, "pybind11_type") != 0) return false;
    meta = Py_TYPE(t);
  }
  return t->tp_dict && PyDict_GetItemString(t->tp_dict, "__entries");
}

bool isNumpyFunction(PyObject* o) {
  return isFunctionOfNumpy(Py_TYPE(o)) || (PyType_Check(o) && isNumpyScalar(reinterpret_cast<PyTypeObject*>(o)));
}

bool takesOperand(PyObject* o, PyObject* other) {
  const bool isReal = PyLong_Check(other) || PyFloat_Check(other);
  if (isTensorObject(o) || PyComplex_Check(o)) return isReal || PyComplex_Check(other);
  if (PyLong_Check(o)) return PyLong_Check(other);
  if (PyFloat_Check(o)) return isReal;
  return PyAnySet_Check(o) && PyAnySet_Check(other);
}

bool isUntraceable(PyObject* o) { return isTensorObject(o) && (tensorOf(o).layout() != at::kStrided || tensorOf(o).is_quantized()); }

bool isIdentityValue(PyObject* o) {
  if (PyType_Check(o) || PyModule_Check(o) || PyCFunction_Check(o) || PyCode_Check(o)) return true;
  PyTypeObject* t = Py_TYPE(o);
  if (t == &PyMethodDescr_Type || t == &PyWrapperDescr_Type || t == &PyClassMethodDescr_Type || t == &PyGetSetDescr_Type ||
      t == &PyMemberDescr_Type || THPMemoryFormat_Check(o))
    return true;
  if (PyWeakref_Check(o) || isTorchOperator(o) || isFunctionOfNumpy(t)) return true;
  static PyTypeObject *generator = nullptr, *pattern = nullptr, *cached = nullptr;
  if (isTypeNamed(t, "torch._C.Generator", &generator) || isTypeNamed(t, "re.Pattern", &pattern) ||
      isTypeNamed(t, "functools._lru_cache_wrapper", &cached))
    return true;
  return isEnumClass(reinterpret_cast<PyObject*>(t)) || isEnumOfPybind11(t);
}

bool isOwnGenerator(PyObject* o, PyObject*) {
  if (!THPGenerator_Check(o)) return false;
  const at::Generator& generator = reinterpret_cast<THPGenerator*>(o)->cdata;
  const bool isKnown = generator.defined() && (generator.device().is_cpu() || generator.device().is_cuda());
  return isKnown && generator != at::globalContext().defaultGenerator(generator.device());
}

bool isOperatorPacket(PyObject* o) {
  static PyTypeObject* packet = nullptr;
  return isTypeNamed(Py_TYPE(o), "torch._ops.OpOverloadPacket", &packet);
}

bool isTorchOperator(PyObject* o) {
  static PyTypeObject* overload = nullptr;
  return isTypeNamed(Py_TYPE(o), "torch._ops.OpOverload", &overload) || isOperatorPacket(o);
}

bool isDeviceObject(PyObject* o) { return THPDevice_Check(o); }

bool isPlainTensorClass(PyTypeObject* type) {
  if (type == tensorType()) return true;
  static PyTypeObject *parameter = nullptr, *buffer = nullptr;
  return isTypeNamed(type, "torch.nn.parameter.Parameter", &parameter) || isTypeNamed(type, "torch.nn.parameter.Buffer", &buffer);
}

bool isThreadLocal(PyTypeObject* type) {
  static const auto* const local = reinterpret_cast<PyTypeObject*>(torchObject("_thread._local"));
  return local && type->tp_getattro == local->tp_getattro;
}

bool isDeque(PyObject* object) {
  static PyObject* const type = torchObject("collections.deque");
  return reinterpret_cast<PyObject*>(Py_TYPE(object)) == type;
}

bool isPlainTensorBase(PyTypeObject* type) {
  return type != &PyBaseObject_Type && PyType_IsSubtype(tensorType(), type);
}

bool isModuleClass(PyTypeObject* type) {
  static PyTypeObject* module = nullptr;
  if (!module) module = reinterpret_cast<PyTypeObject*>(torchObject("torch.nn.modules.module.Module"));
  return module && PyType_IsSubtype(type, module);
}

}  // namespace fusebox::capture
