// Attributes of tensors: what a stand-in knows, what belongs to the real tensor, and what only a tensor that exists can tell.
#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/exchanged_data.h"
#include "engine/capture/evaluation/function_modes.h"
#include "engine/capture/evaluation/namespaces.h"
#include "engine/capture/evaluation/tensor_subclasses.h"
#include "engine/capture/evaluation/torch_calls.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/trace/transform_levels.h"

namespace fusebox::capture {

namespace {

/// C attributes that a stand-in answers as its tensor does: what a TENSOR_MATCH guard compares, and views.
constexpr const char* kOfStandIn[] = {
    "H", "T", "mH", "mT", "real", "imag", "device", "dtype", "layout", "shape", "ndim", "nbytes", "itemsize", "names", "requires_grad",
    "is_leaf", "is_cpu", "is_cuda", "is_ipu", "is_maia", "is_meta", "is_mkldnn", "is_mps", "is_mtia", "is_nested", "is_quantized",
    "is_sparse", "is_sparse_csr", "is_vulkan", "is_xla", "is_xpu", "_has_symbolic_sizes_strides", "data", "grad", "__class__", "__weakref__"};

bool isOfStandIn(PyObject* name) {
  for (const char* known : kOfStandIn)
    if (nameIs(name, known)) return true;
  return false;
}

bool isTorchsProperty(PyObject* attribute) {
  PyRef getter = Py_IS_TYPE(attribute, &PyProperty_Type) ? PyRef::steal(PyObject_GetAttrString(attribute, "fget")) : PyRef();
  return getter && PyFunction_Check(getter.get()) && isLibraryNamespace(PyFunction_GET_GLOBALS(getter.get()), Library::Torch);
}

}  // namespace

PyRef Evaluation::ownTensorAttribute(PyObject* object, PyObject* name) {
  Origin* origin = origins_.find(object);
  PyRef own = PyRef::steal(PyObject_GetAttrString(object, "__dict__"));
  if (own && PyDict_Check(own.get()))
    if (PyObject* set = PyDict_GetItemWithError(own.get(), name)) return PyRef::borrow(set);
  if (origin && origin->source && origin->twin) {
    PyRef dict = instanceDict(origin->twin.get());
    if (dict) {
      PyRef value = readDict(dict.get(), name);
      if (value) return value;
    }
  }
  clearError();
  return {};
}

/// How often eager has written to the tensor: an input's count where the segment begins, and the writes since then, which stand-ins count as eager does. Null: a
/// view of an input that has a count of its own.
PyRef Evaluation::versionOf(PyObject* tensor) {
  const at::Tensor& t = tensorOf(tensor);
  const Origin* origin = origins_.find(tensor);
  const PyRef written = PyRef::steal(PyLong_FromLongLong(static_cast<long long>(t._version())));
  if (origin && origin->source && origin->twin && isTensorObject(origin->twin.get())) {
    const ClassesNotAsked off;
    PyRef before = PyRef::steal(PyObject_GetAttrString(origin->twin.get(), "_version"));
    if (!before || exchangedData_->has(tensor)) return {};
    before = wrap(before.get(), sources().slotAttr(origin->source, internedName("_version")));
    constexpr int kAdd = 0;
    return before && t._version() > 0 ? binary(kAdd, before.get(), written.get()) : before;
  }
  for (const auto& input : trace_->inputs())
    if (input.standIn.is_alias_of(t)) return {};
  return written;
}

PyRef Evaluation::hiddenTensorAttribute(PyObject* object, PyObject* name) {
  Origin* origin = origins_.find(object);
  const bool input = origin && origin->source && origin->twin;
  const at::Tensor& t = tensorOf(object);
  if (input && nameIs(name, "__dict__")) {
    return instanceDict(origin->twin.get());
  }
  if (nameIs(name, "__dict__")) return checked(PyObject_GetAttr(object, name));
  // A tensor that is not differentiated, or a leaf, has none of these; both are guarded.
  if (!t.requires_grad() || t.is_leaf()) {
    // Of a view made under no_grad whose base was written since, libtorch refuses to say.
    if (nameIs(name, "grad_fn")) return input ? PyRef::borrow(Py_None) : checked(PyObject_GetAttr(object, name));
    if (nameIs(name, "retains_grad")) return PyRef::borrow(Py_False);
    if (nameIs(name, "output_nr")) return PyRef::steal(PyLong_FromLong(0));
  }
  // retain_grad() of a tensor of the region is a break.
  if (nameIs(name, "retains_grad") && !input) return PyRef::borrow(Py_False);
  if (nameIs(name, "retains_grad")) {
    const ClassesNotAsked off;
    return wrap(PyRef::steal(PyObject_GetAttr(origin->twin.get(), name)).get(), sources().slotAttr(origin->source, name));
  }
  if (nameIs(name, "_version") && !t.is_inference())
    if (PyRef version = versionOf(object)) return version;
  if (nameIs(name, "grad_fn") && !input && !trace::insideTransform()) {
    PyRef node = checked(PyObject_GetAttr(object, name));
    if (node) adopt(node.get());
    return node;
  }
  if (nameIs(name, "grad_fn")) breakHere("autograd graph access", "the compiled region reads grad_fn of a tensor that has a history");
  breakHere("tensor internals", std::string(utf8Of(name)) + " of a tensor is read");
}

bool Evaluation::setGrad(PyObject* tensor, PyObject* value) {
  const at::Tensor& t = tensorOf(tensor);
  const auto fits = [&](PyObject* given) {
    if (!isTensor(given) || !isPlainTensorClass(Py_TYPE(given)) || given == tensor) return false;
    const at::Tensor& g = tensorOf(given);
    return g.sym_sizes() == t.sym_sizes() && g.scalar_type() == t.scalar_type() && g.device() == t.device() && g.layout() == t.layout() && g.layout() == c10::kStrided;
  };
  if (value != Py_None && !fits(value)) breakHere("unsupported side effect", "assignment to grad of a tensor that existed before, of another kind than the tensor");
  if (trace::insideTransform()) breakHere("unsupported side effect", "assignment to grad inside of a transform");
  static PyObject* const set = torchObject("builtins.setattr");
  static PyObject* const name = internedName("grad");
  pin(set, Why::Process);
  PyObject* args[] = {tensor, name, value};
  deferCall(set, {args, 3, nullptr}, true);
  ++writes_;
  grads_[tensor] = PyRef::borrow(value);
  return true;
}

PyRef Evaluation::tensorGetAttr(PyObject* object, PyObject* name) {
  PyTypeObject* type = Py_TYPE(object);
  PyObject* attribute = typeLookup(type, name);
  if (!attribute) {
    if (PyRef own = ownTensorAttribute(object, name)) return own;
  } else if (PyFunction_Check(attribute)) {
    return bindDescriptor(attribute, object, type, name);
  } else if (!Py_TYPE(attribute)->tp_descr_get) {
    PyRef own = ownTensorAttribute(object, name);
    return own ? own : pin(attribute, Why::Class);
  } else if (Py_IS_TYPE(attribute, &PyGetSetDescr_Type) && answersTorchFunctions(object) && !nameIs(name, "__dict__") && !nameIs(name, "__class__") &&
             !nameIs(name, "__weakref__")) {
    return subclassAttribute(*this, object, attribute);
  } else if (Py_IS_TYPE(attribute, &PyGetSetDescr_Type)) {
    // Who asks first is the program's mode, whose answer reads the attribute without it.
    if (functionModes_->isActive() && isStandIn(object) && (nameIs(name, "grad") || nameIs(name, "data"))) return checked(PyObject_GetAttr(object, name));
    Origin* origin = origins_.find(object);
    if (nameIs(name, "grad") && origin && origin->source && origin->twin) {
      if (const auto set = grads_.find(object); set != grads_.end()) return set->second;
      PyRef grad = PyRef::steal(PyObject_GetAttrString(origin->twin.get(), "grad"));
      return grad ? wrap(grad.get(), sources().tensorGrad(origin->source)) : PyRef();
    }
    if (!isOfStandIn(name)) return hiddenTensorAttribute(object, name);
    if (nameIs(name, "_has_symbolic_sizes_strides")) return PyRef::borrow(Py_False);  // the program's tensors have none
    if (nameIs(name, "nbytes") && isStandIn(object)) {
      const PyRef elements = callMethodNamed(object, "numel", {}), width = PyRef::steal(PyLong_FromSize_t(tensorOf(object).element_size()));
      return elements ? checked(PyNumber_Multiply(elements.get(), width.get())) : PyRef();
    }
    // .data shares the value without a trace of its own: detach() is the same, written down, but that writes through .data are not counted.
    if (nameIs(name, "data") && isStandIn(object)) {
      PyRef data = callMethodNamed(object, "detach", {});
      if (data && isStandIn(data.get()) && !tensorOf(data.get()).is_inference())
        tensorOf(data.get()).unsafeGetTensorImpl()->set_version_counter(c10::VariableVersion(/*version=*/0));
      return data;
    }
  } else if (!Py_IS_TYPE(attribute, &PyMethodDescr_Type) && !Py_IS_TYPE(attribute, &PyWrapperDescr_Type) && !PyCFunction_Check(attribute) &&
             (!isTorchsProperty(attribute) || answersTorchFunctions(object))) {
    return bindDescriptor(attribute, object, type, name);
  }
  TorchCalls::Scope scope(torchCalls_.get());
  PyRef value = checked(heard({&object, 1, nullptr}, [&](const CallArguments&) { return PyObject_GetAttr(object, name); }));
  scope.done("getattr", {object, name}, value.get());
  return value;
}

}  // namespace fusebox::capture
