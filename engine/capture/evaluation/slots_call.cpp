// Calls: Python functions are interpreted, C callables run if a rule says how, everything else is a break.
#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/once.h"
#include "engine/capture/entries/barrier.h"
#include "engine/capture/entries/debug_stops.h"
#include "engine/capture/entries/driver.h"
#include "engine/capture/entries/hook_skip.h"
#include "engine/capture/evaluation/arrays.h"
#include "engine/capture/evaluation/data_conditions.h"
#include "engine/capture/evaluation/deferred_numbers.h"
#include "engine/capture/evaluation/dispatch_asking.h"
#include "engine/capture/evaluation/distributed_tensors.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/function_modes.h"
#include "engine/capture/evaluation/interpreter.h"
#include "engine/capture/evaluation/namespaces.h"
#include "engine/capture/evaluation/nested_tensors.h"
#include "engine/capture/evaluation/numpy_warnings.h"
#include "engine/capture/evaluation/optimizer_state.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/suspended_frame.h"
#include "engine/capture/evaluation/symbolic_texts.h"
#include "engine/capture/evaluation/tensor_subclasses.h"
#include "engine/capture/evaluation/torch_calls.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/rules/argument_count.h"
#include "engine/capture/rules/autograd_function.h"
#include "engine/capture/rules/conditional_operator.h"
#include "engine/capture/rules/loop_operator.h"
#include "engine/capture/rules/call_rules.h"
#include "engine/capture/rules/comptime.h"
#include "engine/capture/rules/state_queries.h"
#include "engine/capture/rules/substitutes.h"
#include "engine/trace/data_use.h"

extern "C" PyObject* _PyType_Lookup(PyTypeObject*, PyObject*);

namespace fusebox::capture {

PyObject* (*originalOfCompiled)(PyObject*) = nullptr;

namespace {

constexpr int kMaxDepth = 200;
constexpr int64_t kMaxBytecodes = 4'000'000;

std::string describe(PyObject* callable) {
  if (PyFunction_Check(callable)) return utf8Of(reinterpret_cast<PyFunctionObject*>(callable)->func_qualname);
  if (PyType_Check(callable)) return reinterpret_cast<PyTypeObject*>(callable)->tp_name;
  PyRef name = PyRef::steal(PyObject_GetAttrString(callable, "__qualname__"));
  PyRef module = PyRef::steal(PyObject_GetAttrString(callable, "__module__"));
  clearError();
  std::string text = name && PyUnicode_Check(name.get()) ? utf8Of(name.get()) : std::string("an instance of ") + Py_TYPE(callable)->tp_name;
  if (text.starts_with("pybind11_detail_")) text.erase(0, text.rfind('.') + 1);  // the record that a function belongs to
  if (module && PyUnicode_Check(module.get())) text = std::string(utf8Of(module.get())) + "." + text;
  return text;
}

}  // namespace

PyObject* CallArguments::keyword(const char* name) const {
  for (size_t i = 0; i < keywords(); ++i)
    if (PyUnicode_CompareWithASCIIString(keywordName(i), name) == 0) return args[positional + i];
  return nullptr;
}

bool Evaluation::bindArguments(Frame& frame, PyObject* function, const CallArguments& a) {
  auto* f = reinterpret_cast<PyFunctionObject*>(function);
  PyCodeObject* code = frame.code();
  const auto positionalCount = static_cast<size_t>(code->co_argcount), keywordOnly = static_cast<size_t>(code->co_kwonlyargcount);
  const size_t named = positionalCount + keywordOnly;
  const bool varArgs = code->co_flags & CO_VARARGS, varKeywords = code->co_flags & CO_VARKEYWORDS;
  PyObject* names = code->co_localsplusnames;
  for (size_t i = 0; i < a.positional && i < positionalCount; ++i) frame.locals[i] = PyRef::borrow(a.args[i]);
  if (varArgs) {
    const size_t extra = a.positional > positionalCount ? a.positional - positionalCount : 0;
    PyRef rest = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(extra)));
    for (size_t i = 0; i < extra; ++i)
      PyTuple_SET_ITEM(rest.get(), static_cast<Py_ssize_t>(i), PyRef::borrow(a.args[positionalCount + i]).release());
    frame.locals[named] = std::move(rest);
  } else if (a.positional > positionalCount) {
    return refuseArguments(function, a);
  }
  PyRef rest = varKeywords ? PyRef::steal(PyDict_New()) : PyRef();
  if (rest) adopt(rest.get());
  for (size_t k = 0; k < a.keywords(); ++k) {
    PyObject* name = a.keywordName(k);
    size_t i = static_cast<size_t>(code->co_posonlyargcount);
    while (i < named && PyTuple_GET_ITEM(names, i) != name && PyUnicode_Compare(PyTuple_GET_ITEM(names, i), name) != 0) ++i;
    if (i < named) {
      if (frame.locals[i]) return refuseArguments(function, a);
      frame.locals[i] = PyRef::borrow(a.args[a.positional + k]);
    } else if (rest) {
      PyDict_SetItem(rest.get(), name, a.args[a.positional + k]);
    } else {
      return refuseArguments(function, a);
    }
  }
  if (rest) frame.locals[named + (varArgs ? 1 : 0)] = std::move(rest);
  const Source* source = sourceOf(function);
  const bool pinned = source && source->kind == Source::Kind::Pinned;
  if (pinned) guardFunction(function);
  if (PyObject* defaults = f->func_defaults) {
    const auto count = static_cast<size_t>(PyTuple_GET_SIZE(defaults));
    const bool fixed = pinned && isConstantValue(defaults);  // guarded whole
    const Source* place = source && !fixed ? sources().derived(Source::Kind::FunctionDefaults, source) : nullptr;
    if (place) guard(GuardKind::SequenceLength, place, nullptr, PyTuple_GET_SIZE(defaults));
    for (size_t i = positionalCount - count; i < positionalCount; ++i) {
      if (frame.locals[i]) continue;
      const auto index = static_cast<Py_ssize_t>(i - (positionalCount - count));
      PyObject* raw = PyTuple_GET_ITEM(defaults, index);
      frame.locals[i] = !source ? PyRef::borrow(raw)
                        : fixed ? pin(raw, Why::Function)
                                 : wrap(raw, sources().sequenceItem(place, index));
    }
  }
  for (size_t i = 0; i < positionalCount; ++i)
    if (!frame.locals[i]) return refuseArguments(function, a);
  for (size_t i = positionalCount; i < named; ++i) {
    if (frame.locals[i]) continue;
    PyObject* name = PyTuple_GET_ITEM(names, i);
    PyObject* raw = f->func_kwdefaults ? PyDict_GetItemWithError(f->func_kwdefaults, name) : nullptr;
    if (!raw) return refuseArguments(function, a);
    frame.locals[i] = !source ? PyRef::borrow(raw)
                               : wrap(raw, sources().dictItem(sources().derived(Source::Kind::FunctionKwDefaults, source), name));
  }
  if (PyObject* closure = f->func_closure; closure && source)
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(closure); ++i) {
      PyObject* cell = PyTuple_GET_ITEM(closure, i);
      if (!origins_.find(cell))
        origins_.add(cell, sources().sequenceItem(sources().derived(Source::Kind::FunctionClosure, source), i));
    }
  return true;
}

namespace {

/// The function behind a mark that torch.compile itself sets on functions of torch.optim, whose effects its tracer plays back without following
/// them, or that keeps torch.optim's from being compiled on their own (zero_grad(), state_dict()); here they are followed. `function` as it is
/// otherwise: borrowed.
PyObject* behindMarkOfOptimizers(PyObject* function, PyObject* attributes) {
  if (isDisabledByTorch(function)) {
    PyObject* wrapped = attributes ? PyDict_GetItem(attributes, internedName("__wrapped__")) : nullptr;
    PyObject* module = wrapped && PyFunction_Check(wrapped) ? reinterpret_cast<PyFunctionObject*>(wrapped)->func_module : nullptr;
    return module && PyUnicode_Check(module) && std::string_view(utf8Of(module)).starts_with("torch.optim.") ? wrapped : function;
  }
  PyObject* original = attributes ? PyDict_GetItem(attributes, internedName("_torchdynamo_orig_callable")) : nullptr;
  if (!original || !PyFunction_Check(original) || !PyDict_GetItem(attributes, internedName("_torchdynamo_disable_msg"))) return function;
  auto* f = reinterpret_cast<PyFunctionObject*>(original);
  const auto text = [](PyObject* value) { return std::string_view(value && PyUnicode_Check(value) ? utf8Of(value) : ""); };
  const std::string_view name = text(f->func_name);
  const bool isPart = name == "_init_group" || name.starts_with("_fused_");
  return isPart && text(f->func_module).starts_with("torch.optim.") ? original : function;
}

/// The function that torch.compiler.disable, or torch itself, keeps out of capture, where that does not count; null for any other.
PyObject* underDisabled(PyObject* function, PyObject* attributes) {
  if (!isInsideDispatch() || !attributes) return nullptr;
  const bool isMarked = PyDict_GetItem(attributes, internedName("_torchdynamo_disable")) || isDisabledByTorch(function);
  PyObject* wrapped = isMarked ? PyDict_GetItem(attributes, internedName("__wrapped__")) : nullptr;
  return wrapped && PyFunction_Check(wrapped) ? wrapped : nullptr;
}

/// What torch.compiler.disable marked is not followed; the reason that was given for it is told.
void refuseDisabled(Evaluation& e, PyObject* callable, PyObject* attributes) {
  const bool isMarked = attributes && PyDict_GetItem(attributes, internedName("_torchdynamo_disable"));
  if (!isMarked && !(PyFunction_Check(callable) && isDisabledByTorch(callable))) return;
  std::string what = describe(callable) + " is marked torch.compiler.disable";
  PyObject* reason = !attributes ? nullptr : PyDict_GetItem(attributes, internedName("_torchdynamo_disable_msg"));
  if (reason && PyUnicode_Check(reason)) what += std::string(": ") + utf8Of(reason);
  e.breakHere("disabled function", what, "Remove the decorator, or call it outside the compiled region.");
}

/// torch.compiler.assume_constant_result: CPython calls the function, and what it gives is a constant that nothing guards. Null without an
/// error: it is followed like any other, since tensors go in or no constant comes out.
PyRef assumedConstant(Evaluation& e, PyObject* function, const CallArguments& a) {
  std::vector<PyRef> keep;
  std::vector<PyObject*> args;
  for (size_t i = 0; i < a.total(); ++i) {
    if (e.isTensor(a.args[i])) return {};
    const bool isContainer = PyTuple_Check(a.args[i]) || PyList_Check(a.args[i]) || PyDict_Check(a.args[i]) || PyAnySet_Check(a.args[i]);
    keep.push_back(isContainer ? e.expose(a.args[i]) : PyRef::borrow(a.args[i]));
    if (!keep.back()) return {};
    args.push_back(keep.back().get());
  }
  trace::NoTrace off;
  PyRef result = e.checked(PyObject_Vectorcall(function, args.data(), a.positional, a.kwNames));
  return !result || isConstantValue(result.get()) ? std::move(result) : PyRef();
}

/// What a coroutine keeps of the calls that made it are CPython's frames.
void refuseOrigins(Evaluation& e) {
  PyRef depth = guardAnswer(e, torchObject("sys.get_coroutine_origin_tracking_depth"), {}, "how much coroutines keep of their origin");
  if (depth && PyLong_AsLong(depth.get()) > 0) e.breakHere("unsupported call", "a coroutine keeps where it was made");
}

}  // namespace

PyRef Evaluation::callFunction(PyObject* function, const CallArguments& a) {
  const size_t handedOver = frame_ ? std::exchange(frame_->handedOver, 0) : 0;
  if (CallRule rule = ruleOf(function)) return applyRule(rule, function, a);
  auto* f = reinterpret_cast<PyFunctionObject*>(function);
  if (f->func_dict && PyDict_GetItem(f->func_dict, internedName("_dynamo_marked_constant"))) {
    PyRef constant = assumedConstant(*this, function, a);
    if (constant || PyErr_Occurred()) return constant;
  }
  // torch._dynamo.forbid_in_graph.
  if (f->func_dict && PyDict_GetItem(f->func_dict, internedName("_dynamo_forbidden"))) {
    PyErr_Format(PyExc_AssertionError, "Attempt to trace forbidden callable %R", function);
    raiseNow(*this);
  }
  if (PyObject* original = behindMarkOfOptimizers(function, f->func_dict); original != function) {
    pin(original, Why::Process);
    return call(original, a);
  }
  if (PyObject* wrapped = underDisabled(function, f->func_dict)) return pin(wrapped, Why::Function), callFunction(wrapped, a);
  refuseDisabled(*this, function, f->func_dict);
  bool isOfDistributed = false;
  if (PyRef result = callOfDistributed(*this, function, a, &isOfDistributed); isOfDistributed) return result;
  if (isCalledAsItIs(function)) return callAsItIs(function, a);
  const int flags = reinterpret_cast<PyCodeObject*>(f->func_code)->co_flags;
  // Sizes of torch's own are not ints in real Python code. A generator of CPython's could not be advanced here.
  constexpr int kSuspends = CO_GENERATOR | CO_COROUTINE;
  const bool isReal = !(flags & kSuspends) && !givesSymbols(a) && !functionModes_->isActive() && isTrusted(function) && !hasSymbolsInCells(function);
  if (isReal && std::none_of(a.args.begin(), a.args.begin() + a.total(), [](PyObject* o) { return holdsSubclass(o) || asksItsClass(o); })) return callReal(function, a);
  if (flags & (CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE))
    breakHere("unsupported call", describe(function) + (flags & CO_ASYNC_GENERATOR ? " is an asynchronous generator" : " is a generator that can be awaited"));
  if (flags & CO_COROUTINE) refuseOrigins(*this);
  if (depth_ >= kMaxDepth) breakHere("recursion", "Python calls are nested deeper than the evaluator follows");
  std::unique_ptr<Frame> frame = Frame::make(function);
  const TorchCalls::Scope scope(torchCalls_.get());
  const TorchCalls::Whole whole = torchCalls_ ? torchCalls_->wholeOf(function, a) : TorchCalls::Whole();
  if (!bindArguments(*frame, function, a)) return {};
  // From here on the callee's locals hold the arguments, and what it drops is gone.
  for (size_t k = handedOver; k > 0 && k < frame_->stack.size(); ++k) frame_->stack[k] = PyRef();
  const OptimizerState state(*this, function, a);
  if (!whole.args) {
    PyRef result = follow(function, std::move(frame));
    if (result) state.settle();
    return result;
  }
  const Effects before = effectsSoFar();
  PyRef result = follow(function, std::move(frame));
  const bool isMode = whole.kind != TorchCalls::Kind::Function;
  if (isMode || effectsSoFar() == before) torchCalls_->done(scope, whole, function, result.get());
  return result;
}

void Evaluation::noteRaise() {
  if (!PyErr_Occurred()) breakHere("internal", "an instruction failed without an exception");
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value != raised_.get()) raisedAt_ = stackPlaces();
  raised_ = PyRef::borrow(value);
  PyErr_Restore(type, value, traceback);
}

void Evaluation::countBytecode() {
  constexpr int64_t kBetweenSignals = 1024;
  if (++bytecodes_ > kMaxBytecodes) breakHere("too much Python", "more than 4,000,000 bytecodes in one segment");
  if (bytecodes_ % kBetweenSignals != 0) return;
  trace::NoTrace off;  // handlers are the program's own
  if (PyErr_CheckSignals() < 0) throw ProgramInterrupted::take();
}

PyRef Evaluation::runFrame(std::unique_ptr<Frame> frame) {
  Frame* f = frame.get();
  ++frames_;
  ++depth_;
  f->caller = frame_;
  frame_ = f;
  struct Restore {
    Evaluation& e;
    Frame* caller;
    ~Restore() {
      e.frame_ = caller;
      --e.depth_;
    }
  } restore{*this, f->caller};
  for (;;) {
    countBytecode();
    const Flow flow = tracedStep(*this, *f);
    if (!iterators_->abandoned.empty()) closeAbandoned();
    switch (flow) {
      case Flow::Next:
      case Flow::Jumped:
        break;
      case Flow::Return:
        return std::move(f->result);
      case Flow::Generator:
        ++f->pc;
        f->caller = nullptr;
        return makeGenerator(std::move(frame));
      case Flow::Error:
        noteRaise();
        unwind(*f);
        return {};
      default:
        breakHere("unsupported bytecode", "opcode " + opcodeName(f->instruction().opcode));
    }
  }
}

int Evaluation::runUntilYield(Frame& f, PyRef* result) {
  ++depth_;
  f.caller = frame_;
  frame_ = &f;
  struct Restore {
    Evaluation& e;
    Frame& f;
    ~Restore() {
      e.frame_ = f.caller;
      f.caller = nullptr;
      --e.depth_;
    }
  } restore{*this, f};
  for (;;) {
    countBytecode();
    const Flow flow = tracedStep(*this, f);
    if (!iterators_->abandoned.empty()) closeAbandoned();
    switch (flow) {
      case Flow::Next:
      case Flow::Jumped:
        break;
      case Flow::Yield:
        *result = std::move(f.result);
        return 1;
      case Flow::Return:
        *result = std::move(f.result);
        return 0;
      case Flow::Error:
        noteRaise();
        unwind(f);
        return -1;
      default:
        breakHere("unsupported bytecode", "opcode " + opcodeName(f.instruction().opcode));
    }
  }
}

PyRef Evaluation::makeGenerator(std::unique_ptr<Frame> frame) {
  const bool isCoroutine = frame->code()->co_flags & CO_COROUTINE;
  return makeLazy(*this, std::make_unique<SuspendedFrame>(std::move(frame), false, isCoroutine));
}

namespace {

/// The break that a RuntimeError of libtorch tells of; the error indicator stays.
std::optional<trace::BreakError> raisedBreak() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyRef text = value ? PyRef::steal(PyObject_Str(value)) : PyRef();
  clearError();
  std::string line = text ? utf8Of(text.get()) : "";
  line = line.substr(0, line.find('\n'));
  PyErr_Restore(type, value, traceback);
  // libtorch's words for memory that is not there.
  for (const char* words : {"Cannot access data pointer of Tensor", "its data is not allocated yet", "a tensor with unallocated storage"})
    if (line.find(words) != std::string::npos)
      return trace::BreakError(trace::BreakKind::DataAccess, "Cannot access data pointer of a tensor whose operators are traced: it has no memory",
                               "Move the call out of the compiled region.");
  return trace::parseBreak(line);
}

}  // namespace

void Evaluation::throwIfBreak() {
  if (lazyWasMisused()) {
    clearError();
    breakHere("iterator", "C code advances an iterator of the compiled region", "Make a list of it first.");
  }
  if (functionModes_->wasAsked()) [[unlikely]] functionModes_->refuse();
  std::optional<trace::BreakError> error = trace::takeLastBreak();
  if (!error && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_RuntimeError)) error = raisedBreak();
  if (const auto fitting = std::exchange(trace_->dataSizes().fitting, std::nullopt); fitting && PyErr_Occurred()) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyRef kept[] = {PyRef::steal(type), PyRef::steal(value), PyRef::steal(traceback)};
    startOverWith(*this, *fitting);
    PyErr_Restore(kept[0].release(), kept[1].release(), kept[2].release());
  }
  if (!error) return;
  clearError();
  breakHere(*error);
}

void Evaluation::noteLeaf(PyObject* tensor) {
  if (firstLeaf_ >= 0 || !isStandIn(tensor)) return;
  const at::Tensor& t = tensorOf(tensor);
  Origin* o = origins_.find(tensor);
  if (t.requires_grad() && t.is_leaf() && !(o && o->source)) firstLeaf_ = rootCount_;
}

PyRef Evaluation::checked(PyObject* result) {
  PyRef value = PyRef::steal(result);
  functions_->rethrow();
  if (functionModes_->wasAsked()) [[unlikely]] return functionModes_->answer(std::move(value));
  throwIfBreak();
  if (!value && isInterrupt()) throw ProgramInterrupted::take();
  if (value) value = fromTorch(std::move(value));
  if (value && isTensor(value.get())) {
    if (!isPlainTensorClass(Py_TYPE(value.get())) && !isFollowedClass(Py_TYPE(value.get())) && !isDistributedStandIn(value.get()))
      breakHere("tensor subclass", std::string("a tensor of class ") + Py_TYPE(value.get())->tp_name + " is made, whose methods C code calls");
    noteLeaf(value.get());
  }
  if (value && Py_REFCNT(value.get()) == 1 && !lazyOf(value.get())) {
    if (PyIter_Check(value.get()))
      adoptIterator(value.get());
    else
      adopt(value.get());
  }
  return value;
}

PyRef Evaluation::callRaw(PyObject* callable, const CallArguments& a) {
  return checked(PyObject_Vectorcall(callable, a.args, a.positional, a.kwNames));
}

namespace {

/// Operators of torch that may be given a tensor where they take a number; the others hand numbers to Python.
bool takesNumbers(PyObject* callable) {
  if (isTorchOperator(callable)) return true;
  const PyMethodDef* method = PyCFunction_Check(callable)                     ? reinterpret_cast<PyCFunctionObject*>(callable)->m_ml
                              : Py_IS_TYPE(callable, &PyMethodDescr_Type) ? reinterpret_cast<PyMethodDescrObject*>(callable)->d_method
                                                                           : nullptr;
  const std::string_view name = method ? method->ml_name : "__";
  return !name.starts_with("__") && name != "item" && name != "tolist" && isTorchBinding(callable);
}

}  // namespace

namespace {

/// torch.tensor and its relatives make data of numbers.
bool takesData(PyObject* callable) {
  if (!PyCFunction_Check(callable) && !Py_IS_TYPE(callable, &PyMethodDescr_Type)) return false;
  const PyMethodDef* method = PyCFunction_Check(callable) ? reinterpret_cast<PyCFunctionObject*>(callable)->m_ml
                                                          : reinterpret_cast<PyMethodDescrObject*>(callable)->d_method;
  const std::string_view name = method->ml_name;
  return name == "tensor" || name == "as_tensor" || name == "asarray" || name == "new_tensor";
}

}  // namespace

bool Evaluation::refuseArguments(PyObject* callable, const CallArguments& a) {
  if (callRaw(callable, a)) breakHere("unsupported call", describe(callable) + " is called with arguments that no rule describes");
  return false;
}

namespace {

/// Of torch's bindings that are no operators: those that take symbolic ints.
bool takesSymInts(PyObject* callable) {
  if (!PyCFunction_Check(callable)) return false;
  const std::string_view name = reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name;
  return name == "_make_wrapper_subclass" || name == "_vmap_increment_nesting" || name == "_remove_batch_dim";
}

/// Of a type or a C function, as the program calls it.
std::string_view builtinName(PyObject* callable) {
  if (PyType_Check(callable)) return reinterpret_cast<PyTypeObject*>(callable)->tp_name;
  return PyCFunction_Check(callable) ? reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name : "";
}

}  // namespace

namespace {

/// Where the sizes begin among the arguments of a function of torch that takes them one by one or in a list; -1: it takes none, or more.
int sizesOf(PyObject* callable) {
  static const std::unordered_set<std::string_view> factories = {"zeros", "ones", "empty", "rand", "randn"};
  static const std::unordered_set<std::string_view> methods = {"new_zeros", "new_ones", "new_empty", "expand", "view", "reshape", "repeat"};
  const bool isFunction = PyCFunction_Check(callable);
  if ((!isFunction && !Py_IS_TYPE(callable, &PyMethodDescr_Type)) || !isTorchBinding(callable)) return -1;
  const std::string_view name = isFunction ? reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name
                                           : reinterpret_cast<PyMethodDescrObject*>(callable)->d_method->ml_name;
  const bool isBound = isFunction && PyCFunction_GET_SELF(callable) && isTensorObject(PyCFunction_GET_SELF(callable));
  if (factories.count(name) > 0) return 0;
  return methods.count(name) == 0 ? -1 : isBound ? 0 : 1;
}

/// A tensor that stands where an int is wanted, as the int that is read from it; null for everything else. Lists and tuples of sizes too.
PyRef readSize(Evaluation& e, PyObject* o) {
  if (e.isStandIn(o)) {
    const at::Tensor& t = tensorOf(o);
    return t.dim() == 0 && c10::isIntegralType(t.scalar_type(), false) ? deferredItem(e, o, 'v') : PyRef();
  }
  if (!PyTuple_CheckExact(o) && !PyList_CheckExact(o)) return {};
  PyRef sizes = PyRef::steal(PyTuple_New(PySequence_Fast_GET_SIZE(o)));
  bool any = false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
    PyRef item = e.element(o, i), read = e.isStandIn(item.get()) ? readSize(e, item.get()) : PyRef();
    any = any || read;
    PyTuple_SET_ITEM(sizes.get(), i, (read ? std::move(read) : std::move(item)).release());
  }
  return any ? std::move(sizes) : PyRef();
}

}  // namespace

namespace {

/// The overload that PyTorch chooses of a torch.ops.aten.add for these arguments; the packet itself where it chooses none. It tries one after
/// the other and puts every tensor that does not fit into the text of an error, so it is asked with empty ones of the same kind.
PyRef overloadFor(PyObject* packet, const CallArguments& given) {
  if (!isOperatorPacket(packet)) return PyRef::borrow(packet);
  const trace::NoTrace off;
  PyRef name = PyRef::steal(PyObject_GetAttrString(packet, "_qualified_op_name"));
  std::vector<PyRef> keep;
  std::vector<PyObject*> args = {name.get()};
  for (PyObject* value : std::span(given.args.begin(), given.total())) {
    if (isTensorObject(value)) {
      const at::Tensor& t = tensorOf(value);
      const std::vector<int64_t> none(static_cast<size_t>(t.dim()), 0);
      value = keep.emplace_back(PyRef::steal(newTensorObject(at::empty(none, t.scalar_type())))).get();
    }
    args.push_back(value);
  }
  PyRef chosen = PyRef::steal(PyObject_Vectorcall(torchObject("torch._C._jit_resolve_packet"), args.data(), given.positional + 1, given.kwNames));
  PyRef overload = chosen ? PyRef::steal(PyObject_GetAttr(packet, chosen.get())) : PyRef();
  clearError();
  return overload ? std::move(overload) : PyRef::borrow(packet);
}

}  // namespace

PyRef Evaluation::callReal(PyObject* callable, const CallArguments& a, Asks asks) {
  std::vector<PyRef> keep;
  std::vector<PyObject*> args;
  if (const int begin = sizesOf(callable); begin >= 0) {
    args.assign(a.args.begin(), a.args.begin() + a.total());
    for (auto i = static_cast<size_t>(begin); i < args.size(); ++i)
      if (PyRef read = readSize(*this, args[i])) args[i] = keep.emplace_back(std::move(read)).get();
    if (!keep.empty()) return callReal(callable, {args.data(), a.positional, a.kwNames}, asks);
    args.clear();
  }
  for (size_t i = 0; i < a.total(); ++i) {
    PyRef read = readNumberFor(callable, a.args[i]);
    if (!read) continue;
    args.assign(a.args.begin(), a.args.begin() + a.total());
    args[i] = read.get();
    return callReal(callable, {args.data(), a.positional, a.kwNames}, asks);
  }
  struct Exposing {
    bool& flag;
    bool before;
    ~Exposing() { flag = before; }
  } exposing{exposesNumbers_, exposesNumbers_};
  exposesNumbers_ = requireTakesNumbers(callable, a);
  const ExposingSymbols symbols(*this, (isTorchBinding(callable) && !takesData(callable)) || takesSymInts(callable));
  for (size_t i = 0; i < a.total(); ++i) {
    willConsume(a.args[i]);
    keep.push_back(lazyOf(a.args[i]) && !isTorchBinding(callable) ? collect(a.args[i], false) : expose(a.args[i]));
    if (!keep.back()) return {};
    refuseCallbacks(keep.back().get(), asks);
    args.push_back(keep.back().get());
  }
  std::optional<trace::TraceContext::NumbersAreTensors> numbers;
  if (takesNumbers(callable)) numbers.emplace(*trace_);
  TorchCalls::Scope scope(torchCalls_.get());
  const trace::DataUse use(isTorchBinding(callable) ? std::string_view() : builtinName(callable), trace::DataUse::Form::Call);
  NumpyWarnings warnings(*this);
  warnings.watch(args.data(), args.size());
  // A method that is bound already may write to what it is bound to: that is an argument like others.
  PyObject* self = isTorchBinding(callable) && PyCFunction_Check(callable) ? PyCFunction_GET_SELF(callable) : nullptr;
  PyObject* unbound = self && isTensorObject(self) ? _PyType_Lookup(Py_TYPE(self), internedName(reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name)) : nullptr;
  if (!unbound || !Py_IS_TYPE(unbound, &PyMethodDescr_Type)) self = nullptr;
  if (self) args.insert(args.begin(), self), callable = unbound;
  const CallArguments given(args.data(), a.positional + (self ? 1 : 0), a.kwNames);
  const PyRef called = overloadFor(callable, given);
  const auto made = [&](const CallArguments& c) { return PyObject_Vectorcall(called.get(), c.args, c.positional, c.kwNames); };
  PyRef result = original(checked(warnings.done(isTorchBinding(callable) ? heard(given, made) : made(given))));
  // Of what a class made of it, its own calls are told.
  if (result && std::none_of(args.begin(), args.end(), holdsSubclass)) scope.done(callable, given, result.get());
  return result;
}

PyRef Evaluation::applyRule(CallRule rule, PyObject* callable, const CallArguments& a, bool withSelf) {
  refuseNumbersAsTensors(callable, a);
  for (size_t i = 0; i < a.keywords(); ++i)
    if (!PyUnicode_Check(a.keywordName(i))) return PyErr_SetString(PyExc_TypeError, "keywords must be strings"), PyRef();
  try {
    if (mayTake(callable, a, withSelf)) return rule(*this, callable, a);
  } catch (const UnfitArguments&) {
  }
  breakHere("unsupported call", describe(callable) + " is called with arguments that it does not take");
}

PyObject*& substitutesInGraph() {
  static PyObject* substitutes = nullptr;
  return substitutes;
}

PyObject*& reorderedInGraph() {
  static PyObject* reordered = nullptr;
  return reordered;
}

PyObject*& ignoredInGraph() {
  static PyObject* ignored = nullptr;
  return ignored;
}

namespace {

/// Whether the program asked for calls of it to be left out, of all objects or of the one that it is called on.
bool isIgnored(Evaluation& e, PyObject* callable, const CallArguments& a) {
  PyObject* ignored = ignoredInGraph();
  if (PyMethod_Check(callable)) {
    PyObject* args[] = {PyMethod_GET_SELF(callable)};
    return isIgnored(e, PyMethod_GET_FUNCTION(callable), {args, 1, nullptr});
  }
  if (!PyFunction_Check(callable) && !PyCFunction_Check(callable)) return false;
  if (PySet_Contains(ignored, callable) == 1) return true;
  PyRef method = PyFunction_Check(callable) && a.positional > 0 ? PyRef::steal(PyMethod_New(callable, a.args[0])) : PyRef();
  if (!method || PySet_Contains(ignored, method.get()) != 1) return clearError(), false;
  if (const Source* source = e.sourceOf(a.args[0])) e.guard(GuardKind::IdMatch, source, a.args[0]);
  return true;
}

}  // namespace

namespace {

/// Functions of C that read of a tuple what they need, and no more.
bool readsInParts(PyObject* callable) {
  static PyObject* const functions[] = {torchObject("builtins.len"),      torchObject("builtins.isinstance"), torchObject("builtins.iter"),
                                        torchObject("builtins.zip"),      torchObject("builtins.enumerate"),  torchObject("builtins.reversed"),
                                        torchObject("builtins.list"),     torchObject("builtins.tuple"),      torchObject("builtins.list.extend"),
                                        torchObject("builtins.sum"),      torchObject("builtins.dict"),       torchObject("builtins.list.append"),
                                        torchObject("builtins.max"),      torchObject("builtins.min"),        torchObject("builtins.sorted")};
  return std::find(std::begin(functions), std::end(functions), callable) != std::end(functions);
}

}  // namespace

PyRef Evaluation::call(PyObject* callable, PyObject* const* args, size_t positional, PyObject* kwNames) {
  const CallArguments a{args, positional, kwNames};
  const auto isFollowed = [&] {
    return PyMethod_Check(callable) || isPythonClass(PyType_Check(callable) ? reinterpret_cast<PyTypeObject*>(callable) : Py_TYPE(callable)) ||
           (PyFunction_Check(callable) && !ruleOf(callable) && !isLibraryNamespace(PyFunction_GET_GLOBALS(callable), Library::Torch));
  };
  if (anySymbolicTexts())
    if (PyRef made = symbolicTextOfCall(*this, callable, a); made || PyErr_Occurred()) return made;
  if ((anySymbolicTexts() && !isFollowed() && !handsTextsOn(callable)) || (!unread_.empty() && !isFollowed() && !readsInParts(callable)))
    if (const Settled settled(*this, a); settled.isOther) return call(callable, settled.arguments);
  if (ignoredInGraph() && isIgnored(*this, callable, a)) [[unlikely]] return PyRef::borrow(Py_None);
  if (PyObject* all = substitutesInGraph(); all && (PyFunction_Check(callable) || PyCFunction_Check(callable))) [[unlikely]] {
    PyObject* substitute = PyDict_GetItem(all, callable);
    if (substitute == Py_None) breakHere("disallowed function", describe(callable) + " was given to torch._dynamo.disallow_in_graph");
    if (substitute && pin(substitute, Why::Owner)) return callFunction(substitute, a);
  }
  if (PyObject* all = reorderedInGraph(); all && PyFunction_Check(callable) && !ruleOf(callable) && PySet_Contains(all, callable) == 1) [[unlikely]]
    return ruleReordered(*this, callable, a);
  if (PyFunction_Check(callable)) return callFunction(callable, a);
  if (PyRef made = arrays_->call(callable, a); made || PyErr_Occurred()) return made;
  if (!PyMethod_Check(callable) && !PyType_Check(callable)) {
    bool handled = false;
    PyRef answer = callOfSubclass(*this, callable, a, &handled);
    if (handled) return answer;
  }
  if (PyMethod_Check(callable)) {
    PyObject *function = PyMethod_GET_FUNCTION(callable), *self = PyMethod_GET_SELF(callable);
    PyRef keepFunction = PyRef::borrow(function), keepSelf = PyRef::borrow(self);
    if (const Source* source = sourceOf(callable); source && source->kind != Source::Kind::Pinned) {
      keepFunction = wrap(function, sources().derived(Source::Kind::MethodFunction, source));
      keepSelf = wrap(self, sources().derived(Source::Kind::MethodSelf, source));
    } else if (source) {
      keepFunction = pin(function, Why::Owner);
      keepSelf = pin(self, Why::Owner);
    }
    std::vector<PyObject*> all = {keepSelf.get()};
    all.insert(all.end(), args, args + a.total());
    return call(keepFunction.get(), all.data(), positional + 1, kwNames);
  }
  if (PyCFunction_Check(callable)) {
    CallRule rule = ruleOf(callable);
    const bool bound = boundSelf(callable) != nullptr;
    PyRef owner = bound ? selfOf(callable) : PyRef();
    PyObject* self = owner.get();
    if (rule && bound) {
      // The rule sees the unbound method with its object as the first argument. (The object's class may have another under the name: super().)
      const PyRef unbound = unboundMethod(callable);
      std::vector<PyObject*> all = {self};
      all.insert(all.end(), args, args + a.total());
      return applyRule(rule, unbound ? unbound.get() : callable, {all.data(), positional + 1, kwNames}, true);
    }
    if (rule) return applyRule(rule, callable, a);
    if (isTorchBinding(callable)) {
      if (!bound || self == boundSelf(callable)) return callReal(callable, a);
      // Bound to a real tensor: the same method of its stand-in.
      PyRef method = checked(PyObject_GetAttrString(self, reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name));
      return method ? callReal(method.get(), a) : PyRef();
    }
  } else if (PyType_Check(callable)) {
    if (CallRule rule = ruleOf(callable)) return applyRule(rule, callable, a);
    bool isPlacements = false;
    if (PyRef made = callOfDistributed(*this, callable, a, &isPlacements); isPlacements) return made;
    return callType(reinterpret_cast<PyTypeObject*>(callable), a);
  } else if (CallRule rule = ruleOf(callable)) {
    return applyRule(rule, callable, a);
  } else if (isTorchBinding(callable)) {
    return callReal(callable, a);
  } else if (!PyCFunction_Check(callable) && Py_TYPE(callable) != &PyMethodDescr_Type && Py_TYPE(callable) != &PyWrapperDescr_Type) {
    return callInstance(callable, a);
  }
  bool isPlacements = false;
  if (PyRef answer = callOfDistributed(*this, callable, a, &isPlacements); isPlacements) return answer;
  breakHere("unsupported call", describe(callable) + " is a C function that no rule describes",
            "Move the call out of the compiled region, or mark it with torch.compiler.disable.");
}

PyRef Evaluation::callEx(PyObject* callable, PyObject* argsTuple, PyObject* kwargs) {
  std::vector<PyRef> keep;
  std::vector<PyObject*> args;
  auto push = [&](PyRef value) {
    args.push_back(value.get());
    keep.push_back(std::move(value));
  };
  const Py_ssize_t n = builtinLength(argsTuple);
  for (Py_ssize_t i = 0; i < n; ++i) push(element(argsTuple, i));
  if (!kwargs || builtinLength(kwargs) == 0) return call(callable, args.data(), static_cast<size_t>(n), nullptr);
  guardKeys(kwargs);
  PyRef items = itemsInOrder(kwargs), names = PyRef::steal(PyTuple_New(PyList_GET_SIZE(items.get())));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); ++i) {
    PyObject* name = PyTuple_GET_ITEM(PyList_GET_ITEM(items.get(), i), 0);
    PyTuple_SET_ITEM(names.get(), i, PyRef::borrow(name).release());
    push(readDict(kwargs, name));
  }
  return call(callable, args.data(), static_cast<size_t>(n), names.get());
}

PyRef Evaluation::callMethodNamed(PyObject* object, const char* name, std::initializer_list<PyObject*> args) {
  PyRef method = getAttr(object, internedName(name));
  if (!method) return {};
  std::vector<PyObject*> list(args);
  return call(method.get(), list.data(), list.size(), nullptr);
}

namespace {

/// functools.partial: its parts, then the call.
PyRef callPartial(Evaluation& e, PyObject* partial, const CallArguments& a) {
  PyRef function = e.getAttr(partial, internedName("func")), first = e.getAttr(partial, internedName("args"));
  PyRef keywords = e.getAttr(partial, internedName("keywords"));
  if (!function || !first || !keywords) return {};
  PyRef merged = PyRef::steal(PyDict_New());
  if (!e.updateDict(merged.get(), keywords.get())) return {};
  const PyRef& leading = first;
  const Py_ssize_t n = e.builtinLength(leading.get());
  for (size_t i = 0; i < a.keywords(); ++i) PyDict_SetItem(merged.get(), a.keywordName(i), a.args[a.positional + i]);
  PyRef args = PyRef::steal(PyTuple_New(n + static_cast<Py_ssize_t>(a.positional)));
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(args.get(), i, e.element(leading.get(), i).release());
  for (size_t i = 0; i < a.positional; ++i)
    PyTuple_SET_ITEM(args.get(), n + static_cast<Py_ssize_t>(i), PyRef::borrow(a.args[i]).release());
  return e.callEx(function.get(), args.get(), merged.get());
}

}  // namespace

namespace {

/// Whether a frame that runs holds an object in a variable or on its stack.
bool isHeld(const Frame* frame, PyObject* object) {
  const auto holds = [object](const PyRef& slot) {
    return slot && (slot.get() == object || (PyCell_Check(slot.get()) && PyCell_GET(slot.get()) == object));
  };
  for (; frame; frame = frame->caller)
    if (std::any_of(frame->locals.begin(), frame->locals.end(), holds) || std::any_of(frame->stack.begin(), frame->stack.end(), holds)) return true;
  return false;
}

}  // namespace

/// A weak reference that existed before stays one object; what it refers to is guarded to be alive. What the segment made lives as long as
/// the capture: whether the program has let go of it, only CPython knows.
PyRef callWeakReference(Evaluation& e, PyObject* reference) {
  const Source* source = e.sourceOf(reference);
  PyObject* target = PyWeakref_GET_OBJECT(reference);
  if (target != Py_None && e.origin(target) && e.isFresh(target) && !isHeld(e.frame(), target))
    e.breakHere("weak reference", std::string("a weak reference to a ") + Py_TYPE(target)->tp_name + " of the compiled region is asked whether that lives");
  if (!source || target == Py_None) return e.translate(target, nullptr);
  e.guard(GuardKind::IdMatch, source, reference);
  return e.wrap(target, e.sources().globalWeak(reference));
}

namespace {

bool isFixed(PyObject* value) {
  if (!PyTuple_CheckExact(value)) return isConstantValue(value) || isValueObject(value);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i)
    if (!isFixed(PyTuple_GET_ITEM(value, i))) return false;
  return true;
}

bool sameFixed(PyObject* a, PyObject* b) {
  if (!PyTuple_CheckExact(a) || !PyTuple_CheckExact(b) || PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return sameValue(a, b);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i)
    if (!sameFixed(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
  return true;
}

/// Guard: an object of the operator module asks for the keys in the tuple `keys`.
bool asksFor(PyObject* object, PyObject* keys) {
  PyRef parts = PyRef::steal(PyObject_CallMethod(object, "__reduce__", nullptr));
  PyRef now = parts ? PyRef::steal(PySequence_GetItem(parts.get(), 1)) : PyRef();
  clearError();
  return now && sameFixed(now.get(), keys);
}

/// operator.itemgetter, attrgetter and methodcaller, by the parts that pickling gives.
PyRef callOperatorObject(Evaluation& e, PyObject* object, const CallArguments& a) {
  const std::string_view kind = Py_TYPE(object)->tp_name;
  PyRef parts = PyRef::steal(PyObject_CallMethod(object, "__reduce__", nullptr));
  PyRef maker = parts ? PyRef::steal(PySequence_GetItem(parts.get(), 0)) : PyRef(), keys = parts ? PyRef::steal(PySequence_GetItem(parts.get(), 1)) : PyRef();
  const bool hasKeywords = keys && !PyType_Check(maker.get());  // a methodcaller that functools.partial makes with them
  if (!keys || a.total() != 1 || a.positional != 1 || (PyTuple_GET_SIZE(keys.get()) == 0 && !hasKeywords)) {
    clearError();
    e.breakHere("unsupported call", "calling an " + std::string(kind) + " in an unusual way");
  }
  if (const Source* source = e.sourceOf(object); source && source->kind != Source::Kind::Pinned) {
    if (isFixed(keys.get()) && !hasKeywords) e.guardCustom(source, asksFor, keys.get(), "operator object");
    else e.guard(GuardKind::IdMatch, source, object);
  }
  PyRef subject = PyRef::borrow(a.args[0]);
  if (kind == "operator.methodcaller") {
    PyRef keywords;
    if (hasKeywords) {
      PyRef first = PyRef::steal(PyObject_GetAttrString(maker.get(), "args"));
      keywords = PyRef::steal(PyObject_GetAttrString(maker.get(), "keywords"));
      keys = first && keywords ? PyRef::steal(PySequence_Concat(first.get(), keys.get())) : PyRef();
      if (!keys) return {};
    }
    PyRef method = e.getAttr(subject.get(), PyTuple_GET_ITEM(keys.get(), 0));
    PyRef args = PyRef::steal(PyTuple_GetSlice(keys.get(), 1, PyTuple_GET_SIZE(keys.get())));
    return method ? e.callEx(method.get(), args.get(), keywords.get()) : PyRef();
  }
  auto one = [&](PyObject* key) -> PyRef {
    if (kind == "operator.itemgetter") return e.getItem(subject.get(), key);
    PyRef names = PyRef::steal(PyObject_CallMethod(key, "split", "s", ".")), value = subject;
    for (Py_ssize_t i = 0; names && value && i < PyList_GET_SIZE(names.get()); ++i) {
      PyRef name = PyRef::borrow(PyList_GET_ITEM(names.get(), i));
      PyObject* interned = name.release();
      PyUnicode_InternInPlace(&interned);
      value = e.getAttr(value.get(), interned);
      Py_DECREF(interned);
    }
    return value;
  };
  const Py_ssize_t n = PyTuple_GET_SIZE(keys.get());
  if (n == 1) return one(PyTuple_GET_ITEM(keys.get(), 0));
  PyRef tuple = PyRef::steal(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyRef value = one(PyTuple_GET_ITEM(keys.get(), i));
    if (!value) return {};
    PyTuple_SET_ITEM(tuple.get(), i, value.release());
  }
  return tuple;
}

/// Whether TorchScript takes `value` as it is for a parameter of the type `wanted`: it converts numbers, copies containers and refuses others.
bool takesAsItIs(Evaluation& e, PyObject* value, std::string_view wanted) {
  constexpr std::string_view kOptional = "Optional[";
  if (wanted.starts_with(kOptional)) {
    if (value == Py_None) return true;
    wanted = wanted.substr(kOptional.size(), wanted.size() - kOptional.size() - 1);
  }
  if (wanted == "Tensor") return e.isTensor(value) && !e.isNumber(value) && !answersTorchFunctions(value);
  if (wanted == "int") return PyLong_CheckExact(value) || isSymbolicInt(value);
  if (wanted == "float") return PyFloat_CheckExact(value) || isSymbolicFloat(value) || e.isNumber(value);
  if (wanted == "bool") return PyBool_Check(value);
  return wanted == "str" && PyUnicode_CheckExact(value);
}

bool scriptTakesAsItIs(Evaluation& e, PyObject* scripted, const CallArguments& a) {
  PyRef schema = PyRef::steal(PyObject_GetAttrString(scripted, "schema"));
  PyRef parameters = schema ? PyRef::steal(PyObject_GetAttrString(schema.get(), "arguments")) : PyRef();
  const auto text = [](PyObject* parameter, const char* what) {
    PyRef read = PyRef::steal(PyObject_GetAttrString(parameter, what)), shown = read ? PyRef::steal(PyObject_Str(read.get())) : PyRef();
    return shown ? std::string(utf8Of(shown.get())) : std::string();
  };
  bool fits = parameters && PyList_Check(parameters.get());
  const size_t count = fits ? static_cast<size_t>(PyList_GET_SIZE(parameters.get())) : 0;
  for (size_t i = 0; fits && i < a.total(); ++i) {
    size_t at = i;
    if (i >= a.positional) {
      const std::string name = utf8Of(PyTuple_GET_ITEM(a.kwNames, static_cast<Py_ssize_t>(i - a.positional)));
      for (at = 0; at < count && text(PyList_GET_ITEM(parameters.get(), static_cast<Py_ssize_t>(at)), "name") != name;) ++at;
    }
    fits = at < count && takesAsItIs(e, a.args[i], text(PyList_GET_ITEM(parameters.get(), static_cast<Py_ssize_t>(at)), "type"));
  }
  clearError();
  return fits;
}

}  // namespace

PyRef Evaluation::callInstance(PyObject* object, const CallArguments& a) {
  PyTypeObject* type = Py_TYPE(object);
  static PyObject *const partial = torchObject("functools.partial"), *const cached = torchObject("functools._lru_cache_wrapper");
  static PyObject* const operators[] = {torchObject("operator.itemgetter"), torchObject("operator.attrgetter"), torchObject("operator.methodcaller")};
  auto* typeObject = reinterpret_cast<PyObject*>(type);
  if (typeObject == partial) return callPartial(*this, object, a);
  if (typeObject == cached) return callCached(object, a);
  static PyObject* const scripted = torchObject("torch.jit.ScriptFunction");
  if (typeObject == scripted) {
    // torch.jit.script keeps the function that it was given, whose operators are torch's own.
    if (!guardTorchsMethods(tensorType()) || !scriptTakesAsItIs(*this, object, a)) breakHere("unsupported call", "a scripted function is called with what TorchScript converts or refuses");
    if (PyRef written = PyRef::steal(PyObject_GetAttrString(object, "_torchdynamo_inline")); written && PyFunction_Check(written.get())) {
      if (const Source* source = sourceOf(object)) guard(GuardKind::IdMatch, source, object);
      pin(written.get(), Why::Owner);
      return call(written.get(), a);
    }
    clearError();
  }
  if (PyObject* original = originalOfCompiled ? originalOfCompiled(object) : nullptr) {
    // Compiled inside compiled: one region.
    if (const Source* source = sourceOf(object)) guard(GuardKind::IdMatch, source, object);
    pin(original, Why::Owner);
    return call(original, a);
  }
  if (PyWeakref_CheckRef(object) && Py_TYPE(object)->tp_call == _PyWeakref_RefType.tp_call) return callWeakReference(*this, object);
  static PyObject* const higherOrder = torchObject("torch._ops.HigherOrderOperator");
  if (higherOrder && PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(higherOrder))) {
    bool known = false;
    PyRef result = torchCalls_ ? torchCalls_->higherOrder(object, a, &known) : followConditionalOperator(*this, object, a, &known);
    if (!known && !torchCalls_) result = followLoopOperator(*this, object, a, &known);
    if (known) return result;
  }
  if (std::find(std::begin(operators), std::end(operators), typeObject) != std::end(operators))
    return callOperatorObject(*this, object, a);
  if (Py_TYPE(object) == &PyStaticMethod_Type) {
    PyRef wrapped = getAttr(object, internedName("__func__"));
    return wrapped ? call(wrapped.get(), a) : PyRef();
  }
  if (type == &_PyMethodWrapper_Type) {
    PyRef self = selfOf(object);
    PyRef descriptor = unboundMethod(object);
    if (!descriptor) breakHere("unsupported call", "calling " + describe(object));
    std::vector<PyObject*> all = {self.get()};
    all.insert(all.end(), a.args.begin(), a.args.begin() + a.total());
    return call(descriptor.get(), all.data(), a.positional + 1, a.kwNames);
  }
  if (PyObject** attributes = _PyObject_GetDictPtr(object)) refuseDisabled(*this, object, *attributes);
  static PyObject* const kCall = internedName("__call__");
  PyObject* method = typeLookup(type, kCall);
  if (!method) {
    PyErr_Format(PyExc_TypeError, "'%.200s' object is not callable", type->tp_name);
    return {};
  }
  if (PyFunction_Check(method)) {
    pin(method, Why::Class);
    bool handled = false;
    PyRef result = callModuleInstance(object, method, a, &handled);
    if (handled) return result;
    std::vector<PyObject*> all = {object};
    all.insert(all.end(), a.args.begin(), a.args.begin() + a.total());
    return call(method, all.data(), a.positional + 1, a.kwNames);
  }
  if (Py_TYPE(method) == &PyStaticMethod_Type) {
    pin(method, Why::Class);
    PyRef wrapped = getAttr(method, internedName("__func__"));
    return wrapped ? call(wrapped.get(), a) : PyRef();
  }
  breakHere("unsupported call", "calling " + describe(object));
}

PyRef Evaluation::callNew(PyTypeObject* type, const CallArguments& a) {
  auto* object = reinterpret_cast<PyObject*>(type);
  static PyObject* const kNew = internedName("__new__");
  PyObject* found = typeLookup(type, kNew);
  PyRef maker = found && Py_TYPE(found) == &PyStaticMethod_Type ? PyRef::steal(PyObject_GetAttrString(found, "__func__")) : PyRef::borrow(found);
  if (maker && PyFunction_Check(maker.get())) {
    pin(maker.get(), Why::Class);
    std::vector<PyObject*> all = {object};
    all.insert(all.end(), a.args.begin(), a.args.begin() + a.total());
    return call(maker.get(), all.data(), a.positional + 1, a.kwNames);
  }
  if (type->tp_new == PyBaseObject_Type.tp_new) {
    // object.__new__ ignores arguments that __init__ takes.
    PyRef none = PyRef::steal(PyTuple_New(0));
    static PyObject* const kInit = internedName("__init__");
    PyObject* init = typeLookup(type, kInit);
    if (a.total() > 0 && init && !PyFunction_Check(init)) {
      PyErr_Format(PyExc_TypeError, "%.200s() takes no arguments", type->tp_name);
      return {};
    }
    return checked(PyBaseObject_Type.tp_new(type, none.get(), nullptr));
  }
  if (PyType_IsSubtype(type, &PyProperty_Type)) {
    PyRef none = PyRef::steal(PyTuple_New(0));
    return checked(type->tp_new(type, none.get(), nullptr));
  }
  // Called for the class's `apply` alone: an instance is the context of no call.
  static PyObject* const ofFunctions = torchObject("torch.autograd.Function");
  if (PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(ofFunctions))) {
    PyRef none = PyRef::steal(PyTuple_New(0));
    return checked(type->tp_new(type, none.get(), nullptr));
  }
  if (isFollowedClass(type) && a.total() == 1 && a.positional == 1 && isTensor(a.args[0]) && !isNumber(a.args[0])) return ofClass(*this, a.args[0], type, false);
  const bool container = PyType_IsSubtype(type, &PyDict_Type) || PyType_IsSubtype(type, &PyList_Type) || PyType_IsSubtype(type, &PySet_Type);
  const bool exception = PyExceptionClass_Check(object);
  const bool immutable = PyType_IsSubtype(type, &PyTuple_Type) || PyType_IsSubtype(type, &PyUnicode_Type) ||
                         PyType_IsSubtype(type, &PyLong_Type) || PyType_IsSubtype(type, &PyFloat_Type);
  if (container || exception || immutable) {
    const bool tuple = PyType_IsSubtype(type, &PyTuple_Type);
    PyRef args = PyRef::steal(PyTuple_New(container ? 0 : static_cast<Py_ssize_t>(a.positional)));
    for (size_t i = 0; !container && i < a.positional; ++i) {
      PyRef value = exception ? PyRef::borrow(a.args[i])
                              : tuple || lazyOf(a.args[i]) || PyIter_Check(a.args[i]) ? collect(a.args[i], true) : expose(a.args[i]);
      if (!value) return {};
      PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), value.release());
    }
    PyRef keywords = !container && a.keywords() > 0 ? PyRef::steal(PyDict_New()) : PyRef();
    for (size_t i = 0; keywords && i < a.keywords(); ++i)
      PyDict_SetItem(keywords.get(), a.keywordName(i), expose(a.args[a.positional + i]).get());
    return checked(type->tp_new(type, args.get(), keywords.get()));
  }
  breakHere("unsupported call", std::string("making an instance of ") + type->tp_name,
            "Make the object outside the compiled region.");
}

bool Evaluation::callInit(PyObject* object, PyTypeObject* type, const CallArguments& a) {
  static PyObject* const kInit = internedName("__init__");
  PyObject* init = typeLookup(type, kInit);
  if (!init || init == PyRef::steal(PyObject_GetAttr(reinterpret_cast<PyObject*>(&PyBaseObject_Type), kInit)).get()) return true;
  pin(init, Why::Class);
  std::vector<PyObject*> all = {object};
  all.insert(all.end(), a.args.begin(), a.args.begin() + a.total());
  PyRef result = call(init, all.data(), a.positional + 1, a.kwNames);
  if (result && result.get() != Py_None) {
    PyErr_Format(PyExc_TypeError, "__init__() should return None, not '%.200s'", Py_TYPE(result.get())->tp_name);
    return false;
  }
  return static_cast<bool>(result);
}

PyRef Evaluation::memberOfValue(PyTypeObject* type, const CallArguments& a) {
  auto* object = reinterpret_cast<PyObject*>(type);
  if (a.total() != 1 || a.positional != 1) return {};
  if (Py_TYPE(a.args[0]) == type) return PyRef::borrow(a.args[0]);
  if (!isConstantValue(a.args[0])) return {};
  PyRef table = PyRef::steal(PyObject_GetAttrString(object, "_value2member_map_"));
  PyObject* member = table && PyDict_Check(table.get()) ? PyDict_GetItemWithError(table.get(), a.args[0]) : nullptr;
  clearError();
  if (!member) return {};
  guardTypeAttribute(type, internedName("_value2member_map_"));
  pin(table.get(), Why::Class);
  return readDict(table.get(), a.args[0]);
}

PyRef Evaluation::callType(PyTypeObject* type, const CallArguments& a) {
  auto* object = reinterpret_cast<PyObject*>(type);
  pin(object, Why::Process);
  if (isEnumClass(object)) {
    // A member may be made, which outlives the call with the number in it.
    if (a.positional > 0 && isSymbolicNumber(a.args[0])) {
      const PyRef number = expose(a.args[0]);
      if (!number) return {};
      std::vector<PyObject*> all(a.args.begin(), a.args.begin() + a.total());
      all[0] = number.get();
      return callType(type, CallArguments(all.data(), a.positional, a.kwNames));
    }
    if (PyRef member = memberOfValue(type, a)) return member;
  }
  static PyObject* const kCall = internedName("__call__");
  PyTypeObject* meta = Py_TYPE(type);
  if (meta != &PyType_Type) {
    PyObject* metaCall = typeLookup(meta, kCall);
    if (metaCall && PyFunction_Check(metaCall)) {
      pin(metaCall, Why::Class);
      std::vector<PyObject*> all = {object};
      all.insert(all.end(), a.args.begin(), a.args.begin() + a.total());
      return call(metaCall, all.data(), a.positional + 1, a.kwNames);
    }
  }
  return construct(type, a);
}

void Evaluation::refuseFinalizer(PyTypeObject* type) {
  static PyObject* const kDel = internedName("__del__");
  if (isPythonClass(type) && typeLookup(type, kDel))
    breakHere("finalizer", std::string("making an instance of ") + type->tp_name + ", whose __del__ runs when it dies",
              "Make the object outside the compiled region.");
}

/// torch.nn.Parameter(data, requires_grad) where no gradient of it is recorded. Null without error: it is another call.
static PyRef parameterOf(Evaluation& e, PyTypeObject* type, const CallArguments& a) {
  static PyObject* const parameter = torchObject("torch.nn.parameter.Parameter");
  static PyObject* const detach = torchObject("torch.ops.aten.detach.default");
  if (reinterpret_cast<PyObject*>(type) != parameter || e.torchCalls() || e.functionModes().isActive() || a.positional > 2 || a.total() > 2) return {};
  PyObject* data = a.positional > 0 ? a.args[0] : a.keyword("data");
  PyObject* wants = a.positional > 1 ? a.args[1] : a.keyword("requires_grad");
  if (!data || !e.isStandIn(data) || !isPlainTensorClass(Py_TYPE(data)) || (wants && !PyBool_Check(wants))) return {};
  const bool wantsGradient = wants != Py_False;
  if (wantsGradient && (at::GradMode::is_enabled() || !tensorOf(data).is_floating_point())) return {};
  PyRef made = e.call(detach, &data, 1, nullptr);
  if (!made) return {};
  if (PyObject_SetAttrString(made.get(), "__class__", parameter) < 0) return {};
  if (wantsGradient) tensorOf(made.get()).set_requires_grad(true);
  return made;
}

PyRef Evaluation::construct(PyTypeObject* type, const CallArguments& a) {
  if (PyRef made = parameterOf(*this, type, a); made || PyErr_Occurred()) {
    if (made) noteLeaf(made.get());
    return made;
  }
  if (isNestedClass(type)) return makeNested(*this, a);
  static PyObject* const buffer = torchObject("torch.nn.parameter.Buffer");  // whose instances are marked plain tensors
  if (PyType_IsSubtype(type, tensorType()) && !isFollowedClass(type) && reinterpret_cast<PyObject*>(type) != buffer)
    breakHere("unsupported call", std::string("making a ") + type->tp_name + " inside the compiled region",
              "Make parameters outside the compiled region.");
  refuseFinalizer(type);
  PyRef made = callNew(type, a);
  if (!made) return {};
  if (!PyType_IsSubtype(Py_TYPE(made.get()), type)) return made;
  return callInit(made.get(), Py_TYPE(made.get()), a) ? made : PyRef();
}

}  // namespace fusebox::capture
