#include "engine/capture/evaluation/tensor_subclasses.h"

#include <ATen/PythonTorchFunctionTLS.h>

#include <algorithm>
#include <string_view>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/dispatch_asking.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/function_modes.h"
#include "engine/capture/evaluation/namespaces.h"
#include "engine/capture/evaluation/nested_tensors.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/rules/call_rules.h"
#include "engine/trace/trace_context.h"

extern "C" PyObject* _PyType_Lookup(PyTypeObject*, PyObject*);

namespace fusebox::capture {

namespace {

using at::impl::PythonTorchFunctionTLS;
using at::impl::TorchFunctionDisabledState;

bool classesAreAsked() { return PythonTorchFunctionTLS::get_disabled_state() == TorchFunctionDisabledState::ENABLED; }

enum class ClassKind : uint8_t { Torchs, OwnData, Wrapper, Unknown };

/// The function in Python of a class method; null where there is none. Borrowed.
PyObject* pythonMethodOf(PyTypeObject* type, const char* name) {
  PyObject* method = _PyType_Lookup(type, internedName(name));
  if (!method || !Py_IS_TYPE(method, &PyClassMethod_Type)) return nullptr;
  PyRef function = PyRef::steal(PyObject_GetAttrString(method, "__func__"));
  if (!function) return clearError(), nullptr;
  return PyFunction_Check(function.get()) ? function.get() : nullptr;  // held by the method
}

/// What torch's own classes do beside computing (fake, functional, distributed and nested tensors) belongs to torch.
bool isOfTorch(PyObject* function) {
  PyObject* globals = PyFunction_GET_GLOBALS(function);
  if (!isLibraryNamespace(globals, Library::Torch)) return false;
  PyObject* name = PyDict_GetItemString(globals, "__name__");
  const std::string_view module = name && PyUnicode_Check(name) ? utf8Of(name) : "";
  return module != "torch._tensor" && !module.starts_with("torch.testing.");
}

ClassKind kindOf(PyTypeObject* type) {
  if (type == tensorType() || !PyType_IsSubtype(type, tensorType()) || isPlainTensorClass(type)) return ClassKind::Torchs;
  if (isNestedClass(type)) return ClassKind::Wrapper;
  for (const char* name : {"__torch_function__", "__torch_dispatch__"}) {
    PyObject* method = _PyType_Lookup(type, internedName(name));
    PyObject* function = pythonMethodOf(type, name);
    // torch's switch that turns it off is a function of C.
    if (function ? isOfTorch(function) : !method || !PyCFunction_Check(method)) return ClassKind::Unknown;
  }
  return pythonMethodOf(type, "__torch_dispatch__") ? ClassKind::Wrapper : ClassKind::OwnData;
}

std::string className(PyObject* tensor) { return Py_TYPE(tensor)->tp_name; }

[[noreturn]] void refuse(Evaluation& e, const std::string& what) {
  e.breakHere("tensor subclass", what, "Convert it to a plain torch.Tensor before the compiled region.");
}

/// Attributes that tensors keep themselves, whatever their data are.
bool isMetadata(std::string_view name) {
  static constexpr std::string_view kNames[] = {"device", "dtype", "layout", "shape", "ndim", "nbytes", "itemsize", "requires_grad", "is_leaf", "is_cpu", "is_cuda",
                                                "is_meta", "is_nested", "is_quantized", "is_sparse", "is_sparse_csr", "is_xpu", "is_mps", "is_mkldnn", "is_mtia"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

/// Attributes that are operators.
bool isViewAttribute(std::string_view name) {
  return name == "T" || name == "mT" || name == "H" || name == "mH" || name == "real" || name == "imag" || name == "data";
}

PyRef readMetadata(Evaluation& e, PyObject* tensor, PyObject* descriptor) {
  const std::string_view name = utf8Of(PyDescr_NAME(descriptor));
  const auto read = [&] { return Py_TYPE(descriptor)->tp_descr_get(descriptor, tensor, reinterpret_cast<PyObject*>(Py_TYPE(tensor))); };
  if (isViewAttribute(name)) return dispatched(e, [&] { return e.checked(read()); });
  if (!isMetadata(name)) refuse(e, "attribute " + std::string(name) + " of a tensor of class " + className(tensor) + " is read");
  const ClassesNotAsked off;
  return e.checked(read());
}

/// Methods that tell such attributes.
bool tellsMetadata(std::string_view name) {
  static constexpr std::string_view kNames[] = {"dim", "size", "numel", "nelement", "ndimension", "stride", "is_contiguous", "element_size",
                                                "is_floating_point", "is_complex", "is_signed", "get_device"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

/// The getset descriptor whose `__get__`, `__set__` or `__delete__` a method wrapper is; null for any other callable.
PyObject* propertyOf(PyObject* callable) {
  if (Py_TYPE(callable) != &_PyMethodWrapper_Type) return nullptr;
  PyObject* self = boundSelf(callable);
  return self && Py_IS_TYPE(self, &PyGetSetDescr_Type) ? self : nullptr;
}

/// The arguments of a call that are its classes' to answer.
struct Concerned {
  std::vector<PyObject*> asked;  ///< one of each class with `__torch_function__`, a class before those that it is derived from
  bool hasWrapper = false;

  void note(PyObject* given, int depth = 0) {
    hasWrapper = hasWrapper || isWrapperClass(Py_TYPE(given));
    if (asksItsClass(given)) {
      const auto same = [&](PyObject* t) { return Py_TYPE(t) == Py_TYPE(given); };
      if (std::any_of(asked.begin(), asked.end(), same)) return;
      const auto base = [&](PyObject* t) { return PyType_IsSubtype(Py_TYPE(given), Py_TYPE(t)); };
      asked.insert(std::find_if(asked.begin(), asked.end(), base), given);
    } else if (depth == 0 && (PyTuple_Check(given) || PyList_Check(given))) {
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(given); ++i) note(PySequence_Fast_GET_ITEM(given, i), 1);
    }
  }
  bool any() const { return hasWrapper || !asked.empty(); }
};

/// What `__torch_function__` of the classes makes of a call.
PyRef ask(Evaluation& e, PyObject* function, const std::vector<PyObject*>& tensors, const CallArguments& a) {
  static PyObject* const kName = internedName("__torch_function__");
  PyRef types = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(tensors.size())));
  for (size_t i = 0; i < tensors.size(); ++i) {
    auto* type = reinterpret_cast<PyObject*>(Py_TYPE(tensors[i]));
    PyTuple_SET_ITEM(types.get(), static_cast<Py_ssize_t>(i), PyRef::borrow(type).release());
  }
  PyRef args = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(a.positional))), keywords = a.keywords() ? PyRef::steal(PyDict_New()) : PyRef();
  for (size_t i = 0; i < a.positional; ++i) PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), PyRef::borrow(a.args[i]).release());
  for (size_t i = 0; i < a.keywords(); ++i) PyDict_SetItem(keywords.get(), a.keywordName(i), a.args[a.positional + i]);
  for (PyObject* made : {types.get(), args.get(), keywords.get()})
    if (made) e.adopt(made);
  for (PyObject* tensor : tensors) {
    PyRef method = e.getAttr(reinterpret_cast<PyObject*>(Py_TYPE(tensor)), kName);
    if (!method) return {};
    PyObject* given[] = {function, types.get(), args.get(), keywords.get()};
    PyRef result = e.call(method.get(), given, keywords ? 4 : 3, nullptr);
    if (result.get() != Py_NotImplemented) return result;
  }
  refuse(e, "no class of the arguments answers a function of torch");
}

}  // namespace

ClassesNotAsked::ClassesNotAsked(bool off) : before_(static_cast<int>(PythonTorchFunctionTLS::get_disabled_state())) {
  if (off) PythonTorchFunctionTLS::set_disabled_state(TorchFunctionDisabledState::ALL_DISABLED);
}

ClassesNotAsked::~ClassesNotAsked() { PythonTorchFunctionTLS::set_disabled_state(static_cast<TorchFunctionDisabledState>(before_)); }

bool isWrapperClass(PyTypeObject* type) { return kindOf(type) == ClassKind::Wrapper; }

bool isFollowedClass(PyTypeObject* type) {
  const ClassKind kind = kindOf(type);
  return kind == ClassKind::OwnData || kind == ClassKind::Wrapper;
}

bool asksItsClass(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type == tensorType() || !classesAreAsked() || isNestedClass(type)) return false;
  if (PyType_IsSubtype(type, tensorType()) ? !isFollowedClass(type) : !isPythonClass(type)) return false;
  return pythonMethodOf(type, "__torch_function__") != nullptr;
}

bool answersTorchFunctions(PyObject* object) {
  const ClassKind kind = kindOf(Py_TYPE(object));
  return kind == ClassKind::Wrapper || (kind == ClassKind::OwnData && asksItsClass(object));
}

bool holdsSubclass(PyObject* given) {
  if (answersTorchFunctions(given)) return true;
  for (Py_ssize_t i = 0; (PyTuple_Check(given) || PyList_Check(given)) && i < PySequence_Fast_GET_SIZE(given); ++i)
    if (answersTorchFunctions(PySequence_Fast_GET_ITEM(given, i))) return true;
  return false;
}

void refuseWrapper(Evaluation& e, PyObject* tensor) {
  const at::Tensor& t = tensorOf(tensor);
  if (t.requires_grad() && at::GradMode::is_enabled()) refuse(e, "a tensor of class " + className(tensor) + " that requires a gradient is not followed");
  if (asksForSizes(*t.unsafeGetTensorImpl()) || t.is_nested() || t.unsafeGetTensorImpl()->has_symbolic_sizes_strides())
    refuse(e, "a tensor of class " + className(tensor) + " computes its sizes");
}

bool standsForWrapper(PyObject* object) {
  return isTensorObject(object) && tensorOf(object).unsafeGetTensorImpl()->has_symbolic_sizes_strides() && isWrapperClass(Py_TYPE(object)) && !isNestedTensor(object);
}

PyRef wrapperOfSizes(PyObject* wrapper, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides, const c10::SymInt& offset) {
  // What a class does where a tensor of it dies is for its own.
  if (_PyType_Lookup(Py_TYPE(wrapper), internedName("__del__"))) return {};
  const auto listed = [](c10::SymIntArrayRef numbers) {
    PyRef list = PyRef::steal(PyList_New(0));
    for (const c10::SymInt& n : numbers) PyList_Append(list.get(), PyRef::steal(newSymIntObject(n)).get());
    return list;
  };
  const ClassesNotAsked off;
  const trace::NoTrace untraced;
  static PyObject* const maker = [] {
    PyRef module = PyRef::steal(PyImport_ImportModule("fusebox._wrappers"));
    return PyObject_GetAttrString(module.get(), "of_sizes");
  }();
  PyRef at = PyRef::steal(newSymIntObject(offset));
  PyRef made = PyRef::steal(PyObject_CallFunctionObjArgs(maker, wrapper, listed(sizes).get(), listed(strides).get(), at.get(), nullptr));
  PyRef dict = made ? PyRef::steal(PyObject_GenericGetDict(wrapper, nullptr)) : PyRef();
  if (!dict || PyObject_GenericSetDict(made.get(), dict.get(), nullptr) < 0) return clearError(), PyRef();
  const at::Tensor &standIn = tensorOf(made.get()), &real = tensorOf(wrapper);
  if (standIn.key_set() != real.key_set() || standIn.scalar_type() != real.scalar_type() || standIn.device() != real.device()) return {};
  if (real.has_storage()) standIn.unsafeGetTensorImpl()->set_storage_keep_dtype(real.storage());
  return made;
}

PyRef ofClass(Evaluation& e, PyObject* tensor, PyTypeObject* type, bool detached) {
  static PyObject* const alias = torchObject("torch.ops.aten.alias.default");
  static PyObject* const detach = torchObject("torch.ops.aten.detach.default");
  const bool isPlain = type == tensorType();
  if (!isPlain && (!isFollowedClass(type) || isWrapperClass(type))) refuse(e, std::string("a tensor becomes one of class ") + type->tp_name);
  PyObject* args[] = {tensor};
  const ClassesNotAsked off;
  PyRef made = e.call(detached ? detach : alias, args, 1, nullptr);
  if (!made || isPlain) return made;
  if (!isPlain) e.guardTypeAttribute(type, internedName("__torch_function__"));
  if (PyObject_SetAttrString(made.get(), "__class__", reinterpret_cast<PyObject*>(type)) < 0) {
    clearError();
    refuse(e, std::string("a tensor of the graph cannot be one of class ") + type->tp_name);
  }
  return made;
}

PyRef subclassAttribute(Evaluation& e, PyObject* tensor, PyObject* descriptor) {
  if (!asksItsClass(tensor)) return readMetadata(e, tensor, descriptor);
  // A mode is asked before the classes, and by C code itself.
  if (e.functionModes().isActive()) return e.checked(Py_TYPE(descriptor)->tp_descr_get(descriptor, tensor, reinterpret_cast<PyObject*>(Py_TYPE(tensor))));
  PyRef getter = PyRef::steal(PyObject_GetAttrString(descriptor, "__get__"));
  if (!getter) return {};
  e.pin(getter.get(), Why::Process);
  return ask(e, getter.get(), {tensor}, {&tensor, 1, nullptr});
}

namespace {

/// A function of C that only the dispatcher asks the classes of wrappers for.
PyRef reachDispatcher(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyRef result = dispatched(e, [&] { return e.callReal(callable, a); });
  const auto check = [&](PyObject* made) {
    if (isWrapperClass(Py_TYPE(made)) && tensorOf(made).requires_grad())
      refuse(e, "a tensor of class " + className(made) + " gets a history");
  };
  if (result) check(result.get());
  for (Py_ssize_t i = 0; result && (PyTuple_Check(result.get()) || PyList_Check(result.get())) && i < PySequence_Fast_GET_SIZE(result.get()); ++i)
    check(PySequence_Fast_GET_ITEM(result.get(), i));
  return result;
}

std::string_view nameOfBinding(PyObject* callable) {
  if (PyCFunction_Check(callable)) return reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name;
  if (Py_IS_TYPE(callable, &PyMethodDescr_Type) || Py_IS_TYPE(callable, &PyWrapperDescr_Type)) return utf8Of(PyDescr_NAME(callable));
  return "";
}

/// The methods of torch.Tensor that libtorch's binding names otherwise to a class; of those that Python's operators are, the ones with the same
/// name too.
std::string_view askedAs(std::string_view method) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"__add__", "add"}, {"__radd__", "add"}, {"__sub__", "sub"}, {"__mul__", "mul"}, {"__rmul__", "mul"}, {"__matmul__", "matmul"},
      {"__truediv__", "div"}, {"__mod__", "remainder"}, {"__iadd__", "add_"}, {"__isub__", "sub_"}, {"__imul__", "mul_"},
      {"__ifloordiv__", "floor_divide_"}, {"__imod__", "remainder_"}, {"__lt__", "lt"}, {"__le__", "le"}, {"__gt__", "gt"}, {"__ge__", "ge"},
      {"__ne__", "ne"}, {"__eq__", "__eq__"}, {"__and__", "__and__"}, {"__or__", "__or__"}, {"__xor__", "__xor__"}, {"__lshift__", "__lshift__"},
      {"__rshift__", "__rshift__"}, {"__iand__", "__iand__"}, {"__ior__", "__ior__"}, {"__invert__", "__invert__"}, {"__getitem__", "__getitem__"},
      {"__setitem__", "__setitem__"}, {"__bool__", "__bool__"}, {"nelement", "numel"}, {"ndimension", "dim"}};
  const auto found = std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& entry) { return entry.first == method; });
  return found == std::end(kNames) ? std::string_view() : found->second;
}

}  // namespace

PyRef callOfSubclass(Evaluation& e, PyObject* callable, const CallArguments& a, bool* handled) {
  PyObject* self = PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : nullptr;
  if (self && !isTensorObject(self)) self = nullptr;
  std::vector<PyObject*> all;
  if (self) all.push_back(self);
  all.insert(all.end(), a.args.begin(), a.args.begin() + a.total());
  if (std::any_of(all.begin(), all.end(), holdsNested) && isTorchBinding(callable)) {
    *handled = true;
    return callOfNested(e, callable, nameOfBinding(callable), a, self);
  }
  if (PyObject* descriptor = propertyOf(callable); descriptor && !all.empty() && isFollowedClass(Py_TYPE(all[0]))) {
    *handled = true;
    if (asksItsClass(all[0])) return e.pin(callable, Why::Process), ask(e, callable, {all[0]}, a);
    const PyRef method = PyRef::steal(PyObject_GetAttrString(callable, "__name__"));
    if (!method) return {};
    if (PyUnicode_CompareWithASCIIString(method.get(), "__get__") != 0) {
      const bool sets = PyUnicode_CompareWithASCIIString(method.get(), "__set__") == 0;
      if (all.size() != (sets ? 2u : 1u) || a.keywords() > 0) refuse(e, "an attribute of a tensor of class " + className(all[0]) + " is written with other arguments");
      return e.setAttr(all[0], PyDescr_NAME(descriptor), sets ? all[1] : nullptr) ? PyRef::borrow(Py_None) : PyRef();
    }
    return isWrapperClass(Py_TYPE(all[0])) ? readMetadata(e, all[0], descriptor) : e.getAttr(all[0], PyDescr_NAME(descriptor));
  }
  Concerned concerned;
  for (PyObject* argument : all) concerned.note(argument);
  *handled = concerned.any() && (concerned.asked.empty() || !e.functionModes().isActive());
  if (!*handled) return {};
  const bool isBound = all.size() > a.total();
  PyRef function = PyRef::borrow(callable);
  if (isBound) {
    PyRef name = PyRef::steal(PyUnicode_FromString(reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name));
    function = PyRef::borrow(_PyType_Lookup(Py_TYPE(all[0]), name.get()));
    if (!function) refuse(e, "a method of a tensor of class " + className(all[0]) + " is of unknown origin");
  }
  static PyObject* const neverAsks[] = {torchObject("torch.Tensor.as_subclass"), torchObject("torch.Tensor._make_subclass"), torchObject("torch.tensor"),
                                        torchObject("torch.as_tensor"), torchObject("torch.asarray")};
  const bool asks = std::find(std::begin(neverAsks), std::end(neverAsks), function.get()) == std::end(neverAsks);
  if (!isTorchBinding(function.get()) || !asks) return *handled = false, PyRef();
  const bool isMethod = Py_IS_TYPE(function.get(), &PyMethodDescr_Type) || Py_IS_TYPE(function.get(), &PyWrapperDescr_Type);
  const std::string_view name = isMethod ? utf8Of(PyDescr_NAME(function.get())) : "";
  if (concerned.asked.empty()) {
    if (!isMethod || !tellsMetadata(name)) return reachDispatcher(e, callable, a);
    std::vector<PyRef> plain;
    std::vector<PyObject*> given;
    for (PyObject* argument : all) given.push_back(plain.emplace_back(argument == all[0] ? PyRef::borrow(argument) : e.expose(argument)).get());
    return e.callRaw(function.get(), {given.data(), a.positional + (isBound ? 1 : 0), a.kwNames});
  }
  if (const std::string_view binding = askedAs(name); name.starts_with("__") || !binding.empty()) {
    if (binding.empty()) refuse(e, "an operator reaches a tensor of class " + className(concerned.asked[0]) + " through " + std::string(name));
    function = PyRef::borrow(_PyType_Lookup(tensorType(), internedName(std::string(binding).c_str())));
  }
  e.pin(function.get(), Why::Process);
  return ask(e, function.get(), concerned.asked, {all.data(), a.positional + (isBound ? 1 : 0), a.kwNames});
}

PyRef methodOfSubclass(Evaluation& e, const char* method, std::initializer_list<PyObject*> args) {
  PyObject* function = e.typeLookup(Py_TYPE(*args.begin()), internedName(method));
  if (function && PyFunction_Check(function)) {
    e.pin(function, Why::Class);
    return e.call(function, args.begin(), args.size(), nullptr);
  }
  if (!function) refuseSubclassOperands(e, *args.begin(), *(args.end() - 1));
  return e.call(function, args.begin(), args.size(), nullptr);
}

PyRef operatorOfSubclass(Evaluation& e, const char* forward, const char* reflected, const char* inPlace, PyObject* a, PyObject* b) {
  const bool isOfTensor = isTensorObject(a) && !e.isNumber(a);
  const bool writes = inPlace && isOfTensor && _PyType_Lookup(tensorType(), internedName(inPlace));
  PyRef result = !isOfTensor ? methodOfSubclass(e, reflected, {b, a}) : methodOfSubclass(e, writes ? inPlace : forward, {a, b});
  // What the other operand makes of it, or the error that nobody knows the two, is CPython's.
  if (result.get() == Py_NotImplemented) refuse(e, "an operator is declined by a tensor of class " + className(isOfTensor ? a : b));
  return result;
}

void refuseSubclassOperands(Evaluation& e, PyObject* a, PyObject* b) {
  for (PyObject* operand : {a, b})
    if (operand && answersTorchFunctions(operand)) refuse(e, "an operator of Python reaches a tensor of class " + className(operand));
}

}  // namespace fusebox::capture
