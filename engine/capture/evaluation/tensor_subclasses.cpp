#include "engine/capture/evaluation/tensor_subclasses.h"

#include <ATen/PythonTorchFunctionTLS.h>

#include <algorithm>
#include <string_view>

#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/namespaces.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/rules/call_rules.h"

extern "C" PyObject* _PyType_Lookup(PyTypeObject*, PyObject*);

namespace fusebox::capture {

namespace {

using at::impl::PythonTorchFunctionTLS;
using at::impl::TorchFunctionDisabledState;

bool classesAreAsked() { return PythonTorchFunctionTLS::get_disabled_state() == TorchFunctionDisabledState::ENABLED; }

/// Nobody's class is asked while it lives.
struct ClassesNotAsked {
  TorchFunctionDisabledState before = PythonTorchFunctionTLS::get_disabled_state();
  ClassesNotAsked() { PythonTorchFunctionTLS::set_disabled_state(TorchFunctionDisabledState::ALL_DISABLED); }
  ~ClassesNotAsked() { PythonTorchFunctionTLS::set_disabled_state(before); }
};

/// What a guard compares of a tensor.
struct Metadata {
  std::vector<int64_t> sizes, strides;
  c10::ScalarType type;
  c10::Device device;
  c10::Layout layout;
  uint64_t keys;

  explicit Metadata(const at::Tensor& t)
      : type(t.scalar_type()), device(t.device()), layout(t.layout()), keys(t.key_set().raw_repr()) {
    sizes = t.sizes().vec();
    if (layout == c10::kStrided) strides = t.strides().vec();
  }
  bool operator==(const Metadata&) const = default;
};

constexpr const char* kCapsule = "fusebox.tensor_metadata";

/// Predicate of a Custom guard.
bool hasMetadata(PyObject* object, PyObject* expected) {
  if (!isTensorObject(object) || tensorOf(object).requires_grad() || tensorOf(object).unsafeGetTensorImpl()->has_symbolic_sizes_strides()) return false;
  return Metadata(tensorOf(object)) == *static_cast<const Metadata*>(PyCapsule_GetPointer(expected, kCapsule));
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

PyRef readMetadata(Evaluation& e, PyObject* tensor, PyObject* descriptor) {
  const std::string_view name = PyUnicode_AsUTF8(PyDescr_NAME(descriptor));
  if (!isMetadata(name)) refuse(e, "attribute " + std::string(name) + " of a tensor of class " + className(tensor) + " is read");
  const ClassesNotAsked off;
  return e.checked(Py_TYPE(descriptor)->tp_descr_get(descriptor, tensor, reinterpret_cast<PyObject*>(Py_TYPE(tensor))));
}

/// Methods that tell such attributes.
bool tellsMetadata(std::string_view name) {
  static constexpr std::string_view kNames[] = {"dim", "size", "numel", "nelement", "ndimension", "stride", "is_contiguous", "element_size",
                                                "is_floating_point", "is_complex", "is_signed", "get_device"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

/// The getset descriptor whose `__get__` a method wrapper is; null for any other callable.
PyObject* getterOf(PyObject* callable) {
  if (Py_TYPE(callable) != &_PyMethodWrapper_Type) return nullptr;
  PyObject* self = boundSelf(callable);
  return self && Py_IS_TYPE(self, &PyGetSetDescr_Type) ? self : nullptr;
}

void noteClasses(PyObject* given, std::vector<PyObject*>& tensors, int depth = 0) {
  if (answersTorchFunctions(given)) {
    const auto same = [&](PyObject* t) { return Py_TYPE(t) == Py_TYPE(given); };
    if (std::any_of(tensors.begin(), tensors.end(), same)) return;
    // A class comes before those that it is derived from.
    const auto base = [&](PyObject* t) { return PyType_IsSubtype(Py_TYPE(given), Py_TYPE(t)); };
    tensors.insert(std::find_if(tensors.begin(), tensors.end(), base), given);
  } else if (depth == 0 && (PyTuple_Check(given) || PyList_Check(given))) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(given); ++i) noteClasses(PySequence_Fast_GET_ITEM(given, i), tensors, 1);
  }
}

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

bool answersTorchFunctions(PyObject* object) { return classAnswersTorchFunctions(Py_TYPE(object)); }

bool holdsSubclass(PyObject* given) {
  std::vector<PyObject*> tensors;
  noteClasses(given, tensors);
  return !tensors.empty();
}

bool classAnswersTorchFunctions(PyTypeObject* type) {
  if (type == tensorType() || !PyType_IsSubtype(type, tensorType()) || isPlainTensorClass(type)) return false;
  static PyObject* const kName = internedName("__torch_function__");
  PyObject* method = _PyType_Lookup(type, kName);
  if (!method || !Py_IS_TYPE(method, &PyClassMethod_Type)) return false;
  PyRef function = PyRef::steal(PyObject_GetAttrString(method, "__func__"));
  if (!function || !PyFunction_Check(function.get())) return PyErr_Clear(), false;
  return !isLibraryNamespace(PyFunction_GET_GLOBALS(function.get()), Library::Torch);
}

void guardSubclass(Evaluation& e, PyObject* tensor, const Source* source) {
  const at::Tensor& t = tensorOf(tensor);
  if (t.requires_grad()) refuse(e, "a tensor of class " + className(tensor) + " that requires a gradient is not followed");
  if (t.is_nested() || t.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) refuse(e, "a tensor of class " + className(tensor) + " computes its sizes");
  PyRef expected = PyRef::steal(PyCapsule_New(new Metadata(t), kCapsule, [](PyObject* capsule) {
    delete static_cast<Metadata*>(PyCapsule_GetPointer(capsule, kCapsule));
  }));
  e.guardCustom(source, hasMetadata, expected.get(), "sizes, type and device of a tensor subclass");
}

PyRef subclassAttribute(Evaluation& e, PyObject* tensor, PyObject* descriptor) {
  if (!classesAreAsked()) return readMetadata(e, tensor, descriptor);
  PyRef getter = PyRef::steal(PyObject_GetAttrString(descriptor, "__get__"));
  if (!getter) return {};
  e.pin(getter.get(), Why::Process);
  return ask(e, getter.get(), {tensor}, {&tensor, 1, nullptr});
}

PyRef callOfSubclass(Evaluation& e, PyObject* callable, const CallArguments& a, bool* handled) {
  PyObject* self = PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : nullptr;
  if (self && !isTensorObject(self)) self = nullptr;
  std::vector<PyObject*> all, tensors;
  if (self) noteClasses(self, tensors);
  for (size_t i = 0; i < a.total(); ++i) noteClasses(a.args[i], tensors);
  *handled = !tensors.empty();
  if (!*handled) return {};
  if (self) all.push_back(self);
  all.insert(all.end(), a.args.begin(), a.args.begin() + a.total());
  if (PyObject* descriptor = getterOf(callable)) return readMetadata(e, all[0], descriptor);
  const bool isBound = all.size() > a.total();
  PyRef function = PyRef::borrow(callable);
  if (isBound) {
    PyRef name = PyRef::steal(PyUnicode_FromString(reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name));
    function = PyRef::borrow(_PyType_Lookup(Py_TYPE(all[0]), name.get()));
    if (!function) refuse(e, "a method of a tensor of class " + className(all[0]) + " is of unknown origin");
  }
  if (!isTorchBinding(function.get())) return *handled = false, PyRef();
  const bool isMethod = Py_IS_TYPE(function.get(), &PyMethodDescr_Type) || Py_IS_TYPE(function.get(), &PyWrapperDescr_Type);
  const std::string_view name = isMethod ? PyUnicode_AsUTF8(PyDescr_NAME(function.get())) : "";
  if (!classesAreAsked() && isMethod && tellsMetadata(name)) {
    std::vector<PyRef> plain;
    std::vector<PyObject*> given;
    for (PyObject* argument : all) given.push_back(plain.emplace_back(argument == all[0] ? PyRef::borrow(argument) : e.expose(argument)).get());
    return e.callRaw(function.get(), {given.data(), a.positional + (isBound ? 1 : 0), a.kwNames});
  }
  if (!classesAreAsked() || name.starts_with("__"))
    refuse(e, "an operator reaches a tensor of class " + className(tensors[0]) + (name.empty() ? "" : " through " + std::string(name)));
  e.pin(function.get(), Why::Process);
  return ask(e, function.get(), tensors, {all.data(), a.positional + (isBound ? 1 : 0), a.kwNames});
}

PyRef operatorOfSubclass(Evaluation& e, const char* method, PyObject* a, PyObject* b) {
  // The methods of torch.Tensor that its operators are, as libtorch's binding names them to the class.
  static constexpr std::pair<std::string_view, const char*> kNames[] = {{"__add__", "add"}, {"__sub__", "sub"}, {"__mul__", "mul"}, {"__matmul__", "matmul"}, {"__truediv__", "div"}};
  const auto found = std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& entry) { return entry.first == method; });
  const bool isReflected = !isTensorObject(a);
  const bool isKnown = found != std::end(kNames) && (!isReflected || found->first == "__add__" || found->first == "__mul__");
  if (!isKnown || !classesAreAsked()) refuseSubclassOperands(e, a, b);
  PyObject* function = _PyType_Lookup(tensorType(), internedName(found->second));
  PyObject* args[] = {isReflected ? b : a, isReflected ? a : b};
  bool handled = false;
  PyRef result = callOfSubclass(e, function, {args, 2, nullptr}, &handled);
  if (!handled) refuseSubclassOperands(e, a, b);
  return result;
}

void refuseSubclassOperands(Evaluation& e, PyObject* a, PyObject* b) {
  for (PyObject* operand : {a, b})
    if (operand && answersTorchFunctions(operand)) refuse(e, "an operator of Python reaches a tensor of class " + className(operand));
}

}  // namespace fusebox::capture
