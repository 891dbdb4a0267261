// captureSegment(): evaluates a frame from a state on, and ends the segment where it returns or breaks.
#include <ATen/SavedTensorHooks.h>
#include <c10/core/AutogradState.h>
#include <torch/csrc/autograd/forward_grad.h>

#include "engine/aot/input_overlap.h"
#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/once.h"
#include "engine/capture/entries/barrier.h"
#include "engine/capture/entries/debug_stops.h"
#include "engine/capture/entries/dynamic_rules.h"
#include "engine/capture/evaluation/compiling_flag.h"
#include "engine/capture/evaluation/arrays.h"
#include "engine/capture/evaluation/cached_calls.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/exchanged_data.h"
#include "engine/capture/evaluation/switched_leaves.h"
#include "engine/capture/evaluation/taken_iterators.h"
#include "engine/capture/evaluation/random_draws.h"
#include "engine/capture/evaluation/saved_tensor_hooks.h"
#include "engine/capture/evaluation/function_modes.h"
#include "engine/capture/evaluation/inference_blocks.h"
#include "engine/capture/evaluation/interpreter.h"
#include "engine/capture/evaluation/tensor_subclasses.h"
#include "engine/capture/effects/recipes.h"
#include "engine/capture/rules/autograd_function.h"
#include "engine/capture/evaluation/torch_calls.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/graph/operator_facts.h"
#include "engine/graph/specialise_watch.h"
#include "engine/record/recorder.h"
#include "engine/trace/transform_levels.h"

namespace fusebox::capture {

/// Thread state of libtorch that Python code switches by context managers.
struct Evaluation::Modes {
  using FunctionModes = std::vector<std::shared_ptr<c10::SafePyObject>>;
  bool grad = at::GradMode::is_enabled(), forwardGrad = c10::AutogradState::get_tls_state().get_fw_grad_mode();
  bool cacheEnabled = at::autocast::is_autocast_cache_enabled();
  bool cpu = at::autocast::is_autocast_enabled(at::kCPU), cuda = at::autocast::is_autocast_enabled(at::kCUDA);
  at::ScalarType cpuType = at::autocast::get_autocast_dtype(at::kCPU), cudaType = at::autocast::get_autocast_dtype(at::kCUDA);
  int autocastDepth = depth();
  bool breaksAreErrors = errorOnGraphBreak();
  at::impl::TorchFunctionDisabledState asked = at::impl::PythonTorchFunctionTLS::get_disabled_state();  ///< whether classes of tensors are
  bool flash = at::globalContext().userEnabledFlashSDP(), efficient = at::globalContext().userEnabledMemEfficientSDP();  ///< attention may use
  bool math = at::globalContext().userEnabledMathSDP(), cudnn = at::globalContext().userEnabledCuDNNSDP();
  bool overrideable = at::globalContext().userEnabledOverrideableSDP();
  FunctionModes functions = functionModes();  ///< `with torch.device()` inside of what is captured

  bool operator==(const Modes&) const = default;
  void apply() const {
    at::GradMode::set_enabled(grad);
    c10::AutogradState::get_tls_state().set_fw_grad_mode(forwardGrad);
    at::autocast::set_autocast_cache_enabled(cacheEnabled);
    at::autocast::set_autocast_enabled(at::kCPU, cpu);
    at::autocast::set_autocast_enabled(at::kCUDA, cuda);
    at::autocast::set_autocast_dtype(at::kCPU, cpuType);
    at::autocast::set_autocast_dtype(at::kCUDA, cudaType);
    if (breaksAreErrors != errorOnGraphBreak()) setErrorOnGraphBreak(breaksAreErrors);
    at::impl::PythonTorchFunctionTLS::set_disabled_state(asked);
    at::Context& process = at::globalContext();
    if (flash != process.userEnabledFlashSDP()) process.setSDPUseFlash(flash);
    if (efficient != process.userEnabledMemEfficientSDP()) process.setSDPUseMemEfficient(efficient);
    if (math != process.userEnabledMathSDP()) process.setSDPUseMath(math);
    if (cudnn != process.userEnabledCuDNNSDP()) process.setSDPUseCuDNN(cudnn);
    if (overrideable != process.userEnabledOverrideableSDP()) process.setSDPUseOverrideable(overrideable);
  }
  static int depth() {
    const int deeper = at::autocast::increment_nesting();
    at::autocast::decrement_nesting();
    return deeper - 1;
  }
  static FunctionModes functionModes() {
    FunctionModes stack;
    for (int64_t i = 0; i < at::impl::PythonTorchFunctionTLS::stack_len(); ++i) stack.push_back(at::impl::PythonTorchFunctionTLS::get_stack_at(i));
    return stack;
  }
  /// Leaves the modes of `from` that `to` does not have, and enters those of `to` that `from` does not have.
  static void changeFunctions(const FunctionModes& from, const FunctionModes& to) {
    const auto common = static_cast<size_t>(std::mismatch(from.begin(), from.end(), to.begin(), to.end()).first - from.begin());
    for (size_t i = common; i < from.size(); ++i) (void)at::impl::PythonTorchFunctionTLS::pop_stack();
    for (size_t i = common; i < to.size(); ++i) at::impl::PythonTorchFunctionTLS::push_onto_stack(to[i]);
  }
  /// Enters or leaves autocast blocks; its cache of casted weights ends with the outermost.
  static void nest(int by) {
    for (; by > 0; --by) at::autocast::increment_nesting();
    for (; by < 0; ++by)
      if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  }
};

namespace {

constexpr int kMaxAttempts = 12;

/// Keeps saved-tensor hooks of the program (checkpoint's) from what tracing saves: they are called when the graph runs.
class NoSavedTensorHooks {
 public:
  NoSavedTensorHooks() : saved_(at::SavedTensorDefaultHooks::get_tls_state()) {
    waiting = savedTensorHooksSet();
    at::impl::SavedTensorDefaultHooksTLS none;
    none.disabled_error_message = saved_.disabled_error_message;
    at::SavedTensorDefaultHooks::set_tls_state(none);
    forbidden = saved_.disabled_error_message;
  }
  ~NoSavedTensorHooks() {
    at::SavedTensorDefaultHooks::set_tls_state(saved_);
    forbidden.reset();
    waiting = SavedTensorHooks::None;
  }
  static thread_local std::optional<std::string> forbidden;  ///< why hooks were forbidden when capture began
  static thread_local SavedTensorHooks waiting;
  NoSavedTensorHooks(const NoSavedTensorHooks&) = delete;

 private:
  at::impl::SavedTensorDefaultHooksTLS saved_;
};

thread_local std::optional<std::string> NoSavedTensorHooks::forbidden;
thread_local SavedTensorHooks NoSavedTensorHooks::waiting = SavedTensorHooks::None;

/// A transform of functorch or a level of forward-mode differentiation is entered, or hooks on saved tensors are forbidden, as transforms that differentiate do first.
bool isTransforming() {
  return trace::insideTransform() || torch::autograd::ForwardADLevel::try_get_by_idx(0) || 
         at::SavedTensorDefaultHooks::get_disabled_error_message() != NoSavedTensorHooks::forbidden;
}

std::unique_ptr<Frame> rootFrame(const FrameState& state) {
  std::unique_ptr<Frame> frame = Frame::make(state.function.get());
  if (frame->code() != state.code) frame->decoded = decodeCode(state.code);
  frame->locals = state.locals;
  frame->locals.resize(static_cast<size_t>(state.code->co_nlocalsplus));
  frame->unread.assign(frame->locals.size(), true);
  frame->unreadSource.assign(frame->locals.size(), nullptr);
  frame->stack = state.stack;
  frame->pc = frame->decoded->indexOfOffset[static_cast<size_t>(state.offset)];
  frame->isRoot = true;
  return frame;
}

/// Instructions at which a forced break (CaptureOptions::breakEvery) makes sense: those that call or compute.
bool mayBreak(Op op) {
  switch (op) {
    case Op::CALL: case Op::CALL_FUNCTION_EX: case Op::BINARY_OP: case Op::LOAD_ATTR: case Op::LOAD_METHOD: case Op::BINARY_SUBSCR:
    case Op::STORE_ATTR: case Op::STORE_SUBSCR: case Op::FOR_ITER: case Op::COMPARE_OP: case Op::BEFORE_WITH:
      return true;
    default:
      return false;
  }
}

/// Whether the value lies in memory of its own, which a call of this graph has made: where nothing but views leads to an input.
bool isMadeInside(const graph::Graph& graph, graph::ValueRef value) {
  while (graph.node(value.node).kind == graph::NodeKind::Call) {
    const graph::Node& node = graph.node(value.node);
    const graph::OperatorFacts& facts = graph::factsOf(node);
    const bool mayShare = facts.view || facts.writes || facts.foreign || facts.python || facts.dropoutAt >= 0;
    if (!mayShare) return true;
    std::optional<graph::ValueRef> first;
    graph::Graph::forEachValue(node.args, [&](graph::ValueRef argument) { first = first.value_or(argument); });
    if (!first || facts.foreign || facts.python) return false;
    value = *first;
  }
  return false;
}

/// Whether an operator reaches what an input's own sizes and strides do not cover: it counts from the storage's start, and ends at its end.
bool stridesOverStorage(const trace::TraceContext& trace) {
  for (const graph::Node& node : trace.graph().nodes()) {
    if (node.op.find("as_strided") == std::string::npos) continue;
    const auto* base = node.args.empty() ? nullptr : std::get_if<graph::ValueRef>(&node.args.front().value);
    if (!base || !isMadeInside(trace.graph(), *base)) return true;
  }
  return false;
}

/// First instruction of the group that a CALL with keywords belongs to: KW_NAMES must be executed with it.
int groupStart(const Frame& frame) {
  int pc = frame.pc;
  const auto& list = frame.decoded->instructions;
  if (!frame.kwNames) return pc;
  while (pc > 0 && list[static_cast<size_t>(pc)].op != Op::KW_NAMES) --pc;
  return pc;
}

/// " (a dict of a LlamaConfig)": what was written first, for people.
std::string firstEffect(const Journal& journal) {
  if (journal.entries().empty()) return {};
  const Journal::Entry& entry = journal.entries().front();
  const std::string written = Py_TYPE(entry.container.get())->tp_name;
  return " (a " + written + (entry.owner ? " of a " + std::string(Py_TYPE(entry.owner.get())->tp_name) : "") +
         (entry.source ? ", " + entry.source->str() : "") + ")";
}

}  // namespace

SavedTensorHooks savedTensorHooksWaiting() { return NoSavedTensorHooks::waiting; }

namespace {

/// Whether an operator that is written in Python is told by its code to do nothing but compute.
bool onlyComputes(const std::string& op) {
  GilHeld gil;
  static Once<PyObject*> asked;
  PyObject* ask = asked.get([] {
    PyRef module = PyRef::steal(PyImport_ImportModule("fusebox._quiet_operators"));
    return module ? PyObject_GetAttrString(module.get(), "only_computes") : nullptr;
  });
  PyRef answer = ask ? PyRef::steal(PyObject_CallFunction(ask, "s", op.c_str())) : PyRef();
  if (!answer) clearError();
  return answer && answer.get() == Py_True;
}

/// torch's settings of graphs for a backend in Python: numbers that are read from tensors, or sizes that data decide, are in them.
bool wantsDataInGraphs() {
  return dynamoSwitch("capture_scalar_outputs", "TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS", false) ||
         dynamoSwitch("capture_dynamic_output_shape_ops", "TORCHDYNAMO_CAPTURE_DYNAMIC_OUTPUT_SHAPE_OPS", false);
}

}  // namespace

Evaluation::Evaluation(const FrameState& state, const CaptureOptions& options)
    : state_(state), options_(options),
      guards_(std::make_shared<GuardSet>(state.code, reinterpret_cast<PyFunctionObject*>(state.function.get())->func_globals)),
      entryModes_(std::make_unique<Modes>()), functions_(std::make_unique<FunctionCalls>(*this)),
      arrays_(std::make_unique<Arrays>(*this)), functionModes_(std::make_unique<FunctionModes>(*this)),
      exchangedData_(std::make_unique<ExchangedData>(*this)), switchedLeaves_(std::make_unique<SwitchedLeaves>(*this)),
      standIns_(std::make_unique<StandIns>(*this)), draws_(std::make_unique<RandomDraws>(*this)),
      takenIterators_(std::make_unique<TakenIterators>(*this)), inferenceBlocks_(std::make_unique<InferenceBlocks>()) {
  breaksAreErrors = entryModes_->breaksAreErrors;
  trace_ = std::make_unique<trace::TraceContext>(
      // Operators are called without the GIL: torch's bindings give it up.
      [this](const at::Tensor& real) {
        GilHeld gil;
        PyRef object = PyRef::steal(newTensorObject(real));
        if (!object) clearError();
        else if (Origin* o = origins_.find(object.get()); o && o->source) return trace::Lift::input(trace_->input(real).index);
        return trace::Lift::breakWith("a tensor reached an operator without having been read from a place that can be guarded",
                                      "Pass the tensor as an argument or keep it on a module.");
      },
      [this] {
        GilHeld gil;
        return provenance();
      });
  trace_->setMayStop(!options_.fullgraph);
  trace_->setInputsShareMemory(options_.inputsShareMemory);
  symbolicInputs_ = std::make_unique<SymbolicInputs>(options_.symbolic, *guards_, trace_->shapes());
  if (const SymbolicPolicy* policy = options_.symbolic; policy && policy->dataAllowed && (!options.functionBackend || wantsDataInGraphs())) {
    trace_->dataSizes().isAllowed = true;
    trace_->dataSizes().hints = policy->dataHints;
  }
  if (options.functionBackend) torchCalls_ = std::make_unique<TorchCalls>(*this, options.functionBackend);
  graph::watchSpecialise(&trace_->shapes(), [this](const graph::SymExpr& expression, int64_t value, std::string_view reason) {
    if (!debug::armed(debug::Kind::Specialise)) return;
    GilHeld gil;
    stopAtSpecialise(*this, expression, value, reason);
  });
  trace_->setEffectPolicy([this](const std::string& op) {
    if (pythonOpAt_ < 0) pythonOpAt_ = rootCount_;
    if ((writes_ == 0 && journal_.calls() == 0) || onlyComputes(op)) return;
    const auto written = [&] {
      GilHeld gil;
      return firstEffect(journal_);
    }();
    trace::raiseBreak(trace::BreakKind::UnsupportedOp,
                      op + " is a function of Python and may see what the program changed or printed before it" + written,
                      "Call it before that, or outside compiled code.");
  });
}

Evaluation::~Evaluation() {
  if (options_.symbolic) options_.symbolic->dataUsed = !trace_->shapes().dataSymbols().empty();
  graph::watchSpecialise(&trace_->shapes(), {});
  iterators_->open = false;
  iterators_->abandoned.clear();
}

Evaluation::Effects Evaluation::effectsSoFar() const { return {writes_ + static_cast<int64_t>(draws_->count()), journal_.size()}; }

Place Evaluation::place() const {
  Place p;
  // The innermost frame of the user's code; generated and library frames name no useful line only when there is nothing else.
  if (const Frame* f = frame_) {
    p.file = utf8Of(f->code()->co_filename);
    p.line = f->line();
    p.function = utf8Of(f->code()->co_qualname);
    if (f->caller && record::Recorder::active()) p.callers = callerPlaces();
  }
  return p;
}

std::shared_ptr<const std::vector<Place>> Evaluation::callerPlaces() const {
  std::vector<std::pair<const PyCodeObject*, int>> callers;
  for (const Frame* f = frame_ ? frame_->caller : nullptr; f; f = f->caller) callers.emplace_back(f->code(), f->pc);
  if (callers.empty()) return nullptr;
  if (callers != lastCallers_) {
    std::vector<Place> places = stackPlaces();
    places.pop_back();
    lastCallerPlaces_ = std::make_shared<const std::vector<Place>>(std::move(places));
    lastCallers_ = std::move(callers);
  }
  return lastCallerPlaces_;
}

std::vector<Place> Evaluation::stackPlaces() const {
  std::vector<Place> places;
  for (const Frame* f = frame_; f; f = f->caller)
    places.push_back({utf8Of(f->code()->co_filename), f->line(), utf8Of(f->code()->co_qualname)});
  std::reverse(places.begin(), places.end());
  return places;
}

void Evaluation::breakHere(std::string kind, std::string reason, std::string hint) {
  throw CaptureBreak{{std::move(kind), std::move(reason), std::move(hint), place(), stackPlaces()}, -1};
}

void Evaluation::breakHere(const trace::BreakError& error) {
  trace::takeLastBreak();
  breakHere(std::string(trace::name(error.kind())), error.reason(), error.hint());
}

PyRef Evaluation::tracebackOf(PyObject* exception) {
  if (PyRef own = PyRef::steal(PyException_GetTraceback(exception))) return own;
  // Something that is a traceback and not None; getAttr() breaks where it is looked into.
  PyRef here = PyRef::steal(reinterpret_cast<PyObject*>(PyFrame_New(PyThreadState_Get(), frame_->code(), frame_->globals, nullptr)));
  PyRef made = here ? PyRef::steal(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyTraceBack_Type), "OOii", Py_None, here.get(), 0, frame_->line())) : PyRef();
  if (!made) {
    clearError();
    breakHere("traceback", "a traceback cannot be made");
  }
  adopt(made.get());
  return made;
}

void Evaluation::guardWritesAgainstAliases() {
  using Pair = std::pair<PyObject*, const Source*>;
  struct OfOneType {
    std::vector<Pair> written, known;  // what is known is there once
  };
  std::unordered_map<PyTypeObject*, OfOneType> types;
  for (const Journal::Entry& entry : journal_.entries()) {
    PyObject* written = entry.owner ? entry.owner.get() : entry.container.get();
    const Source* source = entry.owner ? entry.ownerSource : entry.source;
    if (source && source->kind != Source::Kind::Pinned) types[Py_TYPE(written)].written.emplace_back(written, source);
  }
  if (types.empty()) return;
  for (const auto& [object, origin] : origins_.all()) {
    if (!origin.source || origin.owner || origin.source->kind == Source::Kind::Pinned) continue;
    if (const auto type = types.find(Py_TYPE(object)); type != types.end()) type->second.known.emplace_back(object, origin.source);
  }
  std::vector<Pair> distinct;
  const auto addThoseBeside = [&](const std::vector<Pair>& these, const std::vector<Pair>& others) {
    if (others.empty()) return;
    PyObject* one = others.front().first;
    const bool areMany = std::any_of(others.begin(), others.end(), [&](const Pair& p) { return p.first != one; });
    for (const Pair& p : these)
      if (areMany || p.first != one) distinct.push_back(p);
  };
  for (const auto& [type, objects] : types) {
    addThoseBeside(objects.known, objects.written);
    addThoseBeside(objects.written, objects.known);
  }
  std::sort(distinct.begin(), distinct.end(), [](const Pair& a, const Pair& b) { return a.second->id < b.second->id; });
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  for (const Pair& p : distinct) guards_->addKind(GuardKind::NotSameObject, p.second, nullptr, place());
}

RecipePtr Evaluation::unreadRecipe(const Source* source) const {
  auto recipe = std::make_shared<Recipe>();
  recipe->kind = Recipe::Kind::FromSource;
  recipe->source = source;
  return recipe;
}

/// What the frame holds where the segment breaks.
void Evaluation::leaveFrame(const Frame& root, RecipeMaker& recipes, Segment& segment) {
  for (size_t i = 0; i < root.locals.size(); ++i) {
    PyObject* object = root.locals[i].get();
    segment.locals.push_back(object && root.unread[i] ? unreadRecipe(unreadSource(root, i)) : recipes.make(object));
  }
  for (size_t i = 0; i < root.stack.size(); ++i) {
    const auto unread = std::find_if(root.unreadStack.begin(), root.unreadStack.end(), [&](const Frame::UnreadEntry& entry) {
      return entry.index == i && entry.value == root.stack[i].get();
    });
    segment.stack.push_back(unread == root.unreadStack.end() ? recipes.make(root.stack[i].get()) : unreadRecipe(unread->source));
  }
  segment.offset = root.decoded->instructions[static_cast<size_t>(groupStart(root))].offset;
}

void Evaluation::attachGraph(RecipeMaker& recipes, Segment& segment) {
  if (torchCalls_) {
    functions_->rethrow();
    return torchCalls_->finish(recipes.graphOutputs(), segment);
  }
  // A mutated or returned tensor needs the graph even if no operator made it.
  if (trace_->recordedOps() == 0 && !trace_->wroteInputs() && recipes.graphOutputs().empty()) return;
  record::StageTimer timer(record::Recorder::active(), options_.compile, record::Phase::Aot, "functionalise and partition");
  if (debug::armed(debug::Kind::Pass)) stopAtFunctionalisation(trace_->graph(), nullptr);
  Result<aot::AotModule> module = [&] {
    const ClassesNotAsked off;  // asking a view for its history may set attributes of it
    aot::CompilerTraits compiler = options_.compiler;
    if (savedTensorHooksWaiting() == SavedTensorHooks::Programs) compiler = {.keepsWhatIsRead = true};
    return aot::finishTrace(*trace_, recipes.graphOutputs(), compiler);
  }();
  functions_->rethrow();
  if (module && debug::armed(debug::Kind::Pass)) stopAtFunctionalisation(trace_->graph(), &*module);
  if (!module) timer.error(module.error().text());
  if (!module) {
    CaptureBreak stopped{{"unsupported graph", module.error().text(), "", place(), stackPlaces()}, pythonOpAt_ >= 0 ? pythonOpAt_ : firstLeaf_};
    stopped.isOfGraph = stopped.birth < 0;
    stopped.isOfSharedMemory = !options_.inputsShareMemory && aot::writtenBeside(*trace_).first;
    throw stopped;
  }
  module->beforeBackward = functions_->lookAgain();
  segment.graph = std::make_shared<aot::AotModule>(std::move(*module));
  for (const trace::TracedInput& input : trace_->inputs()) {
    PyRef object = PyRef::steal(newTensorObject(input.real));
    segment.graphInputs.push_back(origins_.find(object.get())->source);
  }
}

void Evaluation::noteTransform() {
  if (!isTransforming()) transformAt_ = rootCount_;
}

/// A local has not been assigned to, or has its first value again.
bool Evaluation::holdsItsOwn(const Frame& root, size_t i) {
  PyObject* now = root.locals[i].get();
  if (!now || root.unread[i]) return now && !root.unreadSource[i];
  const Origin* origin = origins_.find(now);
  return origin && origin->source == sources().local(static_cast<int>(i));
}

Segment Evaluation::finish(Frame& root, Segment::Exit exit, std::optional<GraphBreak> why) {
  if (isTransforming())
    throw CaptureBreak{{"functorch", "a transform is entered where capture stops", why ? why->reason : "", place(), stackPlaces()}, transformAt_};
  if (inferenceBlocks_->openSince() >= 0)
    throw CaptureBreak{{"inference mode", "torch.inference_mode() is entered where capture stops", why ? why->reason : "", place(), stackPlaces()},
                       inferenceBlocks_->openSince()};
  Segment segment;
  if (exit == Segment::Exit::Return) {
    for (size_t i = 0; i < root.locals.size(); ++i) segment.rebound.push_back(!holdsItsOwn(root, i));
    // What only the frame held goes before its caller goes on.
    std::fill(root.stack.begin(), root.stack.end(), PyRef());
    std::fill(root.locals.begin(), root.locals.end(), PyRef());
    closeAbandoned();
  }
  requireHistories();
  standIns_->requireUnchanged();
  functionModes_->end(exit == Segment::Exit::Return);
  arrays_->finish();
  exchangedData_->takeBack();
  switchedLeaves_->takeBack();
  RecipeMaker recipes(*this);
  segment.exit = exit;
  segment.graphBreak = std::move(why);
  segment.bytecodes = bytecodes_;
  segment.frames = frames_;
  if (exit == Segment::Exit::Return)
    segment.result = recipes.make(root.result.get());
  else
    leaveFrame(root, recipes, segment);
  if (PyRef handled = PyRef::steal(PyErr_GetHandledException()); handled.get() != handled_.get()) segment.handled = recipes.make(handled.get());
  guardWritesAgainstAliases();
  segment.draws = draws_->finish(recipes);
  segment.effects = journal_.effects([&](PyObject* value) { return recipes.make(value); });
  takenIterators_->giveBack(recipes, segment.effects);
  requireNoneSuspended(&recipes);
  Modes now;
  if (functionModes_->takesPart()) now.functions = entryModes_->functions;  // end() has seen to them
  if (!(now == *entryModes_)) {
    segment.modes.gradMode = now.grad;
    segment.modes.apply = [now, entered = now.autocastDepth - entryModes_->autocastDepth, functions = entryModes_->functions] {
      now.apply();
      Modes::nest(entered);
      Modes::changeFunctions(functions, now.functions);
    };
  }
  requireNoCycles(recipes);
  attachGraph(recipes, segment);
  const bool reachesBeyond = readsStorage_ || stridesOverStorage(*trace_), dependsOnStorage = readsOffsets_ || reachesBeyond;
  if (dependsOnStorage) guards_->requireStorage(reachesBeyond);
  if (!symbolicInputs_->finish(dependsOnStorage)) throw std::runtime_error("a symbolic size can be read nowhere");
  trace_->shapes().close();
  if (segment.graph) {
    segment.graph->symbols = trace_->shapes().symbols();
    segment.graph->hints = trace_->shapes().hints();
    segment.graph->assumptions = trace_->shapes().assumptions();
  }
  segment.guards = guards_;
  segment.ofProcess = ofProcess_;
  return segment;
}

Result<Segment> Evaluation::run(int64_t stopAt, std::optional<GraphBreak> why) {
  stopAt_ = stopAt;
  guards_->addKind(GuardKind::GlobalState, nullptr, nullptr, place());
  trace::takeLastBreak();
  PyRef handled = PyRef::steal(PyErr_GetHandledException());
  handled_ = handled;
  // It outlives this function, which may be left by an exception that asks where it was.
  root_ = rootFrame(state_);
  Frame* const root = frame_ = root_.get();
  frames_ = 1;
  struct Restore {
    Evaluation& e;
    PyObject* handled;
    ~Restore() {
      clearError();
      trace::leaveTransforms();
      if (torch::autograd::ForwardADLevel::try_get_by_idx(0)) torch::autograd::ForwardADLevel::release_idx(0);
      e.journal_.undo();
      e.inferenceBlocks_->leaveAll();
      const int entered = Modes::depth() - e.entryModes_->autocastDepth;
      e.entryModes_->apply();
      Modes::nest(-entered);
      Modes::changeFunctions(Modes::functionModes(), e.entryModes_->functions);
      PyErr_SetHandledException(handled ? handled : Py_None);
      clearError();
    }
  };
  CompilingFlag flag;
  NoSavedTensorHooks hooks;
  if (NoSavedTensorHooks::forbidden) ownToProcess("the reason why hooks on saved tensors are forbidden");
  trace::TraceContext::Active active(*trace_);
  Restore restore{*this, handled.get()};
  functionModes_->begin();
  findHolders(*root);
  // The result of the instruction that broke is often only put away.
  if (!root->stack.empty() && root->stack.back() &&
      assignUnread(*root, root->stack.back().get(), sources().stack(static_cast<int>(root->stack.size()) - 1)))
    root->stack.pop_back();
  for (size_t i = 0; i < root->stack.size(); ++i) {
    PyRef& value = root->stack[i];
    const Source* source = value ? sources().stack(static_cast<int>(i)) : nullptr;
    if (value && !(isTensorObject(value.get()) && leaveUnread(*root, i, value.get(), source))) value = read(value.get(), source);
  }
  if (!holders_.empty()) refuseDrops(*root);
  int sinceBreak = 0;
  for (;;) {
    if (rootCount_ == stopAt_) return finish(*root, Segment::Exit::Break, std::move(why));
    if (const LongLoop* loop = longLoopHere(*root)) return finish(*root, Segment::Exit::Break, loop->why);
    if (options_.breakEvery > 0 && mayBreak(root->instruction().op) && ++sinceBreak > options_.breakEvery)
      breakHere("forced break", "every " + std::to_string(options_.breakEvery) + ". instruction breaks");
    countBytecode();
    readOperands(*root);
    const Flow flow = tracedStep(*this, *root);
    if (!iterators_->abandoned.empty()) closeAbandoned();
    switchedLeaves_->requireUnused();
    if (torchCalls_ && flow != Flow::Error) torchCalls_->requireAll();
    switch (flow) {
      case Flow::Next:
      case Flow::Jumped:
        if (const Source* source = std::exchange(root->unreadItem, nullptr)) {
          PyRef item = root->pop();
          if (!assignUnread(*root, item.get(), source)) root->push(read(item.get(), source));
        }
        if (!holders_.empty()) refuseDrops(*root);
        ++rootCount_;
        break;
      case Flow::Return:
        refuseOtherOrder(*root);
        return finish(*root, Segment::Exit::Return, std::nullopt);
      case Flow::Error: {
        if (isInterrupt()) {
          // One that the program made is its own business; Ctrl-C ends the capture.
          const ProgramInterrupted interrupt = ProgramInterrupted::take();
          if (!origins_.find(interrupt.exception.get())) throw interrupt;
          interrupt.restore();
        }
        noteRaise();
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        PyErr_NormalizeException(&type, &value, &traceback);
        PyRef text = value ? PyRef::steal(PyObject_Repr(value)) : PyRef();
        std::string reason = text ? utf8Of(text.get()) : "an exception";
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
        clearError();
        // The instruction that raised is executed for real, so that the traceback is the program's own.
        throw CaptureBreak{{"exception", "the frame raises " + reason, "", raisedAt_.back(), raisedAt_}, root->reraises ? lastRaise_ : -1};
      }
      case Flow::Generator:
      case Flow::Yield:
        breakHere("generator frame", "generator functions are compiled only where they are called");
      default:
        breakHere("unsupported bytecode", "opcode " + opcodeName(root->instruction().opcode));
    }
  }
}

namespace {

Segment nothingCaptured(const FrameState& state, GraphBreak why) {
  Segment segment;
  segment.exit = Segment::Exit::Break;
  segment.guards = std::make_shared<GuardSet>(state.code, reinterpret_cast<PyFunctionObject*>(state.function.get())->func_globals);
  segment.offset = state.offset;
  auto recipe = [&](const PyRef& value, const Source* source) {
    auto r = std::make_shared<Recipe>();
    r->kind = value ? Recipe::Kind::FromSource : Recipe::Kind::Null;
    r->source = source;
    return r;
  };
  SourceTable& sources = segment.guards->sources();
  for (size_t i = 0; i < state.locals.size(); ++i) segment.locals.push_back(recipe(state.locals[i], sources.local(static_cast<int>(i))));
  for (size_t i = 0; i < state.stack.size(); ++i) segment.stack.push_back(recipe(state.stack[i], sources.stack(static_cast<int>(i))));
  segment.graphBreak = std::move(why);
  return segment;
}

/// The search for where a segment can end whose graph as a whole is refused: some instruction is too much, and all before it are not.
struct EndOfGraph {
  int64_t fits = 0, tooFar = -1;  ///< instructions of the root frame; negative: no graph was refused
  std::optional<Segment> longest; ///< of as many as fit

  /// A segment ends at `stopAt`. True: a longer one may, too.
  bool goesOn(int64_t stopAt) {
    if (tooFar < 0) return false;
    fits = stopAt;
    return fits + 1 < tooFar;
  }
  int64_t next() const { return fits + (tooFar - fits) / 2; }
};

/// Floats that changed between calls are values of the graph where that takes the segment as far as constants do.
struct NumbersOrConstants {
  const CaptureOptions& asked;
  std::optional<CaptureBreak> stopped;  ///< where the segment ends with them as values, while it is tried with constants
  int64_t reached = 0;
  bool compared = false;

  /// After a break. True: evaluate again with `options` as they are now, the break does not count.
  bool tryAgain(CaptureOptions& options, const Evaluation& evaluation, CaptureBreak& now, int64_t& nowReached) {
    if (stopped) {  // it was tried with constants
      const bool further = nowReached > reached;
      if (!further) {
        options.runTimeNumbers = asked.runTimeNumbers;
        now = *stopped;
        nowReached = reached;
      }
      stopped.reset();
      return false;
    }
    if (!options.runTimeNumbers || !evaluation.usedNumbers()) return false;
    if (evaluation.wantsNumber(now.what) && !options.floatsAreSymbols && options.symbolic && options.symbolic->allowed) {
      options.floatsAreSymbols = true;
      return true;
    }
    options.runTimeNumbers = nullptr;
    if (std::getenv("FUSEBOX_DEBUG")) std::fprintf(stderr, "fusebox: floats tried as constants: %s (%s:%d)\n", now.what.reason.c_str(), now.what.place.file.c_str(), now.what.place.line);
    if (now.what.kind == Evaluation::kRunTimeNumber) return true;
    if (std::exchange(compared, true)) {
      options.runTimeNumbers = asked.runTimeNumbers;
      return false;
    }
    stopped = now;
    reached = nowReached;
    return true;
  }

  void settle(const CaptureOptions& options) const {
    if (asked.numbersRefused && asked.runTimeNumbers && !options.runTimeNumbers) *asked.numbersRefused = true;
  }
};

}  // namespace

Result<Segment> captureSegment(const FrameState& state, const CaptureOptions& asked) {
  CaptureOptions options = asked;
  EndOfGraph ends;
  NumbersOrConstants numbers{asked};
  int64_t stopAt = -1;
  std::optional<GraphBreak> why;
  // Symbols may be what ends the segment before the place where they are met.
  struct MetSymbols {
    SymbolicPolicy* policy;
    bool used = false, strict = false;
    void note() {
      if (!policy) return;
      used = used || policy->used;
      strict = strict || policy->strict;
    }
    ~MetSymbols() {
      if (!policy) return;
      policy->used = policy->used || used;
      policy->strict = policy->strict || strict;
    }
  } met{asked.symbolic};
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    std::optional<CaptureBreak> stopped;
    int64_t reached = 0;
    {
      // The first attempt finds the break; the next one ends the segment before it. A value that cannot be handed over there
      // moves the end further up.
      Evaluation evaluation(state, options);
      evaluation.watch.repeats = attempt > 0;
      const bool watched = attempt == 0 && debug::armed(debug::Kind::GraphBreak);
      try {
        Result<Segment> segment = evaluation.run(stopAt, why);
        if (segment && ends.goesOn(stopAt)) {
          ends.longest = std::move(*segment);
          stopAt = ends.next();
          --attempt;
          continue;
        }
        numbers.settle(options);
        return segment;
      } catch (const CaptureBreak& b) {
        stopped = b;
        reached = evaluation.rootCount();
      } catch (const trace::BreakError& b) {
        trace::takeLastBreak();
        stopped = CaptureBreak{{std::string(trace::name(b.kind())), b.reason(), b.hint(), evaluation.place(), evaluation.stackPlaces()}, -1};
        reached = evaluation.rootCount();
      } catch (const c10::Error& error) {
        stopped = CaptureBreak{{"error while tracing", error.what_without_backtrace(), "", evaluation.place(), evaluation.stackPlaces()}, -1};
        reached = evaluation.rootCount();
      }
      stopped->what.isError = evaluation.breaksAreErrors;
      met.note();
      if (!stopped->first && !stopped->loop && ends.tooFar < 0 && numbers.tryAgain(options, evaluation, *stopped, reached)) continue;
      if (watched && !stopped->first && !stopped->loop && !evaluation.watch.told && stopAtBreak(state, stopped->what)) throw FrameSkipped{};
    }
    if (stopped->loop) {
      options.longLoops->push_back(std::move(*stopped->loop));
      --attempt;
      continue;
    }
    if (stopped->first && stopped->first()) {
      if (options.endsAtSetUp) throw SetUp{};
      --attempt;
      continue;
    }
    if (stopped->isOfSharedMemory) {
      options.inputsShareMemory = true;
      --attempt;
      continue;
    }
    if (stopped->isOfGraph || ends.tooFar >= 0) {
      if (stopped->isOfGraph) why = stopped->what;
      ends.tooFar = stopAt >= 0 ? stopAt : reached;
      stopAt = ends.next();
      if (stopAt <= ends.fits) {
        numbers.settle(options);
        return ends.longest ? std::move(*ends.longest) : nothingCaptured(state, *why);
      }
      --attempt;
      continue;
    }
    if (!why) why = stopped->what;
    why->isError |= stopped->what.isError;
    if (stopped->birth >= 0 && stopped->birth < reached) reached = stopped->birth;
    if (stopAt >= 0) {
      if (std::getenv("FUSEBOX_DEBUG")) std::fprintf(stderr, "fusebox: a segment cannot end at its break: %s\n", stopped->what.reason.c_str());
      reached = std::min(reached, stopAt - 1);
    }
    if (reached <= 0) return nothingCaptured(state, *why);
    stopAt = reached;
  }
  return nothingCaptured(state, *why);
}

const std::unordered_map<const Source*, graph::SymExpr>& Evaluation::symbolicIntegers() const { return symbolicInputs_->integers(); }

}  // namespace fusebox::capture
