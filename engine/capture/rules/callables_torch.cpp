// Rules for torch: state queries whose answer is fixed while capturing, modes, breaks that the user asks for, and
// Python functions that are answered without interpreting them.
#include <c10/core/AutogradState.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/tensor/python_tensor.h>

#include <ATen/FunctionalTensorWrapper.h>

#include "engine/aot/aot_function.h"
#include "engine/capture/cpython/errors.h"
#include "engine/capture/entries/debug_stops.h"
#include "engine/capture/evaluation/distributed_tensors.h"
#include "engine/capture/evaluation/allowed_calls.h"
#include "engine/capture/evaluation/namespaces.h"
#include "engine/capture/evaluation/nested_tensors.h"
#include "engine/capture/evaluation/saved_tensor_hooks.h"
#include "engine/capture/rules/autograd_function.h"
#include "engine/capture/rules/comptime.h"
#include "engine/capture/rules/call_rules.h"
#include "engine/capture/rules/state_queries.h"
#include "engine/capture/evaluation/arrays.h"
#include "engine/capture/evaluation/deferred_numbers.h"
#include "engine/capture/evaluation/function_modes.h"
#include "engine/capture/evaluation/inference_blocks.h"
#include "engine/capture/evaluation/tensor_subclasses.h"
#include "engine/capture/evaluation/torch_calls.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/trace/current_device.h"
#include "engine/trace/transform_levels.h"
#include "engine/trace/trace_tensor.h"

namespace fusebox::capture {

namespace {

PyRef ruleTrue(Evaluation&, PyObject*, const CallArguments&) { return PyRef::borrow(Py_True); }
PyRef ruleFalse(Evaluation&, PyObject*, const CallArguments&) { return PyRef::borrow(Py_False); }
PyRef ruleNone(Evaluation&, PyObject*, const CallArguments&) { return PyRef::borrow(Py_None); }

/// A mode of the thread, which a graph switches as the program does.
PyRef ruleMode(Evaluation& e, PyObject* callable, const CallArguments& a) {
  TorchCalls::Scope scope(e.torchCalls());
  PyRef result = e.callRaw(callable, a);
  scope.done(callable, a, result.get(), TorchCalls::Kind::Mode);
  return result;
}

/// `with torch.device()`: the mode that gives new tensors their device is entered and left for real, as the program does; what a segment
/// leaves otherwise than it found it is done again by its entry. What __exit__ is told of an exception does not matter to it.
PyRef ruleDeviceMode(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (e.functionModes().isActive()) e.breakHere("default device", "a device mode is entered or left inside of another torch function mode");
  if (e.torchCalls()) e.breakHere("default device", "a backend that is a function is not given `with torch.device()` inside of a graph");
  PyObject* given[] = {a.args[0], Py_None, Py_None, Py_None};
  return PyRef::steal(PyObject_Vectorcall(callable, given, a.positional, nullptr));
}

/// `with torch.inference_mode()`. `enters`: its __enter__, otherwise its __exit__.
template <bool enters>
PyRef ruleInferenceMode(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (trace::insideTransform()) e.breakHere("inference mode", "torch.inference_mode() is entered or left inside a transform");
  PyRef mode = a.positional > 0 ? e.getAttr(a.args[0], internedName("mode")) : throw UnfitArguments();
  const int on = mode ? e.truth(mode.get()) : -1;
  if (on < 0) return {};
  TorchCalls* const calls = e.torchCalls();
  const TorchCalls::Scope scope(calls);
  const TorchCalls::Whole whole = calls ? calls->wholeOf(callable, a) : TorchCalls::Whole();
  if (enters)
    e.inferenceBlocks().enter(a.args[0], on == 1, e.rootCount());
  else if (!e.inferenceBlocks().leave(a.args[0]))
    e.breakHere("inference mode", "a torch.inference_mode() is left that was entered before, or inside of which another one is open");
  if (calls) calls->done(scope, whole, callable, Py_None);
  return PyRef::borrow(Py_None);
}

/// The stack of torch function modes, as the program sees it.
PyRef rulePushMode(Evaluation& e, PyObject*, const CallArguments& a) { return e.functionModes().push(a.args[0]), PyRef::borrow(Py_None); }
PyRef rulePopMode(Evaluation& e, PyObject*, const CallArguments&) { return e.functionModes().pop(); }
PyRef ruleCountModes(Evaluation& e, PyObject*, const CallArguments&) { return PyRef::steal(PyLong_FromSsize_t(e.functionModes().count())); }
PyRef ruleModeAt(Evaluation& e, PyObject*, const CallArguments& a) {
  PyRef index = e.plainNumber(a.args[0], "a place of the stack of modes");
  return PyLong_CheckExact(index.get()) ? e.functionModes().at(PyLong_AsSsize_t(index.get())) : throw UnfitArguments();
}

/// torch._dynamo.error_on_graph_break(): what the evaluator goes by, and for real, since what resumes the frame reads it again.
PyRef ruleErrorOnBreak(Evaluation& e, PyObject*, const CallArguments&) { return PyRef::borrow(e.breaksAreErrors ? Py_True : Py_False); }
PyRef ruleSetErrorOnBreak(Evaluation& e, PyObject* callable, const CallArguments& a) {
  const int on = a.positional == 1 ? e.truth(a.args[0]) : -1;
  if (on < 0) return PyErr_Occurred() ? PyRef() : e.callReal(callable, a);
  e.breaksAreErrors = on > 0;
  setErrorOnGraphBreak(e.breaksAreErrors);
  return PyRef::borrow(Py_None);
}

/// What torch sets up in the process with the first use of a transform: it is set up now, as a module would be imported.
PyRef ruleSetUp(Evaluation& e, PyObject* callable, const CallArguments& a) {
  TorchCalls::Scope scope(e.torchCalls());
  PyRef done = PyRef::steal(PyObject_CallNoArgs(callable));
  scope.done(callable, a, done.get(), TorchCalls::Kind::Mode);
  return done;
}

/// A level of a transform: operators on what it batches or differentiates come back as operators on whole tensors.
PyRef ruleEnterTransform(Evaluation& e, PyObject* callable, const CallArguments& a) {
  e.noteTransform();
  TorchCalls::Scope scope(e.torchCalls());
  PyRef level = e.callReal(callable, a);
  scope.done(callable, a, level.get(), TorchCalls::Kind::Mode);
  return level;
}

/// A level of forward-mode differentiation, of torch.func's transforms. Dual numbers that a program makes itself keep their tangents where
/// they are handed out, which those of transforms do not.
PyRef ruleEnterDualLevel(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!trace::insideTransform()) e.breakHere("unsupported call", "a level of forward-mode differentiation is entered", "Use torch.func.jvp.");
  return ruleEnterTransform(e, callable, a);
}

/// Hooks on saved tensors are forbidden: an error where some are set.
PyRef ruleForbidSavedTensorHooks(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (savedTensorHooksWaiting() != SavedTensorHooks::None) e.breakHere("unsupported call", "hooks on saved tensors are forbidden where some are set");
  return ruleEnterTransform(e, callable, a);
}

/// Compiled autograd is switched off around a gradient inside a transform. Where it is off already, that changes nothing.
PyRef ruleSetAutogradCompiler(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (a.total() != 2 || a.args[0] != Py_None) e.breakHere("unsupported call", "compiled autograd is switched on");
  PyRef before = PyRef::steal(PyObject_CallFunction(callable, "OO", a.args[0], a.args[1]));
  if (!before || !PyTuple_Check(before.get()) || PyTuple_GET_ITEM(before.get(), 0) == Py_None) return before;
  PyRef again = PyRef::steal(PyObject_CallObject(callable, before.get()));
  if (!again) return {};
  e.breakHere("unsupported call", "compiled autograd is on, and switched off inside of a graph");
}

/// A value of the graph of one element, which torch.tensor reads as a number of its type.
bool isLeafOfData(Evaluation& e, PyObject* data) {
  if (!e.isStandIn(data) || e.isNumber(data) || !isPlainTensorClass(Py_TYPE(data)) || e.mayBePython(data)) return false;
  const at::Tensor& t = tensorOf(data);
  const bool isOne = t.dim() == 0 || (!t.unsafeGetTensorImpl()->has_symbolic_sizes_strides() && t.numel() == 1);
  return isOne && t.is_cpu() && !t.requires_grad() && !trace::insideTransform();
}

/// The leaves of nested lists of numbers and of such values, with the sizes of the lists. False: they are something else, or not as long as each
/// other.
bool flatNumbers(Evaluation& e, PyObject* data, size_t depth, std::vector<Py_ssize_t>& sizes, std::vector<PyRef>& leaves) {
  const bool isNumber = (isSymbolicNumber(data) && !isArrayScalar(data)) || PyLong_CheckExact(data) || PyFloat_CheckExact(data);
  if (isNumber || isLeafOfData(e, data)) {
    leaves.push_back(PyRef::borrow(data));
    return depth == sizes.size();
  }
  if (!PyList_CheckExact(data) && !PyTuple_CheckExact(data) && !isSizeObject(data)) return false;
  PyRef items = e.collect(data, true);
  const Py_ssize_t n = items ? PyTuple_GET_SIZE(items.get()) : 0;
  if (n == 0) return clearError(), false;
  if (leaves.empty() && depth == sizes.size()) sizes.push_back(n);
  if (depth >= sizes.size() || sizes[depth] != n) return false;
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!flatNumbers(e, PyTuple_GET_ITEM(items.get(), i), depth + 1, sizes, leaves)) return false;
  return true;
}

/// The leaf of torch.tensor that is a float which data decide, as a value of the graph; null without error: it is given as a number.
PyRef floatOfData(Evaluation& e, PyObject* number, PyObject* type, PyObject* device) {
  const bool fits = isDeferred(number) && pythonTypeOf(number) == &PyFloat_Type && (!device || device == Py_None) && type && THPDtype_Check(type) &&
                    at::isFloatingType(reinterpret_cast<THPDtype*>(type)->scalar_type);
  PyRef value = fits ? deferredTensor(e, number) : PyRef();
  if (!value || !tensorOf(value.get()).is_cpu()) return {};
  value = e.callMethodNamed(value.get(), "to", {type});
  return value ? e.callMethodNamed(value.get(), "clone", {}) : value;
}

/// Whether numbers of a type are in another what a conversion of tensors gives, without an error that it lacks.
bool keepsNumbers(at::ScalarType from, at::ScalarType to) {
  return from == to || (at::isFloatingType(from) && at::isFloatingType(to)) || (at::isIntegralType(from, true) && (to == at::kLong || at::isFloatingType(to)));
}

at::ScalarType typeOfLeaf(PyObject* leaf) {
  if (isTensorObject(leaf)) return tensorOf(leaf).scalar_type();
  return pythonTypeOf(leaf) == &PyFloat_Type ? at::typeMetaToScalarType(at::get_default_dtype()) : at::kLong;
}

/// The type of what torch.tensor makes of such leaves; nullopt: its conversion of some number is another than that of tensors.
std::optional<at::ScalarType> typeOfLeaves(const std::vector<PyRef>& leaves, PyObject* dtype) {
  at::ScalarType type = typeOfLeaf(leaves[0].get());
  for (const PyRef& leaf : leaves) type = at::promoteTypes(type, typeOfLeaf(leaf.get()));
  if (dtype && dtype != Py_None) {
    if (!THPDtype_Check(dtype)) return std::nullopt;
    type = reinterpret_cast<THPDtype*>(dtype)->scalar_type;
  }
  for (const PyRef& leaf : leaves)
    if (!keepsNumbers(typeOfLeaf(leaf.get()), type)) return std::nullopt;
  return type;
}

/// A leaf as a tensor without dimensions.
PyRef leafAs(Evaluation& e, PyObject* leaf, at::ScalarType type) {
  static PyObject* const full = torchObject("torch.full");
  const auto dtypeOf = [](at::ScalarType t) { return reinterpret_cast<PyObject*>(torch::getTHPDtype(t)); };
  const PyRef none = PyRef::steal(PyTuple_New(0));
  if (!isTensorObject(leaf)) {
    const PyRef names = PyRef::steal(Py_BuildValue("(s)", "dtype"));
    PyRef made = floatOfData(e, leaf, dtypeOf(type), nullptr);
    PyObject* args[] = {none.get(), leaf, dtypeOf(type)};
    return made || PyErr_Occurred() ? made : e.call(full, args, 2, names.get());
  }
  const at::ScalarType from = tensorOf(leaf).scalar_type();
  PyRef made = tensorOf(leaf).dim() == 0 ? PyRef::borrow(leaf) : e.callMethodNamed(leaf, "reshape", {none.get()});
  // Numbers of Python are on the way.
  if (made && at::isIntegralType(from, false) && at::isFloatingType(type)) made = e.callMethodNamed(made.get(), "to", {dtypeOf(at::kDouble)});
  return made && tensorOf(made.get()).scalar_type() != type ? e.callMethodNamed(made.get(), "to", {dtypeOf(type)}) : made;
}

/// Tensors without dimensions as one of these sizes.
PyRef stacked(Evaluation& e, const std::vector<PyRef>& leaves, const std::vector<Py_ssize_t>& sizes) {
  static PyObject* const stack = torchObject("torch.stack");
  PyRef list = PyRef::steal(PyList_New(0));
  for (const PyRef& leaf : leaves) PyList_Append(list.get(), leaf.get());
  PyObject* parts[] = {list.get()};
  PyRef made = e.call(stack, parts, 1, nullptr);
  if (!made || sizes.size() == 1) return made;
  PyRef shape = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(sizes.size())));
  for (size_t i = 0; i < sizes.size(); ++i) PyTuple_SET_ITEM(shape.get(), static_cast<Py_ssize_t>(i), PyLong_FromSsize_t(sizes[i]));
  return e.callMethodNamed(made.get(), "view", {shape.get()});
}

/// torch.tensor and as_tensor of numbers some of which are symbolic: values of the graph.
PyRef ruleTensor(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyObject *dtype = a.keyword("dtype"), *device = a.keyword("device");
  std::vector<Py_ssize_t> sizes;
  std::vector<PyRef> numbers;
  const size_t known = static_cast<size_t>(dtype != nullptr) + static_cast<size_t>(device != nullptr);
  const bool fits = a.positional == 1 && a.keywords() == known && !isTensorObject(a.args[0]) && flatNumbers(e, a.args[0], 0, sizes, numbers);
  const bool ofData = fits && std::any_of(numbers.begin(), numbers.end(), [](const PyRef& n) { return isTensorObject(n.get()); });
  if (const auto type = ofData && (!device || device == Py_None) ? typeOfLeaves(numbers, dtype) : std::nullopt) {
    for (PyRef& leaf : numbers)
      if (leaf = leafAs(e, leaf.get(), *type); !leaf) return {};
    return stacked(e, numbers, sizes);
  }
  if (!fits || ofData || std::none_of(numbers.begin(), numbers.end(), [](const PyRef& n) { return isSymbolicNumber(n.get()); })) return e.callReal(callable, a);
  static PyObject* const full = torchObject("torch.full");
  const bool floats = std::any_of(numbers.begin(), numbers.end(), [](const PyRef& n) { return pythonTypeOf(n.get()) == &PyFloat_Type; });
  PyRef type = dtype && dtype != Py_None ? PyRef::borrow(dtype)
               : floats                  ? e.call(torchObject("torch.get_default_dtype"), nullptr, 0, nullptr)
                                         : PyRef::borrow(torchObject("torch.int64"));
  PyRef names = PyRef::steal(Py_BuildValue("(ss)", "dtype", "device")), none = PyRef::steal(PyTuple_New(0));
  std::vector<PyRef> leaves;
  PyRef made;
  for (const PyRef& number : numbers) {
    PyObject* args[] = {none.get(), number.get(), type.get(), device ? device : Py_None};
    made = floatOfData(e, number.get(), type.get(), device);
    if (!made && type && !PyErr_Occurred()) made = e.call(full, args, 2, names.get());
    if (!made) return {};
    leaves.push_back(made);
  }
  return sizes.empty() ? made : stacked(e, leaves, sizes);
}

/// torch._shape_as_tensor(x): the sizes as values of the graph.
PyRef ruleShapeAsTensor(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (a.total() != 1 || a.positional != 1 || !e.isTensor(a.args[0])) return e.callReal(callable, a);
  PyRef sizes = e.getAttr(a.args[0], internedName("shape"));
  PyObject* args[] = {sizes.get(), torchObject("torch.int64")};
  static PyObject *const make = torchObject("torch.tensor"), *const names = Py_BuildValue("(s)", "dtype");
  return sizes ? ruleTensor(e, make, {args, 1, names}) : sizes;
}

PyRef ruleNewTensor(Evaluation& e, PyObject* callable, const CallArguments& a);

/// What the old constructors make of a tensor: another one over its memory.
PyRef aliasOf(Evaluation& e, PyObject* tensor) {
  static PyObject* const alias = torchObject("torch.ops.aten.alias.default");
  return e.call(alias, &tensor, 1, nullptr);
}

/// Tensor.new(): new_empty of sizes, new_tensor of a list of numbers, an alias of a tensor of its type.
PyRef ruleLegacyNew(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (a.positional == 0 || a.keywords() > 0) return e.callReal(callable, a);
  if (const at::Tensor& self = tensorOf(a.args[0]); self.is_conj() || self.is_neg())
    e.breakHere("exception", "new() of a tensor whose conjugation or negation is pending, which it refuses", "call new_empty or new_tensor instead");
  PyObject* given = a.positional == 2 ? a.args[1] : nullptr;
  if (given && isSizeObject(given)) return e.callMethodNamed(a.args[0], "new_empty", {given});
  if (given && (PyList_CheckExact(given) || PyTuple_CheckExact(given) || Arrays::is(given))) return ruleNewTensor(e, callable, a);
  if (given && isTensorObject(given) && isPlainTensorClass(Py_TYPE(given)) && isPlainTensorClass(Py_TYPE(a.args[0]))) {
    const at::Tensor &self = tensorOf(a.args[0]), &other = tensorOf(given);
    if (self.scalar_type() == other.scalar_type() && self.device() == other.device() && self.layout() == other.layout()) return aliasOf(e, given);
  }
  PyRef sizes = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(a.positional) - (a.positional > 1)));
  if (a.positional == 1) PyTuple_SET_ITEM(sizes.get(), 0, PyLong_FromLong(0));
  for (size_t i = 1; i < a.positional; ++i) {
    if (!PyLong_CheckExact(a.args[i]) && !isSymbolicNumber(a.args[i])) return e.callReal(callable, a);
    PyTuple_SET_ITEM(sizes.get(), static_cast<Py_ssize_t>(i) - 1, PyRef::borrow(a.args[i]).release());
  }
  return e.callMethodNamed(a.args[0], "new_empty", {sizes.get()});
}

/// Tensor.new_tensor(data): torch.tensor with the type and device of a tensor that is there.
PyRef ruleNewTensor(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (a.positional != 2 || !isTensorObject(a.args[0]) || isTensorObject(a.args[1])) return e.callReal(callable, a);
  std::vector<PyObject*> args = {a.args[1]};
  std::vector<PyRef> names, keep;
  for (size_t i = 0; i < a.keywords(); ++i) {
    names.push_back(PyRef::borrow(a.keywordName(i)));
    args.push_back(a.args[a.positional + i]);
  }
  for (const char* name : {"dtype", "device"}) {
    if (PyObject* given = a.keyword(name); given && given != Py_None) continue;
    if (a.keyword(name)) return e.callReal(callable, a);
    keep.push_back(e.getAttr(a.args[0], internedName(name)));
    if (!keep.back()) return {};
    names.push_back(PyRef::borrow(internedName(name)));
    args.push_back(keep.back().get());
  }
  PyRef tuple = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(names.size())));
  for (size_t i = 0; i < names.size(); ++i) PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), names[i].release());
  static PyObject* const make = torchObject("torch.tensor");
  const CallArguments made{args.data(), 1, names.empty() ? nullptr : tuple.get()};
  return Arrays::is(a.args[1]) ? e.call(make, made) : ruleTensor(e, make, made);
}

/// Whether an optimizer of torch's asks for it around its step, so that a compiler which does not see no_grad makes a graph of its own of that: here one does.
bool isForNoGrad(Evaluation& e) {
  if (e.torchCalls() || !e.frame()->function) return false;
  static PyObject* const globals = PyFunction_GET_GLOBALS(torchObject("torch.optim.Optimizer.profile_hook_step"));
  return PyFunction_GET_GLOBALS(e.frame()->function.get()) == globals;
}

PyRef ruleGraphBreak(Evaluation& e, PyObject*, const CallArguments& a) {
  if (isForNoGrad(e)) return PyRef::borrow(Py_None);
  for (const Frame* f = e.frame(); f; f = f->caller)  // torch.compiler.allow_in_graph: nobody looks for breaks inside
    if (isAllowedInGraph(f->function.get())) return PyRef::borrow(Py_None);
  std::string reason = "torch._dynamo.graph_break() is called";
  if (PyObject* message = a.keyword("msg"); message && PyUnicode_Check(message)) reason += std::string(": ") + utf8Of(message);
  e.breakHere("explicit graph break", reason, "Remove the call to compile the function whole.");
}

/// Whether a tensor in a result has a gradient to compute.
bool requiresGrad(PyObject* result) {
  if (isTensorObject(result)) return tensorOf(result).requires_grad();
  bool any = false;
  for (Py_ssize_t i = 0; (PyTuple_Check(result) || PyList_Check(result)) && i < PySequence_Fast_GET_SIZE(result); ++i)
    any = any || requiresGrad(PySequence_Fast_GET_ITEM(result, i));
  return any;
}

/// What a selective checkpoint keeps is memory: its contexts are those that do nothing, where eager takes the policy.
PyRef ruleSelectiveContexts(Evaluation& e, PyObject*, const CallArguments& a) {
  static PyObject* const overload = torchObject("torch._ops.OpOverload");
  static PyObject* const noContexts = torchObject("torch.utils.checkpoint.noop_context_fn");
  PyObject* policy = a.positional > 0 ? a.args[0] : a.keyword("policy_fn_or_list");
  bool fits = policy && a.total() <= 2 && (PyList_Check(policy) || PyCallable_Check(policy));
  for (Py_ssize_t i = 0; fits && PyList_Check(policy) && i < e.length(policy); ++i) {
    PyRef op = e.getItem(policy, PyRef::steal(PyLong_FromSsize_t(i)).get());
    fits = op && PyObject_TypeCheck(op.get(), reinterpret_cast<PyTypeObject*>(overload));
  }
  if (!fits) e.breakHere("unsupported call", "torch.utils.checkpoint refuses such a policy");
  return e.call(noContexts, nullptr, 0, nullptr);
}

/// A break where a checkpoint is told what eager refuses, or is given contexts that may do something.
void checkCheckpoint(Evaluation& e, const CallArguments& a) {
  PyObject* check = a.keyword("determinism_check");
  if (check && !(PyUnicode_Check(check) && (PyUnicode_CompareWithASCIIString(check, "default") == 0 || PyUnicode_CompareWithASCIIString(check, "none") == 0)))
    e.breakHere("unsupported call", "torch.utils.checkpoint refuses such a determinism_check");
  PyObject* contexts = a.keyword("context_fn");
  if (!contexts) return;
  static PyObject* const nothing = torchObject("contextlib.nullcontext");
  PyRef pair = e.call(contexts, nullptr, 0, nullptr);
  bool known = pair && PyTuple_CheckExact(pair.get()) && PyTuple_GET_SIZE(pair.get()) == 2;
  for (Py_ssize_t i = 0; known && i < 2; ++i) known = Py_IS_TYPE(PyTuple_GET_ITEM(pair.get(), i), reinterpret_cast<PyTypeObject*>(nothing));
  clearError();
  if (!known) e.breakHere("unsupported call", "torch.utils.checkpoint enters contexts of the program's own");
}

/// What checkpoint() says where it is not told whether to be reentrant, which it then is: in its own words. False: an exception is set.
bool warnOfMissingReentrant(Evaluation& e, PyObject* checkpoint) {
  PyRef function = PyRef::steal(PyObject_GetAttrString(checkpoint, "__wrapped__"));
  if (!function) clearError(), function = PyRef::borrow(checkpoint);
  PyObject* constants = PyFunction_Check(function.get()) ? reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function.get()))->co_consts : nullptr;
  for (Py_ssize_t i = 0; constants && i < PyTuple_GET_SIZE(constants); ++i) {
    PyObject* message = PyTuple_GET_ITEM(constants, i);
    if (!PyUnicode_Check(message) || std::string_view(utf8Of(message)).find("the use_reentrant parameter should be") == std::string_view::npos) continue;
    return static_cast<bool>(e.call(torchObject("warnings.warn"), &message, 1, nullptr));
  }
  e.breakHere("unsupported call", "torch.utils.checkpoint without use_reentrant");
}

/// Whether one of a function's results, of a type that has gradients, has none.
bool leadsNowhere(PyObject* result) {
  for (Py_ssize_t i = 0; PyTuple_CheckExact(result) && i < PyTuple_GET_SIZE(result); ++i)
    if (leadsNowhere(PyTuple_GET_ITEM(result, i))) return true;
  return isTensorObject(result) && torch::autograd::isDifferentiableType(tensorOf(result).scalar_type()) && !tensorOf(result).requires_grad();
}

/// torch.utils.checkpoint: only memory differs, so the function is followed as if it were called plainly.
PyRef ruleCheckpoint(Evaluation& e, PyObject* callable, const CallArguments& a) {
  static const char* const kOwn[] = {"use_reentrant", "context_fn", "preserve_rng_state", "determinism_check", "debug", "early_stop"};
  if (a.positional == 0) e.breakHere("unsupported call", "torch.utils.checkpoint without a function");
  PyObject* reentrant = a.keyword("use_reentrant");
  if (reentrant == Py_None) reentrant = nullptr;
  if (!reentrant && !warnOfMissingReentrant(e, callable)) return {};
  const int chosen = reentrant ? e.truth(reentrant) : 1;
  if (chosen < 0) return {};
  const bool isReentrant = chosen == 1;
  std::vector<PyObject*> args(a.args.begin() + 1, a.args.begin() + a.positional);
  PyRef names = PyRef::steal(PyList_New(0));
  for (size_t i = 0; i < a.keywords(); ++i) {
    bool own = false;
    for (const char* name : kOwn) own = own || PyUnicode_CompareWithASCIIString(a.keywordName(i), name) == 0;
    if (own) continue;
    PyList_Append(names.get(), a.keywordName(i));
    args.push_back(a.args[a.positional + i]);
  }
  PyRef tuple = PyRef::steal(PyList_AsTuple(names.get()));
  if (isReentrant && (a.keyword("context_fn") || a.keyword("debug") || PyTuple_GET_SIZE(tuple.get()) > 0))
    e.breakHere("unsupported call", "torch.utils.checkpoint of the reentrant form takes no such arguments");
  checkCheckpoint(e, a);
  // The reentrant form is a node of the graph whose inputs are the tensors it is given: without a gradient among them it has none.
  bool wanted = !isReentrant;
  for (PyObject* given : args) wanted = wanted || (isTensorObject(given) && tensorOf(given).requires_grad());
  if (isReentrant) {
    // Its own warning where there is none.
    PyRef given = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(a.positional) - 1));
    for (size_t i = 1; i < a.positional; ++i) PyTuple_SET_ITEM(given.get(), static_cast<Py_ssize_t>(i) - 1, PyRef::borrow(a.args[i]).release());
    PyObject* checked[] = {given.get()};
    if (!e.call(torchObject("torch.utils.checkpoint.check_backward_validity"), checked, 1, nullptr)) return {};
  }
  // A class of the program hears that its tensors are asked for their device.
  const bool hears = std::any_of(args.begin(), args.end(), [](PyObject* o) { return isTensorObject(o) && !isPlainTensorClass(Py_TYPE(o)); });
  if (hears && !e.call(torchObject("torch.utils.checkpoint._infer_device_type"), args.data(), a.positional - 1, nullptr)) return {};
  // What a checkpoint keeps to compute again are its positional arguments, and a tensor of inference mode cannot be kept.
  for (size_t i = 1; i < a.positional && wanted && at::GradMode::is_enabled(); ++i)
    if (isTensorObject(a.args[i]) && tensorOf(a.args[i]).is_inference())
      e.breakHere("unsupported call", "torch.utils.checkpoint of a tensor of inference mode raises");
  const bool switches = e.torchCalls() && !wanted && at::GradMode::is_enabled();  // a graph of calls shows it
  at::AutoGradMode mode(wanted && at::GradMode::is_enabled());
  static PyObject* const setGradMode = torchObject("torch._C._set_grad_enabled");
  PyObject *off[] = {Py_False}, *on[] = {Py_True};
  if (switches) e.call(setGradMode, off, 1, nullptr);
  const Evaluation::Effects before = e.effectsSoFar();
  const uint64_t first = at::sequence_number::peek();
  PyRef result = e.call(a.args[0], args.data(), a.positional - 1, PyTuple_GET_SIZE(tuple.get()) ? tuple.get() : nullptr);
  if (isReentrant && result && at::GradMode::is_enabled() && leadsNowhere(result.get()))
    e.breakHere("unsupported call", "torch.utils.checkpoint of the reentrant form gives a result a history that leads nowhere");
  if (isReentrant && at::GradMode::is_enabled()) e.trace().reentrantCheckpoints().push_back({first, at::sequence_number::peek()});
  if (switches && !result) {
    clearError();
    e.breakHere("exception", "a function under torch.utils.checkpoint raises");
  }
  if (switches) e.call(setGradMode, on, 1, nullptr);
  if (result && at::GradMode::is_enabled() && !(e.effectsSoFar() == before) && requiresGrad(result.get()))
    e.breakHere("side effect", "torch.utils.checkpoint runs a function with effects, which are done again when backward recomputes it");
  return result;
}

/// __new__ of builtin types: the class that it is called on holds the C function.
PyRef ruleNew(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyObject* owner = PyCFunction_GET_SELF(callable);
  if (a.positional == 0 || !PyType_Check(a.args[0]) || !owner || !PyType_Check(owner)) return e.callReal(callable, a);
  auto* base = reinterpret_cast<PyTypeObject*>(owner);
  if (PyType_IsSubtype(base, &_PyWeakref_RefType))
    e.breakHere("finalizer", std::string("a weak reference of class ") + reinterpret_cast<PyTypeObject*>(a.args[0])->tp_name + " is made");
  e.refuseFinalizer(reinterpret_cast<PyTypeObject*>(a.args[0]));
  PyRef made;
  if (base == &PyBaseObject_Type) {
    made = e.callRaw(callable, a);  // counts its arguments
  } else if (PyType_IsSubtype(base, &PyDict_Type) || PyType_IsSubtype(base, &PyList_Type) || PyType_IsSubtype(base, &PySet_Type)) {
    PyObject* args[] = {a.args[0]};
    made = e.callRaw(callable, {args, 1, nullptr});
  } else {
    std::vector<PyRef> keep;
    std::vector<PyObject*> args;
    for (size_t i = 0; i < a.total(); ++i) {
      const bool elements = PyType_IsSubtype(base, &PyTuple_Type) || PyType_IsSubtype(base, &PyFrozenSet_Type);
      const bool collect = i > 0 && (elements || lazyOf(a.args[i]) || PyIter_Check(a.args[i]));
      keep.push_back(collect ? e.collect(a.args[i], true) : e.expose(a.args[i]));
      if (!keep.back()) return {};
      args.push_back(keep.back().get());
    }
    made = e.callRaw(callable, {args.data(), a.positional, a.kwNames});
  }
  if (made && !isConstantValue(made.get()) && !e.origin(made.get())) e.adopt(made.get());
  return made;
}

/// Whether a container has other parts than `exposed`, what C code is given in its place: tensors. A tuple whose elements nobody read is none of them.
bool holdsTensors(Evaluation& e, PyObject* dict, PyObject* exposed) {
  PyObject *key, *raw;
  for (Py_ssize_t at = 0; exposed != dict && PyDict_Next(dict, &at, &key, &raw);) {
    PyObject* given = PyDict_GetItem(exposed, key);
    if (given != raw && given != e.settled(raw).get()) return true;
  }
  return false;
}

/// object.__reduce_ex__: copies of the state, all of it read.
PyRef ruleReduceEx(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyTypeObject* type = Py_TYPE(a.args[0]);
  for (const char* name : {"__reduce__", "__getstate__"}) {
    PyObject* method = e.typeLookup(type, internedName(name));
    if (method && PyFunction_Check(method)) e.breakHere("unsupported call", std::string("copying a ") + type->tp_name + " with its own " + name);
  }
  PyRef dict = e.instanceDict(a.args[0]);
  PyRef exposed = dict ? e.expose(dict.get()) : PyRef();
  if (exposed && holdsTensors(e, dict.get(), exposed.get())) e.breakHere("unsupported call", std::string("copying a ") + type->tp_name + " that holds tensors");
  return e.callRaw(callable, a);
}

/// torch._dynamo.skip_frame and step_unsupported: the frame that calls it is Python's, what that calls is captured.
PyRef ruleSkipFrame(Evaluation& e, PyObject* callable, const CallArguments&) {
  PyRef name = PyRef::steal(PyObject_GetAttrString(callable, "__name__"));
  const std::string reason = std::string("torch._dynamo.") + (name ? utf8Of(name.get()) : "skip_frame") + "() is called";
  if (e.frame()->caller) e.breakHere("explicit graph break", reason, "Remove the call to compile the function whole.");
  throw FrameSkipped{reason};
}

PyRef ruleAutogradApply(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyObject* cls = PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : nullptr;
  if (!cls || !PyType_Check(cls)) e.breakHere("unsupported call", "autograd.Function.apply without a class");
  TorchCalls::Scope scope(e.torchCalls());
  const Evaluation::Effects before = e.effectsSoFar();
  PyRef result = e.functions().apply(cls, a);
  if (e.torchCalls() && !(e.effectsSoFar() == before))
    e.breakHere("autograd.Function", std::string(reinterpret_cast<PyTypeObject*>(cls)->tp_name) + " has side effects, which the backend's graph would do again");
  scope.done(cls, a, result.get(), TorchCalls::Kind::AutogradFunction);
  return result;
}

/// Methods that need the memory, the values or the history of a tensor, which a stand-in does not have.
PyRef ruleNeedsTensor(Evaluation& e, PyObject* callable, const CallArguments&) {
  PyRef name = PyRef::steal(PyObject_GetAttrString(callable, "__name__"));
  clearError();
  e.breakHere("tensor internals", std::string(name ? utf8Of(name.get()) : "a method") + " needs a tensor that exists",
              "Move the call out of the compiled region.");
}

bool isNoView(PyObject* tensor, PyObject*) { return isTensorObject(tensor) && !tensorOf(tensor).is_inference() && !tensorOf(tensor).is_view(); }

/// Tensor.detach_: what the region computed loses its history in the stand-in as it does there; a leaf that records none has none to lose.
PyRef ruleDetachInPlace(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (a.total() != 1 || !e.isStandIn(a.args[0]) || !isPlainTensorClass(Py_TYPE(a.args[0]))) return ruleNeedsTensor(e, callable, a);
  const at::Tensor& t = tensorOf(a.args[0]);
  const auto input = e.trace().inputOf(t);
  if (!input) return e.callReal(callable, a);
  const at::Tensor& real = e.trace().inputs()[static_cast<size_t>(*input)].real;
  const Source* source = e.sourceOf(a.args[0]);
  if (t.requires_grad() || real.is_inference() || real.is_view() || !source) return ruleNeedsTensor(e, callable, a);
  e.guardCustom(source, isNoView, Py_None, "a tensor that is no view of another");
  return PyRef::borrow(a.args[0]);
}

/// Functions whose results' sizes are numbers in a tensor of lengths.
PyRef ruleReadsLengths(Evaluation& e, PyObject* callable, const CallArguments& a) {
  constexpr size_t kLengths = 1;  // of both functions
  if (a.positional <= kLengths || !e.isStandIn(a.args[kLengths])) return e.callRaw(callable, a);
  e.breakHere("data-dependent operator", "the lengths of packed sequences are data, which decide the sizes of what is computed", "Pack and unpack sequences outside of the compiled region.");
}

PyObject* ofHooks(const char* name) {
  PyRef module = PyRef::steal(PyImport_ImportModule("fusebox._hooks"));
  PyRef function = module ? PyRef::steal(PyObject_GetAttrString(module.get(), name)) : PyRef();
  return function.get();  // the module keeps it
}

/// Whether what a hook on a tensor that the graph computes sees is the graph's: a view is made again of its base, beside what the graph made of it.
bool isHistoryOfGraph(const at::Tensor& tensor) {
  if (!tensor.requires_grad() || tensor.is_leaf() || trace::insideTransform()) return false;
  const auto* view = torch::autograd::impl::get_view_autograd_meta(tensor);
  return !view || !view->has_bw_view();
}

/// Tensor.register_hook and its like of a leaf from outside: what is set after the graph sees the same gradients, whatever the graph does with
/// the tensor. So does a hook on what the graph computes, unless that is written to in between; a backend in Python may compute all gradients at once.
PyRef ruleRegisterHook(Evaluation& e, PyObject* callable, const CallArguments& a) {
  Origin* o = a.positional > 0 ? e.origin(a.args[0]) : nullptr;
  const bool isOutside = o && o->source && o->twin && isTensorObject(o->twin.get());
  const bool fits = a.positional == 2 && a.keywords() == 0 && isTensorObject(a.args[0]) && isPlainTensorClass(Py_TYPE(a.args[0])) && PyCallable_Check(a.args[1]);
  if (!fits) return ruleNeedsTensor(e, callable, a);
  if (isOutside) {
    const at::Tensor& tensor = tensorOf(o->twin.get());
    if (!tensor.requires_grad() || !tensor.is_leaf()) return ruleNeedsTensor(e, callable, a);
    e.noteHookedLeaf(a.args[0], a.args[1]);
  } else {
    PyRef name = PyRef::steal(PyObject_GetAttrString(callable, "__name__"));
    const bool isPlainHook = name && std::string_view(utf8Of(name.get())) == "register_hook";
    if ((o && o->source) || !isPlainHook || e.torchCalls() || !isHistoryOfGraph(tensorOf(a.args[0]))) return ruleNeedsTensor(e, callable, a);
    e.noteHooked(a.args[0]);
  }
  PyObject *type = torchObject("torch.utils.hooks.RemovableHandle"), *set = ofHooks("register");
  PyRef none = PyRef::steal(PyTuple_New(0));
  PyRef handle = type && set ? PyRef::steal(reinterpret_cast<PyTypeObject*>(type)->tp_new(reinterpret_cast<PyTypeObject*>(type), none.get(), nullptr)) : PyRef();
  if (!handle) return {};
  e.adopt(handle.get());
  for (PyObject* known : {set, callable}) e.pin(known, Why::Process);
  PyObject* args[] = {handle.get(), callable, a.args[0], a.args[1]};
  e.deferCall(set, {args, 4, nullptr}, true);
  e.putsOffHooks = true;
  return handle;
}

/// BackwardHook._apply_on_tensors(self, set, args): hooks on the gradients of a module.
PyRef ruleModuleHook(Evaluation& e, PyObject* callable, const CallArguments& a) {
  const bool fits = a.positional == 3 && a.keywords() == 0 && PyTuple_Check(a.args[2]);
  if (!fits || e.torchCalls() || trace::insideTransform()) e.breakHere("autograd graph access", "hooks on the gradients of a module are set");
  e.pin(callable, Why::Process);
  return e.call(ofHooks("on_tensors"), a.args, a.positional, a.kwNames);
}

PyRef ruleRemoveHook(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyObject* remove = ofHooks("remove");
  if (!remove) return {};
  PyObject** dict = a.positional == 1 && a.keywords() == 0 && e.isFresh(a.args[0]) ? _PyObject_GetDictPtr(a.args[0]) : nullptr;
  const bool waits = dict && (!*dict || !PyDict_Contains(*dict, internedName("id")));
  if (!waits) return e.call(remove, a.args, a.positional, a.kwNames);
  e.pin(callable, Why::Process);
  e.deferCall(callable, a, true);
  return PyRef::borrow(Py_None);
}

PyRef ruleToArray(Evaluation& e, PyObject* callable, const CallArguments& a) {
  const bool isPlain = a.total() == 1 || (a.positional == 1 && a.total() == 2 && a.keyword("force") == Py_False);
  PyRef array = isPlain ? e.arrays().ofTensor(a.args[0]) : PyRef();
  if (a.positional == 1 && a.total() == 2 && a.keyword("force") == Py_True && e.isStandIn(a.args[0]) && isPlainTensorClass(Py_TYPE(a.args[0]))) {
    PyRef plain = e.callMethodNamed(a.args[0], "detach", {});
    for (const char* step : {"cpu", "resolve_conj", "resolve_neg"})
      if (plain) plain = e.callMethodNamed(plain.get(), step, {});
    if (!plain) return {};
    array = e.arrays().ofTensor(plain.get());
  }
  return array ? array : ruleNeedsTensor(e, callable, a);
}

PyRef ruleItem(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyRef number = a.total() == 1 ? deferredItem(e, a.args[0], 'v') : PyRef();
  return number ? number : e.callReal(callable, a);
}

PyRef ruleToList(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyRef list = a.total() == 1 ? deferredList(e, a.args[0]) : PyRef();
  return list ? list : ruleNeedsTensor(e, callable, a);
}

/// Where an input lies in its storage is guarded when somebody asks.
PyRef ruleStorageOffset(Evaluation& e, PyObject* callable, const CallArguments& a) {
  e.requireOffsets();
  if (a.positional == 0 || !e.isTensor(a.args[0]) || !tensorOf(a.args[0]).has_storage()) return e.callReal(callable, a);
  // What is written to an input is a tensor of its own until the graph has run.
  const auto isWrittenPart = [&](const trace::TracedInput& input) {
    return input.real.has_storage() && input.real.storage_offset() != 0 && at::functionalization::impl::isFunctionalTensor(input.standIn) &&
           input.standIn.storage().unsafeGetStorageImpl() == tensorOf(a.args[0]).storage().unsafeGetStorageImpl() &&
           at::functionalization::impl::unsafeGetFunctionalWrapper(input.standIn)->has_data_mutation();
  };
  if (std::any_of(e.trace().inputs().begin(), e.trace().inputs().end(), isWrittenPart))
    e.breakHere("tensor internals", "where a part of a larger memory lies is asked for after it was written to");
  return e.callReal(callable, a);
}

/// as_strided beyond the storage is an error in eager; the shapes that are computed here have no memory that could end.
PyRef ruleAsStrided(Evaluation& e, PyObject* callable, const CallArguments& a) {
  e.requireStorage();
  PyRef made = e.callReal(callable, a);
  const trace::TraceTensorImpl* view = made && e.isTensor(made.get()) ? trace::asTraceThroughWrapper(tensorOf(made.get())) : nullptr;
  if (!view || view->meta().numel() == 0) return made;
  const at::Tensor& meta = view->meta();
  int64_t last = meta.storage_offset();
  for (int64_t d = 0; d < meta.dim(); ++d) last += (meta.size(d) - 1) * meta.stride(d);
  if ((last + 1) * static_cast<int64_t>(meta.itemsize()) > static_cast<int64_t>(meta.storage().nbytes()))
    e.breakHere("exception", "as_strided reaches beyond the storage of its tensor");
  return made;
}

PyRef ruleRequiresGrad(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyObject* given = a.positional > 1 ? a.args[1] : a.keyword("requires_grad");
  Origin* o = e.origin(a.args[0]);
  if (!o || !o->source) return e.callReal(callable, a);
  e.changeRequiresGrad(a.args[0], given ? given : Py_True);
  return PyRef::borrow(a.args[0]);
}

PyRef ruleBackward(Evaluation& e, PyObject*, const CallArguments&) {
  e.breakHere("backward", "backward() is called: gradients are accumulated outside of the graph",
              "Call backward() outside of the compiled function.");
}

/// libtorch's engine works on the thread that calls it, where the trace is, whatever the device is.
class OneThread {
 public:
  OneThread() { state().set_multithreading_enabled(false); }
  ~OneThread() { state().set_multithreading_enabled(before_); }
  OneThread(const OneThread&) = delete;

 private:
  static c10::AutogradState& state() { return c10::AutogradState::get_tls_state(); }
  const bool before_ = state().get_multithreading_enabled();
};

/// Whether derivatives in the tensors that torch.autograd.grad is given may go through the history of an input, which its stand-in does not have: they
/// may lie there, unless this segment computed them or they are that input.
bool mayLieBehind(Evaluation& e, const CallArguments& a, const at::Tensor& standIn) {
  PyObject* given = a.positional > 1 ? a.args[1] : a.keyword("inputs");
  const auto isSafe = [&](PyObject* o) {
    if (!o || !e.isTensor(o)) return false;
    return e.sourceOf(o) == nullptr || tensorOf(o).unsafeGetTensorImpl() == standIn.unsafeGetTensorImpl();
  };
  if (!given || !(PyList_CheckExact(given) || PyTuple_CheckExact(given))) return !isSafe(given);
  for (Py_ssize_t i = 0; i < e.builtinLength(given); ++i)
    if (!isSafe(e.element(given, i).get())) return true;
  return false;
}

/// torch.autograd.grad of what this segment computed is followed: libtorch's engine runs on stand-ins and its operators are
/// recorded. An input with a history of its own, which a stand-in does not have, would lose part of the gradient.
PyRef ruleAutogradGrad(Evaluation& e, PyObject* callable, const CallArguments& a) {
  const OneThread engine;
  if (e.putsOffHooks) e.breakHere("backward", "torch.autograd.grad() after a hook has been put on the gradient of an input");
  if (!e.trace().reentrantCheckpoints().empty()) e.breakHere("backward", "torch.autograd.grad() may meet a checkpoint with use_reentrant=True, which refuses it");
  if (savedTensorHooksWaiting() == SavedTensorHooks::Programs)
    e.breakHere("backward", "torch.autograd.grad() reads what hooks on saved tensors give back");
  if (trace::insideTransform()) return e.callReal(callable, a);  // which has histories of its own, from where it was entered
  for (const trace::TracedInput& input : e.trace().inputs())
    if (input.real.requires_grad() && !input.real.is_leaf() && mayLieBehind(e, a, input.standIn))
      e.breakHere("backward", "torch.autograd.grad() may reach behind an input that is not a leaf");
    else if (aot::hasGradientHooks(input.real))
      e.breakHere("backward", "torch.autograd.grad() calls a hook on the gradient of an input");
  for (const trace::TracedInput& input : e.trace().inputs()) {
    const PyRef standIn = PyRef::steal(newTensorObject(input.standIn));
    if (const Source* source = input.real.requires_grad() ? e.sourceOf(standIn.get()) : nullptr)
      e.guardDerivativesOf(source);
  }
  return e.callReal(callable, a);
}

/// What the current device is, which is asked for at every check: in C, since a check runs no Python.
PyRef ruleCurrentDeviceFact(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyRef fact = rulePure(e, callable, a);  // CUDA is initialised from here on, where there is a device
  if (!fact || !trace::usesCuda()) return fact;
  PyObject* current = torchObject("torch._C._cuda_getDevice");
  if (!current) e.breakHere("state query", "the current CUDA device is asked for, of which this PyTorch knows nothing");
  return guardAnswer(e, current, {}, "the current CUDA device") ? std::move(fact) : PyRef();
}

/// What a device is; without an argument, the current one.
PyRef ruleDeviceFact(Evaluation& e, PyObject* callable, const CallArguments& a) {
  const bool isNamed = a.total() > 0 && a.args[0] != Py_None;
  return isNamed ? rulePure(e, callable, a) : ruleCurrentDeviceFact(e, callable, a);
}

/// Follows a function of Fusebox's own package in the place of what was called.
PyRef followInstead(Evaluation& e, const char* module, const char* name, const CallArguments& a) {
  PyRef owner = PyRef::steal(PyImport_ImportModule(module));
  PyRef plain = owner && name ? PyRef::steal(PyObject_GetAttrString(owner.get(), name)) : PyRef();
  return plain ? e.call(plain.get(), a.args, a.positional, a.kwNames) : PyRef();
}

/// Higher-order operators, and functions on them that need a transform, are followed in the form that _higher_order.py gives them.
template <const char* kName>
PyRef ruleHigherOrder(Evaluation& e, PyObject*, const CallArguments& a) {
  return followInstead(e, "fusebox._higher_order", kName, a);
}
constexpr char kFlexAttention[] = "flex_attention", kOrderedToDense[] = "ordered_to_dense", kAssociativeScan[] = "associative_scan",
               kOutDtype[] = "out_dtype", kWrap[] = "wrap", kWrapWithGrad[] = "wrap_with_set_grad_enabled", kWrapWithAutocast[] = "wrap_with_autocast",
               kMaskedInput[] = "masked_input", kMap[] = "map_rows", kScan[] = "scan_rows", kForeachAddcdiv[] = "foreach_addcdiv_",
               kGrouped[] = "grouped_by_device_and_dtype", kOneGroup[] = "one_group", kOptimizerNumber[] = "optimizer_number", kHints[] = "hints_wrapper";

/// Collectives that write to their arguments are followed as operators of the graph, in the form that _collectives.py gives them.
PyRef ruleCollective(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyRef name = PyRef::steal(PyObject_GetAttrString(callable, "__name__"));
  return name ? followInstead(e, "fusebox._collectives", utf8Of(name.get()), a) : PyRef();
}

/// torch.masked's (op, input, mask, …) defines a class in each call, which only a MaskedTensor needs.
PyRef ruleMaskedInput(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (a.positional < 3 || !PyCallable_Check(a.args[0]) || !isTensorObject(a.args[1]) || !isPlainTensorClass(Py_TYPE(a.args[1])))
    e.breakHere("unsupported call", "torch.masked is called with what is no plain tensor");
  return ruleHigherOrder<kMaskedInput>(e, callable, a);
}

/// wrap(function, …) is the function's call; a backend in Python gets it as a graph of its own.
PyRef ruleWrap(Evaluation& e, PyObject* op, const CallArguments& a) {
  return e.torchCalls() && a.positional > 0 ? e.torchCalls()->wrap(op, a) : ruleHigherOrder<kWrap>(e, op, a);
}

/// hints_wrapper(function, arguments, {}, hints): the hints are for another compiler.
PyRef ruleHints(Evaluation& e, PyObject* op, const CallArguments& a) {
  PyObject* hints = a.positional == 4 ? a.args[3] : a.keyword("hints");
  bool fits = a.positional >= 3 && a.total() == 4 && hints && PyTuple_CheckExact(a.args[1]) && !e.torchCalls();
  for (PyObject* dict : {fits ? a.args[2] : nullptr, hints}) fits = fits && PyDict_CheckExact(dict) && e.isFresh(dict);
  fits = fits && PyDict_GET_SIZE(a.args[2]) == 0;
  PyObject *key, *value;
  for (Py_ssize_t at = 0; fits && PyDict_Next(hints, &at, &key, &value);) fits = PyUnicode_Check(key) && isConstantValue(value) && value != Py_None;
  for (Py_ssize_t i = 0; fits && i < PyTuple_GET_SIZE(a.args[1]); ++i) fits = isTensorObject(PyTuple_GET_ITEM(a.args[1], i));
  if (!fits) e.breakHere("higher-order operator", "hints_wrapper is called with what it refuses, or for a backend in Python");
  return ruleHigherOrder<kHints>(e, op, a);
}

/// map_impl(function, xs, others) is a call for every row, and so is scan; a backend in Python gets the function as a graph of its own.
template <const char* kName>
PyRef ruleRows(Evaluation& e, PyObject* op, const CallArguments& a) {
  bool known = false;
  if (!e.torchCalls()) return ruleHigherOrder<kName>(e, op, a);
  PyRef made = e.torchCalls()->higherOrder(op, a, &known);
  if (!known) e.breakHere("higher-order operator", "an operator of a function is called with other arguments than PyTorch's function gives it");
  return made;
}

/// torch.Tensor._make_wrapper_subclass(class, size, …): an object of the evaluator's.
PyRef ruleWrapperSubclass(Evaluation& e, PyObject* callable, const CallArguments& a) {
  constexpr size_t kGrad = 9;
  PyObject* wants = a.positional > kGrad ? a.args[kGrad] : a.keyword("requires_grad");
  if (wants && wants != Py_False) e.breakHere("tensor subclass", "a tensor of a class of its own that requires a gradient is made");
  // What the class is asked for at every look, recipes would not say again.
  for (size_t i = kGrad + 1; i < a.positional; ++i)
    if (a.args[i] != Py_None && a.args[i] != Py_False) e.breakHere("tensor subclass", "a tensor of a class of its own that answers for its sizes, device or layout is made");
  for (const char* name : {"dispatch_sizes_strides_policy", "dispatch_device", "dispatch_layout", "storage_size"})
    if (PyObject* given = a.keyword(name); given && given != Py_None && given != Py_False)
      e.breakHere("tensor subclass", "a tensor of a class of its own that answers for its sizes, device or layout is made");
  PyRef made = e.callReal(callable, a);
  if (made && (!isWrapperClass(Py_TYPE(made.get())) || Py_TYPE(made.get()) != reinterpret_cast<PyTypeObject*>(a.args[0])))
    e.breakHere("tensor subclass", std::string("a tensor of class ") + Py_TYPE(made.get())->tp_name + " is made without data");
  return made;
}

/// Functions of torch.nested that make nested tensors are followed, once what that needs is there.
PyRef ruleNestedMaker(Evaluation& e, PyObject* callable, const CallArguments& a) {
  setUpNested();
  PyRef name = PyRef::steal(PyObject_GetAttrString(callable, "__name__"));
  static PyObject* const maker = torchObject("fusebox._nested.maker");
  PyRef plain = name ? PyRef::steal(PyObject_CallOneArg(maker, name.get())) : PyRef();
  if (!plain) return {};
  e.pin(plain.get(), Why::Process);
  return e.call(plain.get(), a.args, a.positional, a.kwNames);
}

/// A function that CPython runs on what the evaluator has; its result is new, or one for as long as the process lives.
PyRef ruleAsItIs(Evaluation& e, PyObject* callable, const CallArguments& a) {
  const ClassesNotAsked off;
  return e.checked(PyObject_Vectorcall(callable, a.args, a.positional, a.kwNames));
}

/// Between values and padded tensors: torch.nested's own calls are followed in a form that has a gradient.
template <const char* kName>
PyRef rulePadding(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (!isLibraryNamespace(e.frame()->globals, Library::Torch)) return e.callReal(callable, a);
  PyObject* plain = torchObject(kName);
  e.pin(plain, Why::Process);
  return e.call(plain, a.args, a.positional, a.kwNames);
}
constexpr char kPadded[] = "fusebox._nested.padded", kPacked[] = "fusebox._nested.packed";

/// torch.optim gives _foreach_addcdiv_ tensors for numbers where steps are compiled: a list, which no overload of it takes, or one for all, which is none
/// beside distributed ones.
PyRef ruleForeachAddcdiv(Evaluation& e, PyObject* callable, const CallArguments& a) {
  constexpr size_t kNumbers = 3;
  const bool fits = a.total() == kNumbers + 1 && a.positional == kNumbers + 1 && isLibraryNamespace(e.frame()->globals, Library::Torch);
  const auto first = [](PyObject* list) { return PyList_CheckExact(list) && PyList_GET_SIZE(list) > 0 ? PyList_GET_ITEM(list, 0) : Py_None; };
  if (fits && isDistributedStandIn(first(a.args[0])) && e.isTensor(a.args[kNumbers])) {
    PyRef numbers = e.callMethodNamed(a.args[kNumbers], "unbind", {});
    if (!numbers) return {};
    PyObject* given[] = {a.args[0], a.args[1], a.args[2], numbers.get()};
    return ruleHigherOrder<kForeachAddcdiv>(e, callable, {given, kNumbers + 1, nullptr});
  }
  if (!fits || !isTensorObject(first(a.args[kNumbers]))) return e.callReal(callable, a);
  return ruleHigherOrder<kForeachAddcdiv>(e, callable, a);
}

/// Optimizer's (lists of tensors, …) are grouped by the first list's devices and types, of which there mostly is one.
PyRef ruleGrouped(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyObject* first = a.positional > 0 && PyList_CheckExact(a.args[0]) && PyList_GET_SIZE(a.args[0]) > 0 ? PyList_GET_ITEM(a.args[0], 0) : nullptr;
  const Py_ssize_t count = first && PyList_CheckExact(first) ? PyList_GET_SIZE(first) : 0;
  bool isOne = count > 0;
  for (Py_ssize_t i = 0; isOne && i < count; ++i) {
    PyObject *tensor = PyList_GET_ITEM(first, i), *leader = PyList_GET_ITEM(first, 0);
    isOne = isTensorObject(tensor) && tensorOf(tensor).device() == tensorOf(leader).device() && tensorOf(tensor).scalar_type() == tensorOf(leader).scalar_type();
  }
  return isOne ? ruleHigherOrder<kOneGroup>(e, callable, a) : ruleHigherOrder<kGrouped>(e, callable, a);
}

/// torch.optim's _get_value(x): in compiled code the tensor, so that a count of steps does not become a number.
PyRef ruleOptimizerNumber(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (a.total() == 1 && a.positional == 1 && e.torchCalls()) return PyRef::borrow(a.args[0]);
  return ruleHigherOrder<kOptimizerNumber>(e, callable, a);
}

/// torch._functionalize_unsafe_set(made, base): a view of a wrapper gets the storage of its base, in which nothing lies.
PyRef ruleShareStorage(Evaluation& e, PyObject* callable, const CallArguments& a) {
  const bool fits = a.total() == 2 && a.positional == 2 && isWrapperClass(Py_TYPE(a.args[0])) && isWrapperClass(Py_TYPE(a.args[1])) && e.isFresh(a.args[0]);
  if (!fits) e.breakHere("tensor subclass", "the storage of a tensor that existed before, or has data, is exchanged");
  const ClassesNotAsked off;
  return e.checked(PyObject_CallFunctionObjArgs(callable, a.args[0], a.args[1], nullptr));
}

/// An operator of libtorch's autograd as graphs of compiled autograd call it: `op` has the function in C++, which computes on tensors.
PyRef ruleAutogradOperator(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (a.positional == 0 || a.keywords() > 0) return e.refuseArguments(callable, a), PyRef();
  e.pin(a.args[0], Why::Process);
  return e.callReal(a.args[0], {a.args.begin() + 1, a.positional - 1, nullptr});
}

/// Whether `object` is a class of tensors of the program with data of their own, or torch.Tensor itself.
bool isClassWithData(PyObject* object) {
  if (!PyType_Check(object)) return false;
  auto* type = reinterpret_cast<PyTypeObject*>(object);
  return type == tensorType() || (isFollowedClass(type) && !isWrapperClass(type));
}

PyRef ruleAsSubclass(Evaluation& e, PyObject* callable, const CallArguments& a) {
  const bool fits = a.total() == 2 && a.positional == 2 && e.isTensor(a.args[0]) && isClassWithData(a.args[1]) && !e.functionModes().isActive();
  return fits ? ofClass(e, a.args[0], reinterpret_cast<PyTypeObject*>(a.args[1]), false) : e.callReal(callable, a);
}

/// torch.Tensor._make_subclass(class, data)
PyRef ruleMakeSubclass(Evaluation& e, PyObject* callable, const CallArguments& a) {
  const bool fits = a.total() == 2 && a.positional == 2 && isClassWithData(a.args[0]) && e.isTensor(a.args[1]);
  return fits ? ofClass(e, a.args[1], reinterpret_cast<PyTypeObject*>(a.args[0]), true) : e.callReal(callable, a);
}

PyRef ruleIsTensor(Evaluation& e, PyObject*, const CallArguments& a) { return PyRef::borrow(isTensorObject(a.args[0]) && !e.isNumber(a.args[0]) ? Py_True : Py_False); }

/// A tensor, or what answers torch's functions.
PyRef ruleIsTensorLike(Evaluation& e, PyObject*, const CallArguments& a) {
  if (isTensorObject(a.args[0])) return PyRef::borrow(e.isNumber(a.args[0]) ? Py_False : Py_True);
  if (e.getAttr(a.args[0], internedName("__torch_function__"))) return PyRef::borrow(Py_True);
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return {};
  clearError();
  return PyRef::borrow(Py_False);
}

/// torch.compile inside of what is compiled: what it gives is followed where it is called.
PyRef ruleCompiled(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyRef made = e.callRaw(callable, a);
  if (made && !e.origin(made.get())) e.adopt(made.get());
  return made;
}

/// torch.Size.numel()
PyRef ruleNumel(Evaluation& e, PyObject* callable, const CallArguments& a) {
  if (a.total() != 1 || !isSymbolicSize(a.args[0])) return e.callReal(callable, a);
  constexpr int kMultiply = 5;
  PyRef product = PyRef::steal(PyLong_FromLong(1));
  for (Py_ssize_t i = 0; product && i < PyTuple_GET_SIZE(a.args[0]); ++i) product = e.binary(kMultiply, product.get(), PyTuple_GET_ITEM(a.args[0], i));
  return product;
}

/// torch.Tensor(2, 3), torch.LongTensor([1, 2]), torch.FloatTensor(tensor): the old constructors, as torch.empty and torch.tensor on the CPU.
PyRef ruleOldConstructor(Evaluation& e, PyObject* type, const CallArguments& a) {
  const bool isDefault = type == reinterpret_cast<PyObject*>(tensorType());
  const auto is = [&](const char* name, PyObject* value) { return PyRef::steal(PyObject_GetAttrString(type, name)).get() == value; };
  const bool isPlain = isDefault ? torch::tensors::get_default_dispatch_key() == c10::DispatchKey::CPU
                                 : is("is_cuda", Py_False) && is("layout", torchObject("torch.strided"));
  clearError();
  if (a.keywords() > 0 || !isPlain) throw UnfitArguments();
  PyRef dtype = PyRef::steal(isDefault ? PyObject_CallNoArgs(torchObject("torch.get_default_dtype")) : PyObject_GetAttrString(type, "dtype"));
  PyRef zero = PyRef::steal(PyLong_FromLong(0)), cpu = PyRef::steal(PyUnicode_FromString("cpu"));
  PyRef names = PyRef::steal(Py_BuildValue("(ss)", "dtype", "device"));
  std::vector<PyObject*> args(a.args.begin(), a.args.begin() + a.total());
  if (args.size() == 1 && isTensorObject(args[0]) && isPlainTensorClass(Py_TYPE(args[0]))) {
    const at::Tensor& given = tensorOf(args[0]);
    PyRef own = PyRef::steal(PyObject_GetAttrString(args[0], "dtype"));
    if (given.device().is_cpu() && given.layout() == at::kStrided && (isDefault || own.get() == dtype.get())) return aliasOf(e, args[0]);
  }
  if (args.empty()) args.push_back(zero.get());
  const size_t positional = args.size();
  const bool isData = positional == 1 && (PyList_CheckExact(args[0]) || PyTuple_CheckExact(args[0]) || Arrays::is(args[0]));
  const auto isSize = [&](PyObject* value) { return PyLong_CheckExact(value) || isSymbolicInt(value) || (positional == 1 && isSizeObject(value)); };
  if (!isData && !std::all_of(args.begin(), args.end(), isSize)) throw UnfitArguments();
  args.insert(args.end(), {dtype.get(), cpu.get()});
  return e.call(torchObject(isData ? "torch.tensor" : "torch.empty"), args.data(), positional, names.get());
}

constexpr RuleRow kTorchRows[] = {
    {"torch.compiler.is_compiling", ruleTrue},
    {"fusebox._engine.is_capturing", ruleTrue},
    {"fusebox._engine.compiled", ruleCompiled},
    {"torch.compiler.is_dynamo_compiling", ruleTrue},
    {"torch._dynamo.external_utils.is_compiling", ruleTrue},
    {"torch._utils.is_compiling", ruleTrue},
    {"torch.compiler.is_exporting", ruleFalse},
    {"torch._jit_internal.is_scripting", ruleFalse},
    {"torch.jit._trace.is_tracing", ruleFalse},
    {"torch.jit.is_tracing", ruleFalse},
    {"torch.onnx.is_in_onnx_export", ruleFalse},
    {"torch._C._get_tracing_state", ruleNone},
    {"torch._C._is_tracing", ruleFalse},
    {"torch._dynamo.graph_break", ruleGraphBreak},
    {"torch._dynamo.skip_frame", ruleSkipFrame},
    {"torch._dynamo.step_unsupported", ruleSkipFrame},
    {"torch._dynamo.mutation_guard.GenerationTracker.tag", ruleNone},  // notes of PyTorch's own capture, once it was used
    {"torch.Tensor", ruleOldConstructor},
    {"torch.FloatTensor", ruleOldConstructor},
    {"torch.DoubleTensor", ruleOldConstructor},
    {"torch.HalfTensor", ruleOldConstructor},
    {"torch.BFloat16Tensor", ruleOldConstructor},
    {"torch.LongTensor", ruleOldConstructor},
    {"torch.IntTensor", ruleOldConstructor},
    {"torch.ShortTensor", ruleOldConstructor},
    {"torch.CharTensor", ruleOldConstructor},
    {"torch.ByteTensor", ruleOldConstructor},
    {"torch.BoolTensor", ruleOldConstructor},
    {"torch.is_tensor", ruleIsTensor},
    {"torch.overrides.is_tensor_like", ruleIsTensorLike},
    {"torch.cuda.is_available", rulePure},
    {"torch.cuda.device_count", rulePure},
    {"torch.cuda.get_device_properties", ruleDeviceFact},
    {"torch.cuda.get_device_capability", ruleDeviceFact},
    {"torch.cuda.get_device_name", ruleDeviceFact},
    {"torch.cuda.is_bf16_supported", ruleCurrentDeviceFact},
    {"torch.cuda.is_tf32_supported", ruleCurrentDeviceFact},
    {"torch.xpu.is_available", rulePure},
    {"torch.backends.mps.is_available", rulePure},
    {"torch._C._set_grad_enabled", ruleMode},
    {"torch.set_autocast_enabled", ruleMode},
    {"torch.set_autocast_dtype", ruleMode},
    {"torch.set_autocast_cache_enabled", ruleMode},
    {"torch.autocast_increment_nesting", ruleMode},
    {"torch.autocast_decrement_nesting", ruleMode},
    {"torch.clear_autocast_cache", ruleMode},
    {"torch._dynamo.utils._get_error_on_graph_break", ruleErrorOnBreak},
    {"torch._dynamo.utils._set_error_on_graph_break", ruleSetErrorOnBreak},
    {"torch.autograd.grad_mode.inference_mode.__enter__", ruleInferenceMode<true>},
    {"torch.autograd.grad_mode.inference_mode.__exit__", ruleInferenceMode<false>},
    {"torch._C._push_on_torch_function_stack", rulePushMode},
    {"torch._C._pop_torch_function_stack", rulePopMode},
    {"torch._C._len_torch_function_stack", ruleCountModes},
    {"torch._C._get_function_stack_at", ruleModeAt},
    {"torch.device.__enter__", ruleDeviceMode},
    {"torch.device.__exit__", ruleDeviceMode},
    {"torch._C._log_api_usage_once", ruleNone},
    {"torch._C._get_device_properties", rulePure},
    {"torch._C._accelerator_getAccelerator", rulePure},  // that PyTorch was built for
    {"torch._functorch.predispatch.lazy_load_decompositions", ruleSetUp},
    {"torch.autograd.forward_ad._maybe_load_decompositions", ruleSetUp},
    {"torch._C._functorch._vmap_increment_nesting", ruleEnterTransform},
    {"torch._C._functorch._vmap_decrement_nesting", ruleMode},
    {"torch._C._functorch._grad_increment_nesting", ruleEnterTransform},
    {"torch._C._functorch._grad_decrement_nesting", ruleMode},
    {"torch._C._functorch._jvp_increment_nesting", ruleEnterTransform},
    {"torch._C._functorch._jvp_decrement_nesting", ruleMode},
    {"torch._C._set_fwd_grad_enabled", ruleMode},
    {"torch._C._set_sdp_use_flash", ruleMode},
    {"torch._C._set_sdp_use_mem_efficient", ruleMode},
    {"torch._C._set_sdp_use_math", ruleMode},
    {"torch._C._set_sdp_use_cudnn", ruleMode},
    {"torch._C._set_sdp_use_overrideable", ruleMode},
    {"torch._C._enter_dual_level", ruleEnterDualLevel},
    {"torch._C._exit_dual_level", ruleMode},
    {"torch._C._functorch._wrap_for_grad", rulePure},
    {"torch._C._functorch._unwrap_for_grad", rulePure},
    {"torch._C._functorch.set_inplace_requires_grad_allowed", ruleMode},
    {"torch._C._dynamo.autograd_compiler.set_autograd_compiler", ruleSetAutogradCompiler},
    {"torch._C._autograd._saved_tensors_hooks_get_disabled_error_message", rulePure},
    {"torch._C._autograd._saved_tensors_hooks_disable", ruleForbidSavedTensorHooks},
    {"torch._C._autograd._saved_tensors_hooks_enable", ruleMode},
    {"torch._C._functorch._add_batch_dim", rulePure},
    {"torch._C._functorch._remove_batch_dim", rulePure},
    {"torch.Tensor.new", ruleLegacyNew},
    {"torch.Tensor.new_tensor", ruleNewTensor},
    {"torch.Tensor._make_wrapper_subclass", ruleWrapperSubclass},
    {"torch._functionalize_unsafe_set", ruleShareStorage},
    {"torch.distributed.all_gather", ruleCollective},
    {"torch.distributed.all_gather_into_tensor", ruleCollective},
    {"torch.distributed.all_reduce", ruleCollective},
    {"torch.distributed.all_to_all_single", ruleCollective},
    {"torch.distributed.reduce_scatter_tensor", ruleCollective},
    {"torch.nested.nested_tensor_from_jagged", ruleNestedMaker},
    {"torch.nested.as_nested_tensor", ruleNestedMaker},
    {"torch.nested.nested_tensor", ruleNestedMaker},
    {"torch.nested.narrow", ruleNestedMaker},
    {"torch.nested.masked_select", ruleNestedMaker},
    {"torch.ops.aten._jagged_to_padded_dense_forward", rulePadding<kPadded>},
    {"torch.ops.aten._padded_dense_to_jagged_forward", rulePadding<kPacked>},
    {"fusebox._nested.ragged_size", ruleAsItIs},
    {"fusebox._nested.shell", ruleAsItIs},
    {"fusebox._nested.parameters_of", rulePure},
    {"torch.fx.operator_schemas.normalize_function", rulePure},  // of an operator: arguments by name
    {"torch.Tensor._make_subclass", ruleMakeSubclass},
    {"torch.Tensor.as_subclass", ruleAsSubclass},
    {"torch.tensor", ruleTensor},
    {"torch.as_tensor", ruleTensor},
    {"torch._shape_as_tensor", ruleShapeAsTensor},
    {"torch.Size.numel", ruleNumel},
    {"torch._C._functorch.unwrap_if_dead", rulePure},
    {"torch._C._functorch.maybe_get_bdim", rulePure},
    {"torch._C._functorch.peek_interpreter_stack", rulePure},
    {"torch._C._FunctionBase.apply", ruleAutogradApply},
    {"torch.utils.checkpoint.checkpoint", ruleCheckpoint},
    {"torch.utils.checkpoint.create_selective_checkpoint_contexts", ruleSelectiveContexts},
    {"torch._higher_order_ops.out_dtype.out_dtype", ruleHigherOrder<kOutDtype>},
    {"torch._higher_order_ops.foreach_map._foreach_map", ruleHigherOrder<kWrap>},
    {"torch._higher_order_ops.wrap.wrap", ruleWrap},
    {"torch._higher_order_ops.hints_wrap.hints_wrapper", ruleHints},
    {"torch._higher_order_ops.map.map_impl", ruleRows<kMap>},
    {"torch._higher_order_ops.wrap.wrap_with_set_grad_enabled", ruleHigherOrder<kWrapWithGrad>},
    {"torch._higher_order_ops.wrap.wrap_with_autocast", ruleHigherOrder<kWrapWithAutocast>},
    {"torch._higher_order_ops.invoke_subgraph.invoke_subgraph_placeholder", ruleHigherOrder<kWrap>},
    {"torch._higher_order_ops.associative_scan.associative_scan_op", ruleHigherOrder<kAssociativeScan>},
    {"torch._higher_order_ops.scan.scan_op", ruleRows<kScan>},
    {"torch.nn.attention.flex_attention.flex_attention_hop", ruleHigherOrder<kFlexAttention>},
    {"torch.masked._ops._combine_input_and_mask", ruleMaskedInput},
    {"torch.nn.attention.flex_attention._ordered_to_dense", ruleHigherOrder<kOrderedToDense>},
    {"torch._dynamo.compiled_autograd.Op.__call__", ruleAutogradOperator},
    {"torch._dynamo.comptime._Comptime.__call__", ruleComptime},
    {"torch._dynamo.comptime._Comptime.force_static", ruleForceStatic},
    {"torch._dynamo.comptime._Comptime.assert_static", ruleAssertStatic},
    {"torch._foreach_addcdiv_", ruleForeachAddcdiv},
    {"torch.optim.optimizer._get_value", ruleOptimizerNumber},
    {"torch.optim.optimizer.Optimizer._group_tensors_by_device_and_dtype", ruleGrouped},
    {"torch._pack_padded_sequence", ruleReadsLengths},
    {"torch._pad_packed_sequence", ruleReadsLengths},
    {"torch.Tensor.numpy", ruleToArray},
    {"torch.Tensor.tolist", ruleToList},
    {"torch.Tensor.item", ruleItem},
    {"torch.Tensor.__array__", ruleNeedsTensor},
    {"torch.Tensor.__dlpack__", ruleNeedsTensor},
    {"torch.Tensor.__deepcopy__", ruleNeedsTensor},
    {"torch.Tensor.__reduce_ex__", ruleNeedsTensor},
    {"torch.Tensor.data_ptr", ruleNeedsTensor},
    {"torch.Tensor.storage", ruleNeedsTensor},
    {"torch.Tensor.untyped_storage", ruleNeedsTensor},
    {"torch.Tensor._typed_storage", ruleNeedsTensor},
    {"torch.Tensor.share_memory_", ruleNeedsTensor},
    {"torch.Tensor.is_shared", ruleNeedsTensor},
    {"torch.Tensor.pin_memory", ruleNeedsTensor},
    {"torch.Tensor.is_pinned", ruleNeedsTensor},
    {"torch.Tensor.set_", ruleNeedsTensor},
    {"torch.Tensor.resize_", ruleNeedsTensor},
    {"torch.Tensor.resize_as_", ruleNeedsTensor},
    {"torch.Tensor.register_hook", ruleRegisterHook},
    {"torch.utils.hooks.RemovableHandle.remove", ruleRemoveHook},
    {"torch.utils.hooks.BackwardHook._apply_on_tensors", ruleModuleHook},
    {"torch.Tensor.register_post_accumulate_grad_hook", ruleRegisterHook},
    {"torch.Tensor.retain_grad", ruleNeedsTensor},
    {"torch.Tensor.detach_", ruleDetachInPlace},
    {"torch.Tensor._is_view", ruleNeedsTensor},
    {"torch.Tensor.storage_offset", ruleStorageOffset},
    {"torch.Tensor.as_strided", ruleAsStrided},
    {"torch.as_strided", ruleAsStrided},
    {"torch.Tensor.requires_grad_", ruleRequiresGrad},
    {"torch.Tensor.backward", ruleBackward},
    {"torch.autograd.backward", ruleBackward},
    {"torch.autograd.grad", ruleAutogradGrad},
    {"builtins.object.__new__", ruleNew},
    {"builtins.object.__reduce_ex__", ruleReduceEx},
};

}  // namespace

RuleRows torchRules() { return {kTorchRows, std::size(kTorchRows)}; }

}  // namespace fusebox::capture
