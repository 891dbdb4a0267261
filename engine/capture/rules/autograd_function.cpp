#include "engine/capture/rules/autograd_function.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <string_view>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/entries/hook_skip.h"
#include "engine/capture/evaluation/function_modes.h"
#include "engine/capture/evaluation/tensor_subclasses.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/guards/guard_tree.h"
#include "engine/trace/trace_tensor.h"
#include "engine/trace/transform_levels.h"

namespace fusebox::capture {

/// One call of apply.
struct FunctionCalls::Call {
  std::shared_ptr<FunctionCalls*> owner;
  PyRef cls;
  PyObject* standIn = nullptr;  ///< borrowed: it holds this
  int64_t count = 0;            ///< root instructions executed before the call
};

/// Constants that backward methods have read, each from the dict of a module or from a class.
struct FunctionCalls::LateReads {
  struct Read {
    PyRef holder, key, value;
    PyRef place;  ///< (address of the holder, key): what `changedReads` has
    std::string text;
  };
  std::vector<Read> reads;

  ~LateReads() {
    if (Py_IsInitialized()) {
      PyGILState_STATE state = PyGILState_Ensure();
      reads.clear();
      PyGILState_Release(state);
    }
  }
};

namespace {

/// Places of reads that were found changed when a gradient was asked for; guarded by the GIL.
PyObject* changedReads() {
  static PyObject* const made = PySet_New(nullptr);
  return made;
}

/// Predicate of a Custom guard.
bool hasNeverChanged(PyObject*, PyObject* place) { return PySet_Contains(changedReads(), place) == 0; }

/// Borrowed; null where it is gone.
PyObject* heldNow(PyObject* holder, PyObject* key) {
  if (PyType_Check(holder)) return _PyType_Lookup(reinterpret_cast<PyTypeObject*>(holder), key);
  return PyDict_GetItem(holder, key);
}

bool isNamespace(PyObject* dict) { return PyDict_CheckExact(dict) && PyDict_GetItemString(dict, "__name__") && PyDict_GetItemString(dict, "__builtins__"); }

constexpr const char* kCapsule = "fusebox.autograd_function";

std::string nameOf(PyObject* cls) { return reinterpret_cast<PyTypeObject*>(cls)->tp_name; }

/// Whether the dict belongs to a module of Python or torch, which no program changes between forward and backward. (`math` is a file in some builds of
/// Python, and a part of the interpreter in others.)
bool isLibraryDict(PyObject* dict) {
  if (!PyDict_Check(dict)) return false;
  PyObject* file = PyDict_GetItemString(dict, "__file__");
  const char* path = file && PyUnicode_Check(file) ? utf8Of(file) : nullptr;
  PyObject* spec = file ? nullptr : PyDict_GetItemString(dict, "__spec__");
  const PyRef origin = spec && spec != Py_None ? PyRef::steal(PyObject_GetAttrString(spec, "origin")) : PyRef();
  const bool isBuiltIn = origin && PyUnicode_Check(origin.get()) && PyUnicode_CompareWithASCIIString(origin.get(), "built-in") == 0;
  clearError();
  return isBuiltIn || (path && isLibraryPath(path));
}

}  // namespace

FunctionCalls::FunctionCalls(Evaluation& evaluation) : evaluation_(evaluation), self_(std::make_shared<FunctionCalls*>(this)) {}

FunctionCalls::~FunctionCalls() { *self_ = nullptr; }

void FunctionCalls::rethrow() {
  if (!thrown_) return;
  clearError();
  std::rethrow_exception(std::exchange(thrown_, nullptr));
}

/// Evaluates a method on behalf of C code. What evaluation throws must not unwind CPython's frames: it waits in `thrown_`.
template <class Run>
PyObject* FunctionCalls::run(PyObject* self, Run&& evaluate) {
  const auto* call = static_cast<const Call*>(PyCapsule_GetPointer(self, kCapsule));
  FunctionCalls* owner = call ? *call->owner : nullptr;
  if (!owner) {
    if (call) PyErr_SetString(PyExc_RuntimeError, "an autograd.Function of a finished capture is used");
    return nullptr;
  }
  try {
    return evaluate(*owner, *call).release();
  } catch (...) {
    owner->thrown_ = std::current_exception();
    PyErr_SetString(PyExc_RuntimeError, "fusebox: capture stopped in an autograd.Function");
    return nullptr;
  }
}

PyObject* FunctionCalls::runForward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return run(self, [&](FunctionCalls& calls, const Call& call) {
    PyRef results = calls.callMethod(call, "forward", args, count);
    calls.refuseInputs(call, results.get(), args, count);
    return results;
  });
}

void FunctionCalls::refuseInputs(const Call& call, PyObject* results, PyObject* const* args, Py_ssize_t count) {
  const auto refuseInput = [&](PyObject* result) {
    const bool isInput = isTensorObject(result) && std::find(args, args + count, result) != args + count;
    if (isInput && (evaluation_.functionModes().isActive() || answersTorchFunctions(result)))
      evaluation_.breakHere("autograd.Function", "forward of " + nameOf(call.cls.get()) + " returns an argument, of which PyTorch makes a view that a function mode or class hears of");
  };
  if (results) refuseInput(results);
  for (Py_ssize_t i = 0; results && PyTuple_Check(results) && i < PyTuple_GET_SIZE(results); ++i) refuseInput(PyTuple_GET_ITEM(results, i));
}

PyObject* FunctionCalls::runSetup(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return run(self, [&](FunctionCalls& calls, const Call& call) { return calls.callMethod(call, "setup_context", args, count); });
}

PyObject* FunctionCalls::runBackward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return run(self, [&](FunctionCalls& calls, const Call& call) { return calls.callBackward(call, args, count); });
}

PyRef FunctionCalls::callMethod(const Call& call, const char* name, PyObject* const* args, Py_ssize_t count) {
  static PyObject* const kForwardClass = internedName("_forward_cls");
  PyTypeObject* contextType = count > 0 ? Py_TYPE(args[0]) : nullptr;
  if (contextType && reinterpret_cast<PyObject*>(contextType) == PyRef::steal(PyObject_GetAttrString(call.cls.get(), "_backward_cls")).get()) {
    evaluation_.adopt(args[0]);
    // Its backward comes back here too.
    if (PyObject_GenericSetAttr(args[0], kForwardClass, call.standIn) < 0) return {};
  }
  clearError();
  PyRef function = evaluation_.getAttr(call.cls.get(), internedName(name));
  return function ? evaluation_.call(function.get(), args, static_cast<size_t>(count), nullptr) : PyRef();
}

PyRef FunctionCalls::callBackward(const Call& call, PyObject* const* args, Py_ssize_t count) {
  struct Late {
    FunctionCalls& calls;
    const Call* outer;
    PyObject* outerContext;
    ~Late() {
      calls.late_ = outer;
      calls.lateContext_ = outerContext;
    }
  } late{*this, late_, lateContext_};
  late_ = &call;
  lateContext_ = count > 0 ? args[0] : nullptr;
  try {
    const Evaluation::Effects before = evaluation_.effectsSoFar();
    // As BackwardCFunction.apply chooses.
    const auto isDefined = [&](const char* name) {
      PyRef own = PyRef::steal(PyObject_GetAttrString(call.cls.get(), name));
      PyRef inherited = PyRef::steal(PyObject_GetAttrString(torchObject("torch.autograd.Function"), name));
      clearError();
      return own && own.get() != inherited.get();
    };
    const bool isVjp = isDefined("vjp");
    if (isVjp && isDefined("backward")) refuse("is defined, and vjp too");
    PyRef function = evaluation_.getAttr(call.cls.get(), internedName(isVjp ? "vjp" : "backward"));
    PyRef result = function ? evaluation_.call(function.get(), args, static_cast<size_t>(count), nullptr) : PyRef();
    if (!(evaluation_.effectsSoFar() == before)) refuse("has effects, which belong to the moment when it runs");
    return result;
  } catch (CaptureBreak& stopped) {
    stopped.birth = stopped.birth < 0 ? call.count : std::min(stopped.birth, call.count);
    throw;
  }
}

void FunctionCalls::refuse(const std::string& what) {
  evaluation_.breakHere("autograd.Function", "backward of " + nameOf(late_->cls.get()) + " " + what,
                        "Put what backward needs on ctx in forward, and let it do nothing but compute.");
}

bool FunctionCalls::noteRead(PyObject* object, const Source* source) {
  // Code is expected to stay; of an object it matters what is read of it.
  const bool isValue = isConstantValue(object) || isValueObject(object) || isTensorObject(object);
  if (!isValue || !source || isPinned(source)) return false;
  if (source->base && isPinned(source->base) && isLibraryDict(source->base->key.get())) return false;
  if (isLibraryReading()) return false;
  const bool isOfModule = source->kind == Source::Kind::DictItem && isPinned(source->base) && isNamespace(source->base->key.get());
  if (!isOfModule || !isConstantValue(object)) refuse("reads " + source->str() + ", which may change before it runs");
  noteLateRead(source->base->key.get(), source->key.get(), object, source->str());
  return true;
}

void FunctionCalls::noteLateRead(PyObject* holder, PyObject* key, PyObject* value, const std::string& text) {
  PyRef place = PyRef::steal(Py_BuildValue("(NO)", PyLong_FromVoidPtr(holder), key));
  if (!place || !hasNeverChanged(nullptr, place.get())) refuse("reads " + text + ", which may change before it runs");
  evaluation_.guardCustom(evaluation_.sources().pinned(holder, PyType_Check(holder) ? Why::Class : Why::Owner), hasNeverChanged, place.get(),
                          "what backward reads there has not changed before it ran");
  evaluation_.ownToProcess("a number that a backward method reads");
  if (!reads_) reads_ = std::make_shared<LateReads>();
  reads_->reads.push_back({PyRef::borrow(holder), PyRef::borrow(key), PyRef::borrow(value), std::move(place), text});
}

std::function<void()> FunctionCalls::lookAgain() const {
  if (!reads_) return {};
  return [reads = reads_] {
    const PyGILState_STATE state = PyGILState_Ensure();
    std::string changed;
    for (const LateReads::Read& read : reads->reads) {
      PyObject* now = heldNow(read.holder.get(), read.key.get());
      if (now && sameConstant(now, read.value.get())) continue;
      if (PySet_Add(changedReads(), read.place.get()) < 0) PyErr_Clear();
      changed = read.text;
    }
    PyGILState_Release(state);
    TORCH_CHECK(changed.empty(), "The backward method of an autograd.Function reads ", changed, ", which has changed since the compiled forward pass. Put it on ctx in "
                "forward. From the next call on the function is called outside of the graph.");
  };
}

bool FunctionCalls::isLibraryReading() const {
  const Frame* reader = evaluation_.frame();
  const char* file = reader ? utf8Of(reader->code()->co_filename) : nullptr;
  return file && isLibraryPath(file);
}

void FunctionCalls::noteClassRead(PyObject* found, PyTypeObject* type, PyObject* name) {
  if (!isChangeable(type) || !(isConstantValue(found) || isTensorObject(found)) || isLibraryReading()) return;
  const std::string attribute = PyUnicode_Check(name) ? utf8Of(name) : "";
  if (attribute.starts_with("__")) return;
  const std::string text = std::string(type->tp_name) + "." + attribute;
  if (!isConstantValue(found)) refuse("reads " + text + ", which may change before it runs");
  noteLateRead(reinterpret_cast<PyObject*>(type), name, found, text);
}

void FunctionCalls::noteGuard(GuardKind kind, const Source* source) {
  switch (kind) {
    case GuardKind::SequenceLength:
    case GuardKind::DictKeysMatch:
    case GuardKind::DictLength:
    case GuardKind::DictContains:
    case GuardKind::DictEmpty:
      return refuse("looks into " + source->str() + ", which may change before it runs");
    case GuardKind::DictLacks:
      if (!isPinned(source)) refuse("asks what " + source->str() + " lacks, which may change before it runs");
      return;
    default:
      return;
  }
}

void FunctionCalls::noteWrite(PyObject* container, const Origin* origin) {
  if (!origin || origin->source || origin->birth >= evaluation_.rootCount() || container == lateContext_) return;
  if (origin->owner && origin->owner.get() == lateContext_) return;
  refuse(std::string("writes to a ") + Py_TYPE(container)->tp_name + " that was made before it");
}

PyRef FunctionCalls::standInFor(PyObject* cls) {
  static PyMethodDef forward = {"forward", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(runForward)), METH_FASTCALL, nullptr};
  static PyMethodDef setup = {"setup_context", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(runSetup)), METH_FASTCALL, nullptr};
  static PyMethodDef backward = {"backward", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(runBackward)), METH_FASTCALL, nullptr};
  auto call = std::make_unique<Call>();
  call->owner = self_;
  call->cls = PyRef::borrow(cls);
  call->count = evaluation_.rootCount();
  Call* known = call.get();
  PyRef capsule = PyRef::steal(PyCapsule_New(call.release(), kCapsule, [](PyObject* self) {
    delete static_cast<Call*>(PyCapsule_GetPointer(self, kCapsule));
  }));
  PyObject* base = torchObject("torch.autograd.Function");
  PyRef name = PyRef::steal(PyObject_GetAttrString(cls, "__name__")), bases = PyRef::steal(PyTuple_Pack(1, base));
  PyRef methods = PyRef::steal(PyDict_New());
  auto method = [&](PyMethodDef& definition) {
    PyRef made = PyRef::steal(PyCFunction_New(&definition, capsule.get()));
    PyDict_SetItemString(methods.get(), definition.ml_name, made.get());
  };
  method(forward);
  method(backward);
  PyRef own = PyRef::steal(PyObject_GetAttrString(cls, "setup_context")), inherited = PyRef::steal(PyObject_GetAttrString(base, "setup_context"));
  if (own.get() != inherited.get()) method(setup);
  PyRef made = PyRef::steal(PyObject_CallFunctionObjArgs(reinterpret_cast<PyObject*>(Py_TYPE(base)), name.get(), bases.get(), methods.get(), nullptr));
  PyRef contexts = PyRef::steal(PyObject_GetAttrString(cls, "_backward_cls"));
  if (!made || !contexts || PyObject_SetAttrString(made.get(), "_backward_cls", contexts.get()) < 0) return {};
  known->standIn = made.get();
  return made;
}

class FunctionCalls::Noting {
 public:
  Noting(Evaluation& evaluation, PyObject* cls, const CallArguments& a)
      : evaluation_(evaluation), isWanted_(at::GradMode::is_enabled() && !trace::insideTransform() && !evaluation.torchCalls() && !isOnceDifferentiable(cls)) {
    for (size_t i = 0; isWanted_ && i < a.total(); ++i)
      if (isTensorObject(a.args[i])) traced_.inputs.push_back(valueOf(tensorOf(a.args[i])));
    begun_ = static_cast<graph::NodeId>(evaluation.trace().graph().nodes().size());
  }

  void results(PyObject* made) {
    if (!isWanted_) return;
    if (isTensorObject(made)) result(tensorOf(made));
    for (Py_ssize_t i = 0; PyTuple_Check(made) && i < PyTuple_GET_SIZE(made); ++i)
      if (PyObject* one = PyTuple_GET_ITEM(made, i); isTensorObject(one)) result(tensorOf(one));
    if (isWanted_ && traced_.node) evaluation_.trace().functions().push_back(std::move(traced_));
  }

 private:
  static bool isOnceDifferentiable(PyObject* cls) {
    PyRef backward = PyRef::steal(PyObject_GetAttrString(cls, "backward"));
    clearError();
    PyObject* code = backward && PyFunction_Check(backward.get()) ? PyFunction_GET_CODE(backward.get()) : nullptr;
    const char* file = code ? utf8Of(reinterpret_cast<PyCodeObject*>(code)->co_filename) : nullptr;
    return file && std::string_view(file).ends_with("torch/autograd/function.py");
  }

  static std::optional<graph::ValueRef> valueOf(const at::Tensor& t) {
    if (!trace::isTraceTensor(t)) return std::nullopt;
    if (at::functionalization::impl::isFunctionalTensor(t)) at::functionalization::impl::sync(t);
    const auto* traced = trace::asTraceThroughWrapper(t);
    return traced ? std::optional(traced->value()) : std::nullopt;
  }

  /// A result is a value of its own, made inside: no argument, and none given twice.
  void result(const at::Tensor& t) {
    if (!t.requires_grad() || !t.grad_fn()) return;
    const auto node = t.grad_fn();
    const auto value = valueOf(t);
    isWanted_ = isWanted_ && value && value->node >= begun_ && (!traced_.node || traced_.node == node) &&
                std::find(traced_.outputs.begin(), traced_.outputs.end(), value) == traced_.outputs.end();
    traced_.node = node;
    traced_.outputs.resize(node->num_inputs());
    if (t.output_nr() < traced_.outputs.size()) traced_.outputs[t.output_nr()] = value;
  }

  Evaluation& evaluation_;
  bool isWanted_;
  graph::NodeId begun_ = 0;
  trace::TracedFunction traced_;
};

PyRef FunctionCalls::apply(PyObject* cls, const CallArguments& a) {
  if (isLate())
    for (trace::TracedFunction& known : evaluation_.trace().functions()) known.callsOthers = true;
  static PyObject *const kApply = internedName("apply"), *const kContexts = internedName("_backward_cls");
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  PyObject* contexts = evaluation_.typeLookup(type, kContexts);
  if (!contexts || !PyType_Check(contexts) || contexts != PyDict_GetItem(type->tp_dict, kContexts))
    evaluation_.breakHere("autograd.Function", nameOf(cls) + " has lost the class of its contexts");
  PyRef standIn = standInFor(cls);
  if (!standIn) return {};
  auto* base = reinterpret_cast<PyTypeObject*>(torchObject("torch._C._FunctionBase"));
  PyRef classMethod = PyRef::borrow(PyDict_GetItem(base->tp_dict, kApply));
  PyRef bound = PyRef::steal(Py_TYPE(classMethod.get())->tp_descr_get(classMethod.get(), nullptr, standIn.get()));
  if (!bound) return {};
  Noting noting(evaluation_, cls, a);
  PyRef made = evaluation_.callRaw(bound.get(), a);
  if (made) noting.results(made.get());
  return made;
}

}  // namespace fusebox::capture
