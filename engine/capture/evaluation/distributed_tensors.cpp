#include "engine/capture/evaluation/distributed_tensors.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <cstring>
#include <string_view>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/entries/hook.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/function_modes.h"
#include "engine/capture/evaluation/tensor_subclasses.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/rules/call_rules.h"
#include "engine/trace/trace_context.h"

namespace fusebox::capture {

namespace {

PyTypeObject* distributedClass = nullptr;

PyObject* distributedFunction(const char* name) { return torchObject((std::string("fusebox._distributed.") + name).c_str()); }

[[noreturn]] void refuseDistributed(Evaluation& e, const std::string& what) {
  e.breakHere("distributed tensor", what, "Compute it outside of the compiled region, or on the tensor's to_local().");
}

PyRef slotOf(PyObject* object, const char* name) {
  PyRef value = PyRef::steal(PyObject_GenericGetAttr(object, internedName(name)));
  if (!value) clearError();
  return value;
}

/// Whether a type is torch's class of that name, which is remembered once it has been met.
bool isClassOfTorch(PyTypeObject* type, const char* name, std::string_view module, PyTypeObject*& known) {
  if (known || std::strcmp(type->tp_name, name) != 0) return known && type == known;
  const PyRef where = PyRef::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__module__"));
  clearError();
  if (!where || !PyUnicode_Check(where.get()) || !std::string_view(utf8Of(where.get())).starts_with(module)) return false;
  known = reinterpret_cast<PyTypeObject*>(Py_NewRef(type));
  return true;
}

/// The class of all placements; null where nobody has imported it. Borrowed.
PyTypeObject* placementClass() {
  static PyTypeObject* known = nullptr;
  if (known) return known;
  static PyObject* const name = internedName("torch.distributed.tensor.placement_types");
  const PyRef module = PyRef::steal(PyImport_GetModule(name));
  if (module) known = reinterpret_cast<PyTypeObject*>(PyObject_GetAttrString(module.get(), "Placement"));
  clearError();
  return known;
}

bool isPlacementClass(PyTypeObject* type) {
  PyTypeObject* base = placementClass();
  return base && PyType_IsSubtype(type, base);
}

bool equal(PyObject* a, PyObject* b) {
  const int is = a == b ? 1 : PyObject_RichCompareBool(a, b, Py_EQ);
  if (is < 0) clearError();
  return is == 1;
}

/// Predicates of Custom guards.
bool sameSpec(PyObject* object, PyObject* expected) {
  if (!isDistributed(object)) return false;
  const PyRef spec = slotOf(object, "_spec");
  if (!spec || spec.get() == expected) return static_cast<bool>(spec);
  for (const char* name : {"mesh", "placements", "tensor_meta"}) {
    const PyRef own = PyRef::steal(PyObject_GetAttrString(spec.get(), name)), wanted = PyRef::steal(PyObject_GetAttrString(expected, name));
    if (!own || !wanted) return clearError(), false;
    if (std::strcmp(name, "mesh") == 0 ? own.get() != wanted.get() : !equal(own.get(), wanted.get())) return false;
  }
  return true;
}
bool samePlacement(PyObject* object, PyObject* expected) { return Py_TYPE(object) == Py_TYPE(expected) && equal(object, expected); }
bool wantsGradientAs(PyObject* object, PyObject* expected) { return isTensorObject(object) && tensorOf(object).requires_grad() == (expected == Py_True); }
bool replicatesImplicitly(PyObject*, PyObject* expected) {
  static PyObject* const ask = torchObject("torch._C._get_dtensor_allow_implicit_replication");
  const PyRef now = PyRef::steal(PyObject_CallNoArgs(ask));
  return now && now.get() == expected;
}

void setUpDistributed() {
  const trace::NoTrace off;
  const RegionPause pause;
  PyRef module = PyRef::steal(PyImport_ImportModule("fusebox._distributed"));
  PyRef done = module ? PyRef::steal(PyObject_CallMethod(module.get(), "set_up", nullptr)) : PyRef();
  if (!done) PyErr_WriteUnraisable(nullptr);
}

/// Hands the gradient of a local tensor on as that of the whole.
struct WholeGradient : torch::autograd::Node {
  PyObject* layout;  ///< a _distributed.Gradient

  explicit WholeGradient(PyObject* given) : layout(Py_NewRef(given)) {}
  ~WholeGradient() override {
    if (!Py_IsInitialized()) return;
    const PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(layout);
    PyGILState_Release(state);
  }
  WholeGradient(const WholeGradient&) = delete;

  std::string name() const override { return "DistributedGradient"; }
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    if (!gradients[0].defined()) return {at::Tensor()};
    const PyGILState_STATE state = PyGILState_Ensure();
    at::Tensor whole;
    {
      const PyRef local = PyRef::steal(newTensorObject(gradients[0]));
      const PyRef made = local ? PyRef::steal(PyObject_CallMethod(layout, "of", "O", local.get())) : PyRef();
      if (made) whole = tensorOf(made.get());
      else PyErr_WriteUnraisable(layout);
    }
    PyGILState_Release(state);
    TORCH_CHECK(whole.defined(), "the gradient of a distributed tensor could not be made of that of its local tensor");
    return {whole};
  }
};

/// Modules of torch whose functions only work on specs and local tensors.
bool isDistributedCode(PyObject* function) {
  static constexpr std::string_view kModules[] = {"torch.distributed.tensor._api", "torch.distributed.tensor.placement_types", "torch.distributed.tensor._dtensor_spec",
                                                  "torch.distributed.tensor._redistribute", "torch.distributed.tensor._utils"};
  PyObject* name = PyDict_GetItem(PyFunction_GET_GLOBALS(function), internedName("__name__"));
  return name && PyUnicode_Check(name) && std::find(std::begin(kModules), std::end(kModules), std::string_view(utf8Of(name))) != std::end(kModules);
}

/// Whether what an argument is is known; guards of it are added.
bool isKnown(Evaluation& e, PyObject* given) {
  if (isConstantValue(given) || PyType_Check(given) || isDeviceObject(given)) return true;
  if (e.isTensor(given)) return !e.isNumber(given) && e.isStandIn(given) && !tensorOf(given).unsafeGetTensorImpl()->has_symbolic_sizes_strides();
  const Origin* origin = e.origin(given);
  const bool isOutside = origin && origin->source && !isPinned(origin->source);
  if (isDeviceMesh(given)) {
    if (isOutside) e.guard(GuardKind::IdMatch, origin->source, given);
    return true;
  }
  if (isPlacement(given)) {
    if (isOutside) e.guardCustom(origin->source, samePlacement, given, "the placement");
    return true;
  }
  if (PyTuple_Check(given) || PyList_CheckExact(given)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(given); ++i)
      if (!isKnown(e, PySequence_Fast_GET_ITEM(given, i))) return false;
    return true;
  }
  return false;
}

}  // namespace

bool isDistributedClass(PyTypeObject* type) {
  const bool wasMet = distributedClass;
  const bool is = isClassOfTorch(type, "DTensor", "torch.distributed.tensor", distributedClass);
  if (is && !wasMet) setUpDistributed();
  return is;
}

bool isDistributed(PyObject* object) { return isTensorObject(object) && isDistributedClass(Py_TYPE(object)); }

bool isDistributedStandIn(PyObject* object) {
  if (Py_TYPE(object) != distributedClass || !distributedClass) return false;
  const PyRef local = slotOf(object, "_local_tensor");
  return local && isTensorObject(local.get()) && trace::isTraceTensor(tensorOf(local.get()));
}

PyRef localOfDistributed(PyObject* object, PyObject* gradient) {
  if (!isDistributed(object)) return {};
  PyRef local = slotOf(object, "_local_tensor");
  if (!local || !isTensorObject(local.get())) return {};
  const trace::NoTrace off;
  if (Py_TYPE(local.get()) != tensorType()) {
    const RegionPause pause;
    local = PyRef::steal(PyObject_CallOneArg(distributedFunction("settled"), local.get()));
    if (!local) return clearError(), PyRef();
  }
  const at::Tensor& whole = tensorOf(object);
  if (!whole.requires_grad()) return local;
  at::Tensor alias = tensorOf(local.get()).detach();
  const auto node = std::shared_ptr<WholeGradient>(new WholeGradient(gradient), torch::autograd::deleteNode);
  node->set_next_edges({torch::autograd::impl::gradient_edge(whole)});
  torch::autograd::set_history(alias, node);
  return PyRef::steal(newTensorObject(alias));
}

PyRef distributedStandIn(Evaluation& e, PyObject* object, const Source* source) {
  PyObject* wants = tensorOf(object).requires_grad() ? Py_True : Py_False;
  const PyRef spec = slotOf(object, "_spec"), mode = PyRef::steal(PyObject_CallNoArgs(torchObject("torch._C._get_dtensor_allow_implicit_replication")));
  if (!spec || !mode) clearError(), refuseDistributed(e, "a distributed tensor without a spec");
  e.guard(GuardKind::TypeMatch, source, reinterpret_cast<PyObject*>(Py_TYPE(object)));
  e.guardCustom(source, sameSpec, spec.get(), "the mesh, placements and sizes of a distributed tensor");
  e.guardCustom(source, wantsGradientAs, wants, "requires_grad of a distributed tensor");
  e.guardCustom(e.sources().pinned(reinterpret_cast<PyObject*>(distributedClass), Why::Process), replicatesImplicitly, mode.get(), "whether plain tensors beside distributed ones are replicated");
  const PyRef gradient = PyRef::steal(PyObject_CallNoArgs(distributedFunction("Gradient")));
  const PyRef local = gradient ? localOfDistributed(object, gradient.get()) : PyRef();
  if (!local) clearError(), refuseDistributed(e, "a distributed tensor does not give its local tensor");
  const PyRef standIn = e.inputOfGraph(local.get(), e.sources().derived(Source::Kind::LocalTensor, source, gradient.get()));
  PyRef whole = e.checked(PyObject_CallFunctionObjArgs(distributedFunction("stand_in"), standIn.get(), spec.get(), gradient.get(), nullptr));
  if (!whole) clearError(), refuseDistributed(e, "a distributed tensor cannot be followed");
  return whole;
}

bool isDeviceMesh(PyObject* object) {
  static PyTypeObject* known = nullptr;
  return isClassOfTorch(Py_TYPE(object), "DeviceMesh", "torch.distributed.device_mesh", known);
}

bool isPlacement(PyObject* object) { return isPlacementClass(Py_TYPE(object)); }

PyRef callOfDistributed(Evaluation& e, PyObject* callable, const CallArguments& a, bool* handled) {
  *handled = false;
  if (PyFunction_Check(callable)) {
    if (!isDistributedCode(callable) || e.functionModes().isActive()) return {};
    static PyObject* const type = torchObject("torch.distributed.tensor.DTensor");
    if (!isDistributedClass(reinterpret_cast<PyTypeObject*>(type))) return {};
  } else if (PyType_Check(callable)) {
    if (!isPlacementClass(reinterpret_cast<PyTypeObject*>(callable))) return {};
  } else if (a.total() == 0 || !isPlacement(a.args[0])) {
    return {};
  }
  for (size_t i = 0; i < a.total(); ++i)
    if (!isKnown(e, a.args[i])) return {};
  *handled = true;
  if (PyFunction_Check(callable)) e.guardFunction(callable);
  std::vector<PyRef> keep;
  std::vector<PyObject*> args;
  for (size_t i = 0; i < a.total(); ++i) {
    keep.push_back(e.expose(a.args[i]));
    if (!keep.back()) return {};
    args.push_back(keep.back().get());
  }
  const RegionPause pause;
  PyRef result = e.callRaw(callable, {args.data(), a.positional, a.kwNames});
  if (!result || e.isTensor(result.get()) || isConstantValue(result.get())) return result;
  return e.pin(result.get(), isPlacement(result.get()) ? Why::Immutable : Why::Process);
}

DistributedParts partsOfDistributed(Evaluation& e, PyObject* object) {
  static PyObject* const whole = distributedFunction("whole");
  DistributedParts parts{PyRef(), slotOf(object, "_spec"), PyRef::borrow(whole)};
  const RegionPause pause;
  parts.local = e.checked(PyObject_CallOneArg(distributedFunction("part"), object));
  if (!parts.local || !parts.spec || !e.isStandIn(parts.local.get())) clearError(), refuseDistributed(e, "a distributed tensor that leaves the compiled region does not give its local tensor");
  e.pin(parts.spec.get(), Why::Process);
  return parts;
}

}  // namespace fusebox::capture
