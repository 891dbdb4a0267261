#include "engine/capture/evaluation/nested_tensors.h"

#include <algorithm>
#include <cstring>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/entries/hook.h"
#include "engine/capture/evaluation/dispatch_asking.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/function_modes.h"
#include "engine/capture/evaluation/namespaces.h"
#include "engine/capture/evaluation/tensor_subclasses.h"
#include "engine/capture/evaluation/torch_calls.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/trace/trace_context.h"

namespace fusebox::capture {

namespace {

PyObject* nestedFunction(const char* name) { return torchObject((std::string("fusebox._nested.") + name).c_str()); }

[[noreturn]] void refuseNested(Evaluation& e, const std::string& what) {
  e.breakHere("nested tensor", what, "Compute it outside of the compiled region, or on the tensor's values().");
}

/// A function of _nested.py that CPython runs.
template <typename... Given>
PyRef asked(Evaluation& e, const char* name, Given... given) {
  PyRef answer = PyRef::steal(PyObject_CallFunctionObjArgs(nestedFunction(name), given..., nullptr));
  if (answer) return answer;
  clearError();
  refuseNested(e, std::string("torch.nested is used in a way that is not followed (") + name + ")");
}

/// A function of _nested.py that is followed.
PyRef followed(Evaluation& e, const char* name, std::initializer_list<PyObject*> args) {
  PyObject* function = nestedFunction(name);
  e.pin(function, Why::Process);
  return e.call(function, args.begin(), args.size(), nullptr);
}

bool isTorchs(const Frame* frame) {
  if (!frame) return false;
  static PyObject* const own = PyFunction_GET_GLOBALS(nestedFunction("made"));
  return frame->globals == own || isLibraryNamespace(frame->globals, Library::Torch);
}

PyRef partOf(Evaluation& e, PyObject* nested, const char* name) {
  PyRef dict = e.instanceDict(nested);
  PyRef part = dict ? e.readDict(dict.get(), internedName(name)) : PyRef();
  if (!part) clearError(), refuseNested(e, std::string("a nested tensor without ") + name);
  return part;
}

bool requiresGradient(PyObject* object, PyObject*) { return isTensorObject(object) && tensorOf(object).requires_grad(); }
bool requiresNoGradient(PyObject* object, PyObject*) { return isTensorObject(object) && !tensorOf(object).requires_grad(); }

const Source* sourceOfNested(Evaluation& e, PyObject* nested) {
  Origin* origin = e.origin(nested);
  return origin ? origin->source : nullptr;
}

PyRef aliasOf(Evaluation& e, PyObject* tensor, bool detached) {
  static PyObject* const alias = torchObject("torch.ops.aten.alias.default");
  static PyObject* const detach = torchObject("torch.ops.aten.detach.default");
  return e.call(detached ? detach : alias, &tensor, 1, nullptr);
}

/// The tensor of the graph that has a nested tensor's values.
PyRef graphValues(Evaluation& e, PyObject* nested) {
  Origin* origin = e.origin(nested);
  const Source* source = origin ? origin->source : nullptr;
  if (!source) return partOf(e, nested, "_values");
  if (origin->twin) return origin->twin;
  if (!tensorOf(nested).requires_grad()) {
    // Values may have a history that the nested tensor, which was made of them without one, has not.
    PyRef inside = partOf(e, nested, "_values");
    if (!tensorOf(inside.get()).requires_grad()) return inside;
    PyRef plain = aliasOf(e, inside.get(), true);
    e.origin(nested)->twin = plain;
    return plain;
  }
  PyRef real = valuesOfNested(nested);
  if (!real) refuseNested(e, "a nested tensor does not give its values");
  PyRef standIn = e.wrap(real.get(), e.sources().derived(Source::Kind::NestedValues, source));
  e.origin(nested)->twin = standIn;
  return standIn;
}

bool wantsGradient(Evaluation& e, PyObject* nested) {
  return sourceOfNested(e, nested) ? tensorOf(nested).requires_grad() : tensorOf(graphValues(e, nested).get()).requires_grad();
}

PyRef sizesOf(Evaluation& e, PyObject* nested) {
  if (!sourceOfNested(e, nested)) return partOf(e, nested, "_size");
  PyRef values = graphValues(e, nested), offsets = partOf(e, nested, "_offsets"), lengths = partOf(e, nested, "_lengths"), at = partOf(e, nested, "_ragged_idx");
  return followed(e, "size_of", {values.get(), offsets.get(), lengths.get(), at.get()});
}

template <size_t N>
bool isOneOf(std::string_view name, const std::string_view (&names)[N]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

/// Attributes and methods without arguments that a nested tensor and its values agree in.
constexpr std::string_view kOfValues[] = {"dtype", "device", "is_cpu", "is_cuda", "is_xpu", "is_meta", "is_mps", "is_mtia", "is_quantized", "itemsize", "element_size",
                                          "is_floating_point", "is_complex", "is_signed", "is_inference", "get_device"};
/// Operators that no gradient passes, or that ask for none of it.
constexpr std::string_view kWithoutGradient[] = {"detach", "zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "new_empty", "new_zeros",
                                                 "new_ones", "new_full", "sign", "round", "floor", "ceil", "trunc", "argmax", "argmin"};

PyRef lengthOf(PyObject* sizes) { return PyRef::steal(PyLong_FromSsize_t(PyTuple_GET_SIZE(sizes))); }

PyRef numbered(Evaluation& e, PyObject* sizes, PyObject* at) {
  const Py_ssize_t n = PyTuple_GET_SIZE(sizes);
  const Py_ssize_t index = PyLong_CheckExact(at) ? PyLong_AsSsize_t(at) : n;
  if (index < -n || index >= n) refuseNested(e, "a size of a nested tensor is asked for that it does not have");
  return PyRef::borrow(PyTuple_GET_ITEM(sizes, index < 0 ? index + n : index));
}

/// Whether a history goes into an operator, and none comes out of it where eager's would.
bool losesHistory(Evaluation& e, std::string_view name, const std::vector<PyObject*>& given, PyObject* result) {
  if (!at::GradMode::is_enabled() || isOneOf(name, kWithoutGradient)) return false;
  const auto hasHistory = [&](PyObject* o) { return isNestedTensor(o) ? wantsGradient(e, o) : e.isTensor(o) && tensorOf(o).requires_grad(); };
  const auto isWithout = [&](PyObject* o) {
    return isTensorObject(o) && (tensorOf(o).is_floating_point() || tensorOf(o).is_complex()) && !hasHistory(o);
  };
  if (std::none_of(given.begin(), given.end(), hasHistory)) return false;
  if (!PyTuple_Check(result) && !PyList_Check(result)) return isWithout(result);
  return std::any_of(PySequence_Fast_ITEMS(result), PySequence_Fast_ITEMS(result) + PySequence_Fast_GET_SIZE(result), isWithout);
}

}  // namespace

bool isNestedClass(PyTypeObject* type) {
  static PyTypeObject* known = nullptr;
  if (known || std::strcmp(type->tp_name, "NestedTensor") != 0) return known && type == known;
  PyRef module = PyRef::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__module__"));
  if (!module || !PyUnicode_Check(module.get()) || PyUnicode_CompareWithASCIIString(module.get(), "torch.nested._internal.nested_tensor") != 0) return clearError(), false;
  setUpNested();
  known = reinterpret_cast<PyTypeObject*>(Py_NewRef(type));
  return true;
}

void setUpNested() {
  static bool done = false;
  if (std::exchange(done, true)) return;
  const trace::NoTrace off;
  const RegionPause pause;
  PyRef module = PyRef::steal(PyImport_ImportModule("fusebox._nested"));
  PyRef set = module ? PyRef::steal(PyObject_CallMethod(module.get(), "set_up", nullptr)) : PyRef();
  if (!set) PyErr_WriteUnraisable(nullptr);
}

bool isNestedTensor(PyObject* object) { return isTensorObject(object) && isNestedClass(Py_TYPE(object)); }

bool holdsNested(PyObject* given) {
  if (isNestedTensor(given)) return true;
  for (Py_ssize_t i = 0; (PyTuple_Check(given) || PyList_Check(given)) && i < PySequence_Fast_GET_SIZE(given); ++i)
    if (isNestedTensor(PySequence_Fast_GET_ITEM(given, i))) return true;
  return false;
}

bool isRaggedSize(PyObject* object) {
  if (!isSymbolObject(object)) return false;
  PyRef node = PyRef::steal(PyObject_GetAttrString(object, "node"));
  PyRef is = node ? PyRef::steal(PyObject_CallMethod(node.get(), "is_nested_int", nullptr)) : PyRef();
  clearError();
  return is.get() == Py_True;
}

PyRef raggedBy(PyObject* size) {
  PyRef tensor = PyRef::steal(PyObject_CallOneArg(nestedFunction("described_by"), size));
  clearError();
  return tensor.get() == Py_None ? PyRef() : std::move(tensor);
}

PyRef valuesOfNested(PyObject* nested) {
  if (!isNestedTensor(nested)) return {};
  const trace::NoTrace off;
  const RegionPause pause;
  const ClassesNotAsked classes;
  const at::AutoGradMode mode(true);
  PyRef values = PyRef::steal(PyObject_CallOneArg(nestedFunction("values_of"), nested));
  clearError();
  return values;
}

void guardNested(Evaluation& e, PyObject* nested, const Source* source) {
  const bool wants = tensorOf(nested).requires_grad();
  e.guardCustom(source, wants ? requiresGradient : requiresNoGradient, Py_None, wants ? "requires_grad of a nested tensor" : "no requires_grad of a nested tensor");
}

PyRef nestedAttribute(Evaluation& e, PyObject* nested, PyObject* name) {
  const std::string_view text = utf8Of(name);
  if (text == "_values") {
    if (isTorchs(e.frame())) return graphValues(e, nested);
    PyRef inside = partOf(e, nested, "_values");
    if (!sourceOfNested(e, nested) && tensorOf(inside.get()).requires_grad()) refuseNested(e, "_values of a nested tensor with a history are read");
    return inside;
  }
  if (text == "_size") return sizesOf(e, nested);
  if (text == "_strides") refuseNested(e, "the strides of a nested tensor are read");
  if (text == "shape") {
    PyRef sizes = sizesOf(e, nested);
    return sizes ? newSize(sizes.get()) : PyRef();
  }
  if (text == "ndim") return lengthOf(sizesOf(e, nested).get());
  if (text == "layout") return PyRef::borrow(torchObject("torch.jagged"));
  if (text == "is_nested") return PyRef::borrow(Py_True);
  if (text.starts_with("is_sparse") || text == "is_mkldnn") return PyRef::borrow(Py_False);
  if (text == "requires_grad") return PyRef::borrow(wantsGradient(e, nested) ? Py_True : Py_False);
  if (text == "grad_fn" && !wantsGradient(e, nested)) return PyRef::borrow(Py_None);
  if (text == "is_leaf" && (!wantsGradient(e, nested) || !sourceOfNested(e, nested))) return PyRef::borrow(wantsGradient(e, nested) ? Py_False : Py_True);
  PyObject* attribute = e.typeLookup(Py_TYPE(nested), name);
  if (!attribute || !Py_IS_TYPE(attribute, &PyGetSetDescr_Type) || text == "__dict__" || text == "__class__" || text == "__weakref__") return {};
  if (isOneOf(text, kOfValues)) return e.getAttr(graphValues(e, nested).get(), name);
  refuseNested(e, "attribute " + std::string(text) + " of a nested tensor is read");
}

PyRef makeNested(Evaluation& e, const CallArguments& a) {
  PyObject *values = a.positional > 0 ? a.args[0] : a.keyword("values"), *offsets = a.positional > 1 ? a.args[1] : a.keyword("offsets");
  PyObject* wants = a.keyword("requires_grad");
  const auto isPlain = [&](PyObject* t) { return t && e.isTensor(t) && isPlainTensorClass(Py_TYPE(t)); };
  if (!isPlain(values) || !isPlain(offsets) || tensorOf(offsets).dim() != 1 || (wants && wants != Py_False)) refuseNested(e, "a nested tensor is made of what is not followed");
  PyObject* made = nestedFunction("made");
  e.pin(made, Why::Process);
  return e.call(made, a.args, a.positional, a.kwNames);
}

PyRef callOfNested(Evaluation& e, PyObject* callable, std::string_view name, const CallArguments& a, PyObject* self) {
  if (e.functionModes().isActive()) refuseNested(e, std::string(name) + " of a nested tensor under a mode that answers torch's functions");
  PyObject* first = self ? self : a.total() > 0 ? a.args[0] : nullptr;
  const size_t rest = a.total() - (self || a.total() == 0 ? 0 : 1);
  if (name == "_nested_view_from_jagged") return e.pin(nestedFunction("viewed"), Why::Process), e.call(nestedFunction("viewed"), a.args, a.positional, a.kwNames);
  if (first && isNestedTensor(first)) {
    if (isOneOf(name, kOfValues) && rest == 0) return e.callMethodNamed(graphValues(e, first).get(), std::string(name).c_str(), {});
    if (name == "_nested_get_values" || name == "values") return aliasOf(e, graphValues(e, first).get(), false);
    if (name == "_nested_get_offsets") return partOf(e, first, "_offsets");
    if (name == "dim" || name == "ndimension") return lengthOf(sizesOf(e, first).get());
    if (name == "size") {
      PyRef sizes = sizesOf(e, first);
      return rest == 0 ? newSize(sizes.get()) : numbered(e, sizes.get(), a.args[a.total() - 1]);
    }
    if ((name == "numel" || name == "nelement") && partOf(e, first, "_lengths").get() == Py_None) return e.callMethodNamed(graphValues(e, first).get(), "numel", {});
    if (name == "stride" || name == "storage_offset" || name == "data_ptr" || name == "untyped_storage" || name == "register_hook" || name == "retain_grad" ||
        name == "__setitem__" || name == "apply_" || name == "map_" || name.starts_with("scaled_dot_product") ||
        (name.ends_with("_") && !name.ends_with("__")) || (name.starts_with("__i") && name != "__invert__"))
      refuseNested(e, std::string(name) + " of a nested tensor");
  } else if (name.starts_with("scaled_dot_product") || (name.ends_with("_") && !name.ends_with("__"))) {
    refuseNested(e, std::string(name) + " is given a nested tensor");
  }
  if (a.keyword("out")) refuseNested(e, "a nested tensor is computed into a tensor that is there");
  PyRef result = dispatched(e, [&] {
    const ClassesNotAsked classes;
    const at::AutoDispatchBelowADInplaceOrView below;
    return e.callReal(callable, a);
  }, true);
  std::vector<PyObject*> given(a.args.begin(), a.args.begin() + a.total());
  if (self) given.push_back(self);
  if (result && losesHistory(e, name, given, result.get())) refuseNested(e, std::string(name) + " of a nested tensor has a gradient that is not followed");
  return result;
}

PyRef askNested(Evaluation& e, PyObject* function, PyObject* args, PyObject* keywords, const std::function<PyRef()>& decompose) {
  PyRef known = asked(e, "handler", function, args);
  if (known.get() == Py_None) return decompose();
  PyObject* handler = PyTuple_GET_ITEM(known.get(), 0);
  e.pin(handler, Why::Process);
  std::vector<PyObject*> given;
  std::vector<PyRef> keep;
  if (PyTuple_GET_ITEM(known.get(), 1) == Py_True) given.push_back(function);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) given.push_back(PyTuple_GET_ITEM(args, i));
  const size_t positional = given.size();
  PyRef names = PyRef::steal(PyTuple_New(PyDict_Check(keywords) ? PyDict_GET_SIZE(keywords) : 0));
  PyObject *key, *value;
  Py_ssize_t count = 0;
  for (Py_ssize_t at = 0; PyDict_Check(keywords) && PyDict_Next(keywords, &at, &key, &value);) {
    PyTuple_SET_ITEM(names.get(), count++, Py_NewRef(key));
    given.push_back(value);
  }
  return e.call(handler, given.data(), positional, count > 0 ? names.get() : nullptr);
}

PyRef compareRagged(Evaluation& e, int op, PyObject* a, PyObject* b) {
  const bool both = isRaggedSize(a) && isRaggedSize(b);
  if (both && (op == Py_EQ || op == Py_NE)) {
    PyRef left = raggedBy(a), right = raggedBy(b);
    if (!left || !right) refuseNested(e, "multiples of the size of a ragged dimension are compared");
    return PyRef::borrow(e.same(left.get(), right.get()) == (op == Py_EQ) ? Py_True : Py_False);
  }
  PyObject* other = isRaggedSize(a) ? b : a;
  if (!both && (op == Py_EQ || op == Py_NE)) return PyRef::borrow(op == Py_NE ? Py_True : Py_False);
  if (!both && !PyLong_CheckExact(other)) refuseNested(e, "the size of a ragged dimension is compared");
  PyRef answer = PyRef::steal(PyObject_RichCompare(a, b, op));
  if (!answer || PyBool_Check(answer.get())) return answer;
  const int is = PyObject_IsTrue(answer.get());
  return is < 0 ? PyRef() : PyRef::borrow(is ? Py_True : Py_False);
}

}  // namespace fusebox::capture
