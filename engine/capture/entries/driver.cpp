#include "engine/capture/entries/driver.h"

#include <ATen/record_function.h>
#include <algorithm>
#include <span>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/entries/barrier.h"
#include "engine/capture/entries/eager_look.h"
#include "engine/capture/entries/entry_log.h"
#include "engine/capture/entries/entry_maker.h"
#include "engine/capture/entries/graph_warnings.h"
#include "engine/capture/entries/rank_decisions.h"
#include "engine/capture/entries/run_draws.h"
#include "engine/capture/entries/torch_contents.h"
#include "engine/capture/entries/hook.h"
#include "engine/capture/cpython/instruction.h"
#include "engine/capture/evaluation/interpreter.h"
#include "engine/capture/evaluation/real_stretch.h"
#include "engine/capture/effects/replay.h"
#include "engine/capture/evaluation/function_modes.h"
#include "engine/capture/evaluation/tensor_subclasses.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/graph/symbol_values.h"
#include "engine/runtime/compiled_graph.h"
#include "engine/runtime/effect_log.h"
#include "engine/runtime/error_text.h"
#include "engine/trace/trace_fallback.h"
#include "engine/trace/transform_levels.h"

namespace fusebox::capture {
namespace {

/// How one entry ended.
enum class Outcome { Returned, Raised, Broke, NotRun };

/// Which slots of the stack and which locals hold something: places in the frame that differ in that share no entries, since no
/// guard can be put on what is not there.
int shapeOf(const FrameState& state) {
  uint64_t shape = state.stack.size();
  for (const auto* values : {&state.stack, &state.locals})
    for (const PyRef& value : *values) shape = (shape ^ (value ? 1u : 2u)) * 0x100000001B3ull;
  return static_cast<int>((shape ^ (shape >> 32)) & 0x7FFFFFFF);
}

std::shared_ptr<Entry> takeOut(EntryPoint& point, const Entry& entry) {
  const auto at = std::find_if(point.entries.begin(), point.entries.end(), [&](const auto& e) { return e.get() == &entry; });
  if (at == point.entries.end()) return nullptr;
  std::shared_ptr<Entry> found = std::move(*at);
  point.entries.erase(at);
  return found;
}

/// From now on sizes are constants at this place.
void refuseSymbols(EntryPoint& point, const std::string& why) {
  point.symbolsRefused = why.empty() ? "symbolic code raised" : why;
  std::vector<std::shared_ptr<Entry>> dropped;  // destroyed when the list is whole again
  std::erase_if(point.entries, [&](std::shared_ptr<Entry>& entry) {
    if (!entry->isSymbolic()) return false;
    dropped.push_back(std::move(entry));
    return true;
  });
  if (record::Recorder* recorder = record::Recorder::active()) recorder->loss("symbolic sizes given up", 1, point.symbolsRefused);
}

/// Runs one frame: entry, real instruction, entry, ... until it ends or is handed back to CPython.
class FrameRun {
 public:
  FrameRun(PyThreadState* thread, InterpreterFrame* frame, CodeState& code, const RegionOptions* options)
      : thread_(thread), frame_(frame), code_(code), options_(options), recursion_(thread) {}

  PyObject* run();

 private:
  PyObject* runToEnd();
  EntryPoint& pointHere() {
    return code_.point(started_ ? state_.offset : 0, started_ ? shapeOf(state_) : 0);
  }
  FrameView view() const { return started_ ? viewOf(state_) : viewOf(frame_); }
  /// The frame as it is goes to CPython.
  PyObject* handBack();
  /// The same, where no compiled code serves.
  PyObject* leave();
  /// `offset`: where, if the frame is still as it came.
  PyObject* raise(int offset);
  bool isCovered(int offset) const;
  PyObject* raiseFromEffect();
  std::shared_ptr<Entry> entryHere(bool* failed);
  std::shared_ptr<Entry> find(const GlobalState& now, bool* failed);
  std::shared_ptr<Entry> findOrMake(bool* failed);
  Outcome runEntry(Entry& entry, PyRef* result);
  Outcome runWith(Entry& entry, std::vector<at::Tensor>& outputs, const std::vector<PyRef>& sources, std::span<int64_t> symbolValues, Replay& replay,
                  PyRef* result);
  Outcome replayEntry(Entry& entry, Replay& replay, PyRef* result);
  bool runCallable(Entry& entry, const std::vector<PyRef>& sources, std::span<const int64_t> symbolValues, std::vector<at::Tensor>* outputs);
  void raiseStored(const GlobalState& now, const EntryPoint& point);
  bool runGraph(Entry& entry, const std::vector<PyRef>& sources, std::span<int64_t> symbolValues, std::vector<at::Tensor>* outputs, bool* propagate);
  bool dropMispredicted(const Entry& entry, const runtime::Mispredicted& error);
  void refuseResults(Entry& entry);
  bool fitsData(Entry& entry, std::vector<at::Tensor>& outputs, std::span<int64_t> symbolValues);
  void noteMisfit(Entry& entry, const aot::DataMisfit& error);
  PyObject* runInstead();
  bool rebuildState(const Segment& segment, Replay& replay);
  bool applyEffect(Replay& replay, const SideEffect& effect);
  Outcome step(PyRef* result, bool* unsupported);
  Outcome stepOverBreak(PyRef* result, bool* unsupported);
  /// What step() executes next: KW_NAMES and PRECALL belong to the CALL behind them.
  Op groupOp() const;
  /// The frame stands before a loop that CPython runs.
  bool isPythonsLoop() const {
    return std::any_of(code_.longLoops.begin(), code_.longLoops.end(), [&](const LongLoop& l) { return l.isPythons && l.offset == state_.offset; });
  }

  PyThreadState* thread_;
  InterpreterFrame* frame_;
  CodeState& code_;
  const RegionOptions* options_;
  RecursionCount recursion_;
  FrameState state_;       ///< valid once `started_`: before that the frame itself is the state
  bool started_ = false;
  std::string graphError_;  ///< what a graph raised that the frame is run for instead
  EntryPoint* symbolicPoint_ = nullptr;  ///< where that graph has symbolic sizes
  bool reraised_ = false;  ///< what is raised has been handled in this frame: CPython adds no traceback entry
  std::optional<GraphBreak> told_;  ///< at which a capture of this turn stops
  int raisedAt_ = -1;      ///< instruction of a call that was put off and raised; -1: none
  int64_t checkStartNs_ = 0;  ///< when the guards of the entry that is about to run were checked; 0 when nothing is recorded
};

PyObject* FrameRun::handBack() {
  recursion_.release();
  return started_ ? resumeAt(thread_, frame_, state_) : evaluate(thread_, frame_, 0);
}

/// A function that is not compiled any more, or could not be although it was asked for, is called all the same: a recording has its calls.
PyObject* FrameRun::leave() {
  record::Recorder* recorder = record::Recorder::session();
  const EntryPoint& point = pointHere();
  if (!recorder || !(point.limitExplained || (point.eager && isRegionRoot(code_.code)))) return handBack();
  record::SpanRecord span{.kind = "python_call", .place = toRecord(placeOf(codeOf(frame_), point.offset))};
  if (point.offset == 0) span.place.line = codeOf(frame_)->co_firstlineno;  // as its frame's row has it
  span.name = utf8Of(codeOf(frame_)->co_qualname);
  span.startNs = nowNs();
  PyObject* result = handBack();
  span.durNs = nowNs() - span.startNs;
  recorder->span(std::move(span));
  return result;
}

bool FrameRun::isCovered(int offset) const {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);  // code that is decoded for the first time imports modules
  const auto decoded = decodeCode(codeOf(frame_));
  PyErr_Restore(type, value, traceback);
  return decoded->handlerOf(decoded->indexOfOffset[static_cast<size_t>(offset)]) != nullptr;
}

PyObject* FrameRun::raise(int offset) {
  recursion_.release();
  if (!started_) {
    state_ = stateOf(frame_);
    state_.offset = isCovered(offset) ? 0 : offset;  // a handler there would find another stack than it expects
  }
  return raiseAt(thread_, frame_, state_, reraised_);
}

/// What a call raises that was put off leaves the frame: one inside try is a break. The end of a `with` block would find another stack
/// than it expects, so the exception is raised where no handler is.
PyObject* FrameRun::raiseFromEffect() {
  if (started_) state_.offset = isCovered(raisedAt_) ? 0 : raisedAt_;
  return raise(raisedAt_);
}

std::shared_ptr<Entry> FrameRun::entryHere(bool* failed) {
  *failed = false;
  return guarded("looking for compiled code or making it", [&] { return findOrMake(failed); }, [&](bool interrupted) {
    *failed = interrupted;
    checkStartNs_ = 0;
    return std::shared_ptr<Entry>();
  });
}

/// Compiled code for this call; where ranks decide together, only if every rank has some.
std::shared_ptr<Entry> FrameRun::find(const GlobalState& now, bool* failed) {
  RECORD_USER_SCOPE("TorchDynamo Cache Lookup");  // as profiles of PyTorch's own have it
  EntryPoint& point = pointHere();
  auto entry = findEntry(code_, point, view(), now, options_, globalsOf(frame_));
  if (!rankFunctions().allHit || point.compiled == 0 || code_.isStored) return entry;
  const bool all = allRanksHit(code_, point, entry || point.eager);
  *failed = PyErr_Occurred();
  // What the guards found was for a run right behind them.
  return all && entry && !*failed ? findEntry(code_, pointHere(), view(), now, options_, globalsOf(frame_)) : nullptr;
}

std::shared_ptr<Entry> FrameRun::findOrMake(bool* failed) {
  const GlobalState now = GlobalState::current();
  const char* why = now.refusal();
  if (!why && now.functionModes && options_->function && defaultDeviceMode()) why = "a torch function mode is active beside that of a default device";
  if (why) {
    std::string told = why;
    if (const char* transform = trace::currentTransform())
      told += std::string(": Calling torch.func.") + transform + "(compiled_fn) function from eager mode is not supported. Compile what calls it.";
    *failed = !leaveToPython(code_, pointHere(), options_, told.c_str());
    return nullptr;
  }
  record::Recorder* recorder = record::Recorder::session();
  checkStartNs_ = recorder ? nowNs() : 0;
  if (auto entry = find(now, failed)) {
    if (recorder && entry->recorder == recorder) recorder->guardCheck(entry->compile, checkStartNs_, nowNs() - checkStartNs_);
    return entry;
  }
  checkStartNs_ = 0;
  if (*failed) return nullptr;
  EntryPoint& point = pointHere();
  PyObject* globals = globalsOf(frame_);
  if (code_.isStored) {
    raiseStored(now, point);
    *failed = true;
    return nullptr;
  }
  if (point.eager && !options_->fullgraph) return nullptr;
  const Stance stance = captureStance();
  if (stance == Stance::EagerOnRecompile) return nullptr;
  if (stance == Stance::FailOnRecompile) {
    const Place place = placeOf(codeOf(frame_), started_ ? state_.offset : 0);
    PyErr_SetString(captureExceptions().recompile ? captureExceptions().recompile : PyExc_RuntimeError,
                    ("torch.compiler.set_stance(\"fail_on_recompile\"): no compiled code of " + place.function + " (" + place.file + ":" + std::to_string(place.line) + ") fits this call").c_str());
    *failed = true;
    return nullptr;
  }
  if (stance == Stance::EagerThenCompile && point.compiled == 0 && !std::exchange(point.ranEagerlyFirst, true)) {
    noteNumbers(point, started_ ? state_ : stateOf(frame_), globals);
    return nullptr;
  }
  if (isKnownToBeAtLimit(code_, point, options_, globals)) {
    ++captureCounters().limits;
    return nullptr;
  }
  // Capture looks at a fresh frame through a state of its own; the frame stays untouched.
  FrameState fresh;
  if (!started_) fresh = stateOf(frame_);
  const bool isAskedFor = options_->fullgraph || isRegionRoot(code_.code);
  if (!isAskedFor && !mayComputeWithTorch(started_ ? state_ : fresh)) return nullptr;
  std::shared_ptr<Entry> made;
  {
    const CompilingTold told;
    if (!isListenersErrorHeld()) made = makeEntry(code_, pointHere(), started_ ? state_ : fresh, now, options_, globals, failed);
  }
  if (raiseListenersError()) {
    *failed = true;
    return nullptr;
  }
  if (made) told_ = made->segment.graphBreak;
  // What the guards found is for a run right behind them: since then other threads may have been here, whose calls the entry fits too.
  return made && made->guards->check(view(), GlobalState::current()) ? made : nullptr;
}

/// Says why a function that was compiled ahead of time does not fit.
void FrameRun::raiseStored(const GlobalState& now, const EntryPoint& point) {
  const Place place = placeOf(codeOf(frame_), 0);
  std::string text = place.function + " was compiled ahead of time, and this call does not fit";
  if (point.entries.empty()) text += ": its code was dropped";
  for (const auto& entry : point.entries) {
    if (!entry->guards->alive()) {
      text += ": a class or function that it was made for is gone";
      continue;
    }
    const GuardFailure failure = entry->guards->explain(view(), now);
    text += ": " + failure.guard + ": expected " + failure.expected + ", found " + failure.found;
  }
  PyErr_SetString(PyExc_RuntimeError, text.c_str());
}

/// An input of the graph: what was drawn for this call, or what the guards found.
PyObject* inputOf(const Entry& entry, const std::vector<PyRef>& sources, size_t i) { return sources[i] ? sources[i].get() : entry.guards->output(i); }

bool FrameRun::runGraph(Entry& entry, const std::vector<PyRef>& sources, std::span<int64_t> symbolValues, std::vector<at::Tensor>* outputs,
                        bool* propagate) {
  *propagate = false;
  std::vector<at::Tensor> inputs;
  inputs.reserve(entry.graphInputs);
  bool areOfClasses = false;
  for (size_t i = 0; i < entry.graphInputs; ++i) {
    PyObject* object = inputOf(entry, sources, i);
    areOfClasses |= isTensorObject(object) && !isPlainTensorClass(Py_TYPE(object)) && isFollowedClass(Py_TYPE(object));
    inputs.push_back(PyFloat_CheckExact(object) ? at::scalar_to_tensor(PyFloat_AS_DOUBLE(object)) : tensorOf(object));
  }
  record::Recorder* recorder = record::Recorder::session();
  int64_t start = 0;
  record::Recorder::Caller outer;
  if (recorder) {
    if (entry.recorder != recorder) [[unlikely]] describeEntry(recorder, code_, pointHere(), entry);
    start = checkStartNs_ ? checkStartNs_ : nowNs();
    outer = std::exchange(record::Recorder::caller(), {entry.compile, entry.forward});
  }
  bool ok = true;
  GraphWarnings warnings;
  try {
    Counted suspended(captureSuspended());
    const ClassesNotAsked off(areOfClasses);  // a view that the graph wrote to is given its history, which may set attributes of it
    const c10::WarningUtils::WarningHandlerGuard heard(&warnings);
    GilRelease release;
    *outputs = entry.function->call(inputs, symbolValues);
  } catch (const aot::HookError& hook) {
    *propagate = true;
    ok = false;
    raiseInPython(hook.error);
  } catch (const aot::DataMisfit& error) {
    ok = false;
    noteMisfit(entry, error);
  } catch (const aot::SharedMemory& error) {
    ok = false;
    entry.watchesMemory = true;  // such a call gets an entry of its own
    graphError_ = error.what();
  } catch (const runtime::Mispredicted& error) {
    ok = false;
    *propagate = dropMispredicted(entry, error);
  } catch (std::exception& error) {
    ok = false;
    graphError_ = runtime::textOf(error);
    if (entry.isSymbolic()) symbolicPoint_ = &pointHere();
    if (restorePythonError(error)) {
      // Only what the program's operators raise is tried again in eager, which raises it at the user's line.
      *propagate = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) || PyErr_ExceptionMatches(PyExc_SystemExit);
      if (!*propagate) clearError();
    } else {
      if (auto* told = record::Recorder::active()) told->loss("graph raised, frame ran eagerly", 1, graphError_);
      if (std::getenv("FUSEBOX_DEBUG")) std::fprintf(stderr, "fusebox: a graph raised: %s\n", error.what());
    }
  } catch (...) {
    ok = false;
    *propagate = endException("running a graph");
  }
  if (recorder) {
    recorder->call(entry.compile, start, nowNs() - start);
    record::Recorder::caller() = outer;
  }
  // Where it is run again, the program's own operators warn.
  if (ok && warnings.any() && changesFilters(entry.segment)) {
    ok = !mayRunAgain(entry.function->module());
  } else if (ok && warnings.any()) {
    const Place place = placeOf(codeOf(frame_), started_ ? state_.offset : 0);
    const graph::Graph& graph = entry.function->module().forward;
    *propagate = !warnings.tell(graph, codeOf(frame_), place.line, globalsOf(frame_));
    ok = !*propagate;
  }
  return ok;
}

/// Runs what a backend in Python made. What it raises is the program's: parts of it have been done.
bool FrameRun::runCallable(Entry& entry, const std::vector<PyRef>& sources, std::span<const int64_t> symbolValues, std::vector<at::Tensor>* outputs) {
  std::vector<PyRef> keep;
  std::vector<PyObject*> inputs;
  for (size_t i = 0; i < entry.graphInputs; ++i) {
    PyObject* input = inputOf(entry, sources, i);
    keep.push_back(isNumpyScalar(Py_TYPE(input)) ? PyRef::steal(PyNumber_Index(input)) : PyRef::borrow(input));  // a symbol is an int
    if (!keep.back()) return false;
    inputs.push_back(keep.back().get());
  }
  for (const size_t symbol : entry.segment.torchNumbers) {
    keep.push_back(PyRef::steal(PyLong_FromLongLong(symbolValues[symbol])));
    inputs.push_back(keep.back().get());
  }
  const PyRef callable = entry.callable;
  record::Recorder* recorder = record::Recorder::session();
  if (recorder && entry.recorder != recorder) [[unlikely]] describeEntry(recorder, code_, pointHere(), entry);
  const int64_t start = !recorder ? 0 : checkStartNs_ ? checkStartNs_ : nowNs();
  PyRef given;
  {
    RegionPause pause;
    const at::AutoGradMode mode(at::GradMode::is_enabled());
    // What their classes make of functions is in the graph.
    const bool areOfClasses = std::any_of(inputs.begin(), inputs.end(), [](PyObject* o) { return isTensorObject(o) && isFollowedClass(Py_TYPE(o)); });
    const ClassesNotAsked off(areOfClasses);
    const ProgramModesAside modes;
    given = PyRef::steal(PyObject_Vectorcall(callable.get(), inputs.data(), inputs.size(), nullptr));
  }
  if (recorder) recorder->call(entry.compile, start, nowNs() - start);
  if (!given) return false;
  const bool isSequence = PyTuple_Check(given.get()) || PyList_Check(given.get());
  bool fits = isSequence && static_cast<size_t>(PySequence_Fast_GET_SIZE(given.get())) == entry.callableResults;
  for (size_t i = 0; fits && i < entry.callableResults; ++i) {
    PyObject* result = PySequence_Fast_GET_ITEM(given.get(), static_cast<Py_ssize_t>(i));
    fits = isTensorObject(result);
    if (fits) outputs->push_back(tensorOf(result));
  }
  if (!fits)
    PyErr_Format(PyExc_TypeError, "backend %s: what it returned for %s gave %R, where a tuple or list of %zu tensors is wanted", options_->backendName.c_str(),
                 placeOf(codeOf(frame_), started_ ? state_.offset : 0).function.c_str(), reinterpret_cast<PyObject*>(Py_TYPE(given.get())), entry.callableResults);
  return fits;
}

/// The last results of what a backend in Python made are the values of symbols that data decide. False: something else was assumed of them.
bool FrameRun::fitsData(Entry& entry, std::vector<at::Tensor>& outputs, std::span<int64_t> symbolValues) {
  const Segment& segment = entry.segment;
  if (segment.torchData.empty()) return true;
  const size_t first = outputs.size() - segment.torchData.size();
  std::vector<int64_t> found;
  for (size_t i = 0; i < segment.torchData.size(); ++i) {
    const auto [symbol, dim] = segment.torchData[i];
    found.push_back(dim < 0 ? outputs[first + i].item<int64_t>() : outputs[first + i].size(dim));
    symbolValues[symbol] = found.back();
  }
  outputs.resize(first);
  const std::vector<graph::Symbol>& symbols = entry.guards->guards().shapes().symbols;
  const graph::SymbolValues all(symbols, symbolValues);
  for (const graph::Relation& r : segment.torchAssumptions) {
    const auto left = all.evaluate(r.left), right = all.evaluate(r.right);
    if (left && right && graph::holds(r.op, *left, *right)) continue;
    noteMisfit(entry, {"what was captured does not fit the data of this call: " + r.str() + " was assumed (" + r.reason + ")", found,
                       r.reason == graph::ShapeEnv::kRaisesOtherwise});
    return false;
  }
  return true;
}

/// What a backend in Python made has raised, and the program is run instead.
void FrameRun::refuseResults(Entry& entry) {
  const PyRef error = takeException(), text = error ? PyRef::steal(PyObject_Str(error.get())) : PyRef();
  clearError();
  static PyObject* const misfit = torchObject("fusebox._torch_calls.Misfit");
  static PyObject* const assuming = torchObject("fusebox._torch_calls.Assuming");
  const bool isMisfit = error && misfit && PyErr_GivenExceptionMatches(error.get(), misfit);
  const bool assumes = reinterpret_cast<PyObject*>(Py_TYPE(entry.callable.get())) == assuming;
  const std::string what = text ? utf8Of(text.get()) : "an error";
  clearError();
  if (isMisfit || !entry.segment.torchAssumptions.empty()) noteMisfit(entry, {what, {-1}, false});
  else if (assumes) graphError_ = what;
}

/// A call whose data decide otherwise than was assumed runs in Python. Where that is no exception the place is captured anew: first by the values
/// that were found, and when that does not help without symbols for what data decide.
void FrameRun::noteMisfit(Entry& entry, const aot::DataMisfit& error) {
  constexpr int kFew = 4, kMostCaptures = 3;
  EntryPoint& point = pointHere();
  ++entry.misfits;
  if (record::Recorder* recorder = record::Recorder::active(); recorder && !error.programRaises)
    recorder->loss("data did not fit a graph, frame ran eagerly", 1, error.what());
  if (std::getenv("FUSEBOX_DEBUG")) std::fprintf(stderr, "fusebox: %s\n", error.what());
  const bool known = !error.programRaises && std::all_of(error.values.begin(), error.values.end(), [](int64_t v) { return v > 1; });
  const bool isRule = entry.misfits >= kFew && entry.misfits * 4 > entry.hits;
  if (code_.isStored) {
    graphError_ = error.what();
    return;
  }
  if (!isRule && !(known && point.dataCaptures == 0)) return;
  if (!known && options_->fullgraph) {  // there is no other graph, and a program that was accepted goes on
    const std::string what = error.what();  // up to the values, which differ from call to call
    warnOnce("calls of " + placeOf(codeOf(frame_), started_ ? state_.offset : 0).function + " run eagerly where data decide sizes otherwise than its graph assumes: " + what.substr(0, what.find(", ")));
    return;
  }
  if (known && ++point.dataCaptures < kMostCaptures) point.dataHints = error.values;
  else point.dataRefused = error.what();
  takeOut(point, entry);
}

/// What an operator really gives cannot be known beforehand: the next capture stops at it. Returns whether there is an error to raise.
bool FrameRun::dropMispredicted(const Entry& entry, const runtime::Mispredicted& error) {
  if (code_.isStored) {
    graphError_ = error.what();
    return false;
  }
  EntryPoint& point = pointHere();
  const bool wasSymbolic = entry.isSymbolic();
  const std::shared_ptr<Entry> dropped = takeOut(point, entry);
  if (wasSymbolic) refuseSymbols(point, error.what());  // with constants it may be as predicted
  else trace::refuseFromNowOn(error.op, error.what());
  if (++point.failures >= 3) point.eager = true;  // the operator is not one of the traced graph
  if (record::Recorder* recorder = record::Recorder::active()) recorder->loss("graph not compiled", 1, error.what());
  const std::string text = std::string(error.what()) + ", so that this call runs eagerly and later ones are compiled around the operator";
  if (!options_->fullgraph) {
    warnOnce("a graph did not fit: " + text);
    return false;
  }
  PyErr_SetString(captureExceptions().graphBreak ? captureExceptions().graphBreak : PyExc_RuntimeError,
                  (std::string(error.what()) + "\n  fullgraph=True asks for one graph without a break.").c_str());
  return true;
}

/// CPython runs the frame, since its graph did not. What the graph raised is told where the program itself does not raise.
PyObject* FrameRun::runInstead() {
  const runtime::EffectReplay seen;  // what others saw a failed graph do is not done again
  const std::string error = std::exchange(graphError_, {});
  const Place place = placeOf(codeOf(frame_), started_ ? state_.offset : 0);
  if (code_.isStored) {
    PyErr_SetString(PyExc_RuntimeError, (place.function + " was compiled ahead of time, and its graph raised: " + error).c_str());
    return raise(0);
  }
  const PyRef code = PyRef::borrow(reinterpret_cast<PyObject*>(codeOf(frame_)));  // keeps symbolicPoint_
  PyObject* result = handBack();
  // What only symbolic code raises is the engine's fault.
  if (EntryPoint* point = std::exchange(symbolicPoint_, nullptr); result && point) refuseSymbols(*point, error);
  if (result && !error.empty())
    warnOnce("a graph of " + place.function + " (" + place.file + ":" + std::to_string(place.line) + ") raised, so that calls run eagerly: " + error);
  return result;
}

bool FrameRun::rebuildState(const Segment& segment, Replay& replay) {
  std::vector<PyRef> locals, stack;
  auto fill = [&](const std::vector<RecipePtr>& recipes, std::vector<PyRef>& values) {
    values.reserve(recipes.size());
    for (const RecipePtr& recipe : recipes) {
      values.push_back(recipe ? replay.build(*recipe) : PyRef());
      if (!values.back() && PyErr_Occurred()) return false;
    }
    return true;
  };
  if (!fill(segment.locals, locals) || !fill(segment.stack, stack)) return false;
  if (!started_) {
    state_.function = PyRef::borrow(reinterpret_cast<PyObject*>(functionOf(frame_)));
    state_.code = codeOf(frame_);
    started_ = true;
  }
  state_.locals = std::move(locals);
  state_.stack = std::move(stack);
  state_.offset = segment.offset;
  return true;
}

/// A call that was put off is made from the frame's instruction, and left to CPython.
bool FrameRun::applyEffect(Replay& replay, const SideEffect& effect) {
  if (effect.kind == SideEffect::Kind::AskCache) {
    Counted suspended(captureSuspended());  // numbers and texts, computed once
    return replay.apply(effect);
  }
  if (effect.kind != SideEffect::Kind::Call) return replay.apply(effect);
  FrameState here;
  here.offset = static_cast<int>(effect.number);
  LinkedFrame linked(thread_, frame_, here);
  Counted suspended(captureSuspended());
  const bool done = replay.apply(effect);
  if (!done) raisedAt_ = here.offset;
  return done;
}

/// The exception that an except clause is handling, which sys.exc_info(), a bare `raise` and the context of new exceptions need.
void setHandled(const Segment& segment, Replay& replay) {
  if (!segment.handled) return;
  PyRef handled = replay.build(*segment.handled);
  PyErr_SetHandledException(handled ? handled.get() : Py_None);
}

Outcome FrameRun::runEntry(Entry& entry, PyRef* result) {
  const std::span<const int64_t> symbols = entry.guards->symbolValues();
  std::vector<int64_t> symbolValues(symbols.begin(), symbols.end());
  // Strong references: effects may drop what a later recipe needs.
  std::vector<PyRef> sources(entry.sources.size());
  for (size_t i = entry.graphInputs; i < sources.size(); ++i) sources[i] = PyRef::borrow(entry.guards->output(i));
  for (size_t i = 0; i < entry.graphInputs; ++i)
    if (entry.sharedInputs[i]) sources[i] = PyRef::borrow(entry.guards->output(i));
  const std::vector<PyRef> temporaries = entry.guards->takeTemporaries();
  std::vector<PyRef> recipeObjects;  // another thread could drop them while the graph runs
  recipeObjects.reserve(entry.recipeObjects.size());
  for (const HeldRef* object : entry.recipeObjects) recipeObjects.push_back(*object);
  std::vector<at::Tensor> outputs;
  Replay replay(outputs, sources, entry.sharedCount, symbolValues);
  if (entry.segment.draws.empty()) return runWith(entry, outputs, sources, symbolValues, replay, result);
  RunDraws draws;
  const bool drawn = draws.make(entry.segment.draws, replay, sources);
  const Outcome outcome = drawn ? runWith(entry, outputs, sources, symbolValues, replay, result) : Outcome::NotRun;
  if (outcome == Outcome::NotRun) draws.putBack();
  return outcome;
}

Outcome FrameRun::runWith(Entry& entry, std::vector<at::Tensor>& outputs, const std::vector<PyRef>& sources, std::span<int64_t> symbolValues,
                          Replay& replay, PyRef* result) {
  bool propagate = false;
  if (entry.callable && !runCallable(entry, sources, symbolValues, &outputs)) {
    // A handler of the program may be waiting for it.
    if (!entry.segment.torchMayRepeat || !PyErr_ExceptionMatches(PyExc_Exception)) return Outcome::Raised;
    refuseResults(entry);
    return Outcome::NotRun;
  }
  if (entry.callable && !fitsData(entry, outputs, symbolValues)) return Outcome::NotRun;
  if (entry.function && !runGraph(entry, sources, symbolValues, &outputs, &propagate)) {
    ++captureCounters().eagerRuns;
    if (propagate) runtime::keepForReplay({});
    return propagate ? Outcome::Raised : Outcome::NotRun;
  }
  // From here on the program's state changes: what goes wrong can only be raised.
  try {
    return replayEntry(entry, replay, result);
  } catch (...) {
    raiseException();
    return Outcome::Raised;
  }
}

Outcome FrameRun::replayEntry(Entry& entry, Replay& replay, PyRef* result) {
  const Segment& segment = entry.segment;
  captureCounters().instructions += segment.bytecodes;
  for (const SideEffect& effect : segment.effects)
    if (!applyEffect(replay, effect)) return Outcome::Raised;
  switch (segment.exit) {
    case Segment::Exit::Return:
      *result = replay.build(*segment.result);
      setHandled(segment, replay);
      if (segment.modes.apply) segment.modes.apply();
      return *result ? Outcome::Returned : Outcome::Raised;
    case Segment::Exit::Break:
      if (!rebuildState(segment, replay)) return Outcome::Raised;
      setHandled(segment, replay);
      if (segment.modes.apply) segment.modes.apply();
      return Outcome::Broke;
  }
  return Outcome::NotRun;
}

/// Executes the instruction at which capture stopped.
Outcome FrameRun::step(PyRef* result, bool* unsupported) {
  *unsupported = false;
  StepOutcome outcome;
  try {
    LinkedFrame linked(thread_, frame_, state_);
    outcome = executeInstruction(state_);
    linked.refresh(state_);
  } catch (...) {
    raiseException();
    return Outcome::Raised;
  }
  switch (outcome.kind) {
    case StepOutcome::Kind::Returned: *result = std::move(outcome.value); return Outcome::Returned;
    case StepOutcome::Kind::Raised: reraised_ = outcome.reraised; return Outcome::Raised;
    case StepOutcome::Kind::Unsupported: *unsupported = true; return Outcome::NotRun;
    case StepOutcome::Kind::Continue: return Outcome::Broke;
  }
  return Outcome::NotRun;
}

Op FrameRun::groupOp() const {
  const auto decoded = decodeCode(state_.code);
  auto at = static_cast<size_t>(decoded->indexOfOffset[static_cast<size_t>(state_.offset)]);
  while (decoded->instructions[at].op == Op::KW_NAMES || decoded->instructions[at].op == Op::PRECALL) ++at;
  return decoded->instructions[at].op;
}

/// The instruction at which capture stopped, and the arithmetic on what came out of it.
Outcome FrameRun::stepOverBreak(PyRef* result, bool* unsupported) {
  RealStretch stretch;
  Op op = groupOp();
  Outcome outcome = step(result, unsupported);
  stretch.executed(op);
  while (outcome == Outcome::Broke) {
    const int start = state_.offset, end = stretch.end(state_);
    if (!end) break;
    while (outcome == Outcome::Broke && state_.offset >= start && state_.offset < end) {
      if (PyErr_CheckSignals() < 0) return Outcome::Raised;
      op = groupOp();
      outcome = step(result, unsupported);
    }
    stretch.executed(op);
  }
  return outcome;
}

PyObject* FrameRun::run() {
  try {
    return runToEnd();
  } catch (...) {
    raiseException();
    return raise(state_.offset);
  }
}

PyObject* FrameRun::runToEnd() {
  if (recursion_.exhausted()) return handBack();
  for (;;) {
    bool failed = false;
    told_.reset();
    std::shared_ptr<Entry> entry = entryHere(&failed);
    if (failed) return raise(0);
    if (!entry) return leave();
    PyRef result;
    Outcome outcome = runEntry(*entry, &result);
    if (outcome == Outcome::NotRun) return runInstead();
    if (outcome == Outcome::Broke) {
      entry.reset();
      if (isPythonsLoop()) return leave();
      bool unsupported = false;
      {
        const BreakTold told(told_ ? &*told_ : nullptr);
        outcome = stepOverBreak(&result, &unsupported);
      }
      if (unsupported) return handBack();
      if (outcome == Outcome::Broke) {
        if (PyErr_CheckSignals() < 0) return raise(state_.offset);
        continue;
      }
    }
    if (outcome == Outcome::Returned) {
      if (started_) {
        giveLocals(frame_, state_);
        if (entry) unbindLocals(frame_, entry->segment.rebound);
      }
      return leaveFrame(thread_, frame_, result.release());
    }
    if (raisedAt_ >= 0) return raiseFromEffect();
    return raise(entry ? entry->segment.offset : state_.offset);
  }
}

}  // namespace

int& captureSuspended() {
  static thread_local int suspended = 0;
  return suspended;
}

int& captureDepth() {
  static thread_local int depth = 0;
  return depth;
}

CaptureExceptions& captureExceptions() {
  static CaptureExceptions exceptions;
  return exceptions;
}

Stance& captureStance() {
  static Stance stance = Stance::Default;
  return stance;
}

PyObject* runFrame(PyThreadState* thread, InterpreterFrame* frame, CodeState& code, const RegionOptions* options) {
  if (captureStance() == Stance::ForceEager) return evaluate(thread, frame, 0);
  return FrameRun(thread, frame, code, options).run();
}

}  // namespace fusebox::capture
