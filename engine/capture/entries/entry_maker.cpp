#include "engine/capture/entries/entry_maker.h"

#include <ATen/SavedTensorHooks.h>
#include <ATen/record_function.h>

#include <algorithm>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/entries/barrier.h"
#include "engine/capture/entries/cache_rules.h"
#include "engine/capture/entries/capture_facts.h"
#include "engine/capture/entries/debug_stops.h"
#include "engine/capture/entries/driver.h"
#include "engine/capture/entries/dynamic_rules.h"
#include "engine/capture/entries/entry_log.h"
#include "engine/capture/entries/hook.h"
#include "engine/capture/entries/job_profile.h"
#include "engine/capture/entries/kept_captures.h"
#include "engine/capture/entries/rank_decisions.h"
#include "engine/capture/cpython/instruction.h"
#include "engine/capture/effects/replay.h"
#include "engine/capture/evaluation/cached_calls.h"
#include "engine/capture/evaluation/function_modes.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/rules/substitutes.h"
#include "engine/runtime/error_text.h"
#include "engine/support/file_owner.h"

namespace fusebox::capture {
namespace {

/// The program's line behind what `assumed` took for granted: that which led into a library, or the call's where the whole function is a library's.
record::Place programsOwn(const record::Place& assumed, const std::vector<record::Place>& callers, const std::vector<record::Place>& call) {
  if (isProgramFile(assumed.file)) return assumed;
  for (const auto* stack : {&callers, &call})
    if (const record::Place* place = programPlace(*stack); place && isProgramFile(place->file)) return *place;
  return assumed;
}

using record::Recorder;

constexpr int kMaxSetUps = 8;  ///< after so many, captures of earlier processes are looked for no more

/// One attempt to make an entry.
class EntryMaker {
 public:
  EntryMaker(CodeState& code, EntryPoint& point, const FrameState& state, const GlobalState& now, const RegionOptions* options,
             PyObject* globals, std::shared_ptr<StoredGraphs> stored)
      : code_(code), point_(point), state_(state), now_(now), options_(options), globals_(globals), stored_(std::move(stored)), recorder_(Recorder::active()) {}

  /// `mayTryAgain`: capturing changed what was guarded before (something that is set up with its first use); the next attempt sees it.
  std::shared_ptr<Entry> make(bool* failed, bool mayTryAgain);
  bool sawItsOwnChange() const { return sawItsOwnChange_; }

 private:
  bool isNotWorthIt();
  bool withinLimits();
  std::string whyUnfit() const;
  std::string limitText(const CaptureEvent& e, int limit) const;
  void explainMisses(const char* outcome);
  void overtake(const Entry& made);
  std::shared_ptr<Entry> attempt(bool* failed, bool mayTryAgain);
  bool capture(Segment* segment);
  Result<Segment> captureOnce(const CaptureOptions& how, bool* interrupted);
  void constantsWhereFurther(Result<Segment>& captured, const CaptureOptions& how, bool* interrupted);
  bool refuseSymbols(const std::string& why);
  void refuseDataSizes(const std::string& why);
  std::shared_ptr<Entry> compile(Segment segment);
  std::shared_ptr<Entry> newEntry() const;
  void compileGraph(const std::shared_ptr<const aot::AotModule>& graph, Entry& entry, CaptureEvent& e);
  void finish(Entry& entry, CaptureEvent& e);
  void giveUpCompiling(CaptureEvent& e);
  void install(const std::shared_ptr<Entry>& entry);
  std::string whyCacheIsOff() const;
  std::string whyNotCached() const;
  std::shared_ptr<Entry> recall();
  std::shared_ptr<Entry> recalled(KeptPlace::Candidate& candidate, std::string& why, int64_t& furthest);
  void keep(const Entry& entry);
  void compileByFunction(const Segment& segment, Entry& entry, CaptureEvent& e);
  void recordGuards(Entry& entry);
  void reportBreak(const Segment& segment);
  void describePosition(int offset, const Place& place, record::GraphBreakRecord& row) const;
  CaptureEvent event(CaptureEvent::Kind kind) const;
  Place placeOfState() const;
  /// The frame is Python's from now on: the person at the debugger wants it so.
  tl::unexpected<Error> skip(const std::string& why);
  /// Under fullgraph a Python error; otherwise the reason is kept and the place runs eagerly from now on.
  void giveUp(const std::string& what, const std::string& reason, const std::string& hint, const Place& place, bool isError = false);

  CodeState& code_;
  EntryPoint& point_;
  const FrameState& state_;
  const GlobalState& now_;
  const RegionOptions* options_;
  cache::CacheWishes caches_;
  std::unique_ptr<KeptPlace> kept_;  ///< null: captures here are neither looked for in the cache nor kept
  PyObject* globals_;
  std::shared_ptr<StoredGraphs> stored_;
  Recorder* recorder_;
  record::Id frame_ = 0, compile_ = 0, cause_ = 0;
  std::optional<GuardFailure> nearestFailure_;  ///< of the entry that came nearest to fitting
  std::vector<std::pair<std::shared_ptr<Entry>, std::string>> missedAt_;  ///< entries of constant sizes, and the source that did not fit
  int64_t captureNs_ = 0;
  SymbolicPolicy symbols_;
  bool askedToSkip_ = false, skipped_ = false, sawItsOwnChange_ = false;
  bool constantsInstead_ = false;  ///< the attempt failed because of symbols, which the next one does without
  bool hasAskedRanks_ = false;     ///< other ranks, for the sizes that they capture with
  bool isSetUp_ = false;           ///< the attempt ended where objects of the program had been set up
  int setUps_ = 0;
};

/// No collection of cyclic garbage while it lives: it would run the program's finalizers in the middle of a capture, and walk all objects of a
/// process that has just imported its libraries. What is due comes when the program allocates next.
class NoCollection {
 public:
  NoCollection() : was_(PyGC_Disable()) {}
  ~NoCollection() {
    if (was_) PyGC_Enable();
  }
  NoCollection(const NoCollection&) = delete;
  NoCollection& operator=(const NoCollection&) = delete;

 private:
  int was_;
};

/// "RuntimeError: what it says" of the exception that is set, which stays so.
std::string raisedWords() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  std::string words = value ? Py_TYPE(value)->tp_name : "an exception";
  const PyRef text = PyRef::steal(value ? PyObject_Str(value) : nullptr);
  if (const char* said = text ? utf8Of(text.get()) : nullptr; said && *said) words += std::string(": ") + said;
  clearError();
  PyErr_Restore(type, value, traceback);
  return words;
}

/// An entry that did not fit.
struct Miss {
  std::shared_ptr<Entry> entry;
  GuardFailure failure;

  /// In less than `other`; of two entries that the call is as far from, the one with symbols takes more.
  bool isNearerThan(const Miss& other) const {
    return failure.distance != other.failure.distance ? failure.distance < other.failure.distance : entry->isSymbolic() && !other.entry->isSymbolic();
  }
};

/// Only the entries that could have served: same options, same globals.
bool couldServe(const Entry& entry, const RegionOptions* options, PyObject* globals) {
  return entry.options == options && entry.globals == globals;
}

/// Where the frame is: its first line before its first instruction.
Place EntryMaker::placeOfState() const {
  Place place = placeOf(code_.code, state_.offset);
  if (state_.offset == 0) place.line = code_.code->co_firstlineno;
  return place;
}

CaptureEvent EntryMaker::event(CaptureEvent::Kind kind) const {
  CaptureEvent e;
  e.kind = kind;
  const Place place = placeOfState();
  e.function = place.function;
  e.file = place.file;
  e.line = place.line;
  return e;
}

void EntryMaker::giveUp(const std::string& what, const std::string& reason, const std::string& hint, const Place& place, bool isError) {
  if (!options_->fullgraph && !isError) {
    if (!skipped_)
      warnOnce(place.function + " (" + place.file + ":" + std::to_string(place.line) + ") is left to Python: " + what +
               (reason.empty() ? "" : ": " + reason) + ". Please report it.");
    return;
  }
  std::string text = what + (reason.empty() ? "" : ": " + reason);
  if (!place.file.empty()) text += "\n  at " + place.file + ":" + std::to_string(place.line) + (place.function.empty() ? "" : " in " + place.function);
  if (!hint.empty()) text += "\n  hint: " + hint;
  text += options_->fullgraph ? "\n  fullgraph=True asks for one graph without a break."
                              : "\n  torch._dynamo.error_on_graph_break(True) holds there: no break is wanted.";
  PyErr_SetString(captureExceptions().graphBreak ? captureExceptions().graphBreak : PyExc_RuntimeError, text.c_str());
}

void EntryMaker::explainMisses(const char* outcome) {
  const FrameView view = viewOf(state_);
  const std::vector<record::Place> stack = recorder_ ? stackOfCall(placeOfState()) : std::vector<record::Place>();
  // All before the first is told: while a debugger stops here, other threads may add entries.
  std::vector<Miss> misses;
  for (const auto& entry : point_.entries)
    if (couldServe(*entry, options_, globals_)) misses.push_back({entry, entry->guards->explain(view, now_)});
  for (Miss& miss : misses)
    if (miss.failure.guard.empty() && miss.entry->watchesMemory)
      miss.failure = {.guard = "STORAGE_OVERLAPPING", .expected = "inputs that share memory as those of the capture do", .found = "they share memory in another way"};
    else if (miss.failure.guard.empty() && rankFunctions().allHit)
      miss.failure = {.guard = "RANKS", .expected = "every rank has code for its call", .found = "another rank has none, and all compile together"};
  const bool constantFloats = specialisesFloats(*options_);
  for (const auto& [entry, failure] : misses) {
    if (!constantFloats)
      for (const Source* source : failure.changedFloats) point_.runTimeNumbers.insert(source->str());
    for (const Source* source : failure.changedTexts) point_.changedTexts.insert(source->str());
  }
  for (const auto& [entry, failure] : misses) {
    const Guard* guard = failure.index < 0 ? nullptr : &entry->guards->guards().guards()[static_cast<size_t>(failure.index)];
    const bool ofNumbers = guard && guard->source && (guard->kind == GuardKind::TensorMatch || guard->kind == GuardKind::ConstantMatch);
    if (ofNumbers && !entry->isSymbolic()) missedAt_.emplace_back(entry, guard->source->str());
  }
  // What the entry that came nearest to fitting stumbled over is the cause: it is told first.
  const auto nearest = std::min_element(misses.begin(), misses.end(), [](const Miss& a, const Miss& b) { return a.isNearerThan(b); });
  if (nearest != misses.end()) {
    std::rotate(misses.begin(), nearest, nearest + 1);
    nearestFailure_ = misses.front().failure;
  }
  for (const auto& [other, failure] : misses) {
    CaptureEvent e = event(CaptureEvent::Kind::Recompile);
    e.what = failure.guard;
    e.detail = failure.expected;
    e.hint = failure.found;
    // What no line assumed, as the state of grad mode, the function itself did.
    const record::Place place = programsOwn(failure.place.file.empty() ? record::Place{e.file, e.line, e.function} : toRecord(failure.place), stackOf(failure.place), stack);
    e.file = place.file;
    e.line = place.line;
    addEvent(std::move(e));
    if (debug::armed(debug::Kind::GuardFailure)) stopAtGuardFailure(state_, failure, other->number, outcome);
    if (!recorder_) continue;
    record::GuardFailureRecord row;
    row.frame = frame_;
    if (recorder_) describeEntry(recorder_, code_, point_, *other);
    row.compile = other->compile;
    if (failure.index >= 0 && other->firstGuard) row.guard = other->firstGuard + static_cast<record::Id>(failure.index);
    row.text = failure.guard;
    row.expected = failure.expected;
    row.found = failure.found;
    row.outcome = outcome;
    row.place = place;
    row.stack = stack;
    const record::Id id = recorder_->guardFailure(std::move(row));
    if (!cause_) cause_ = id;
  }
}

/// Entries whose sizes are symbols of `made` do not count as recompiles any more.
void EntryMaker::overtake(const Entry& made) {
  const auto& numbers = made.guards->guards().shapes().numbers;
  for (const auto& [entry, source] : missedAt_)
    if (std::any_of(numbers.begin(), numbers.end(), [&](const NumberGuard& n) { return n.at.source && n.at.source->str() == source; }))
      entry->overtaken = true;
}

/// A frame that never held an operator and whose assumptions keep failing (a container's __setitem__ that C code calls) is Python's
/// own business: running it costs less than guarding it. What it calls is looked at all the same.
bool EntryMaker::isNotWorthIt() {
  constexpr size_t kEnough = 3;
  if (options_->fullgraph || state_.offset != 0 || code_.points.size() != 1 || point_.entries.size() < kEnough) return false;
  for (const auto& e : point_.entries)
    if (e->computes() || e->segment.exit != Segment::Exit::Return || e->segment.frames > 1) return false;
  code_.unprofitable = true;
  return true;
}

/// Which guard of the nearest entry this call does not pass; empty where none is known.
std::string EntryMaker::whyUnfit() const {
  if (!nearestFailure_) return "";
  return " This call did not fit because of " + nearestFailure_->guard + ": expected " + nearestFailure_->expected + ", found " + nearestFailure_->found + ".";
}

int entriesThatCount(const EntryPoint& point, const RegionOptions* options, PyObject* globals) {
  return point.died + static_cast<int>(std::count_if(point.entries.begin(), point.entries.end(), [&](const auto& e) { return couldServe(*e, options, globals) && !e->overtaken; }));
}

bool isReached(const CaptureConfig& config, int here, const CodeState& code) {
  return here >= config.recompileLimit || code.liveEntries() + code.died >= config.accumulatedRecompileLimit;
}

/// What a person reads when a frame is not compiled any more: which, why, and what to do.
std::string EntryMaker::limitText(const CaptureEvent& e, int limit) const {
  std::string text = "fusebox hit config." + e.what + " (" + std::to_string(limit) + "): " + e.function + " (" + e.file + ":" +
                     std::to_string(e.line) + ") runs eagerly from now on when none of its compiled entries fits." + whyUnfit();
  return text + " Keep that the same between calls, pass it as a tensor, or raise torch._dynamo.config." + e.what + "; `fusebox run --session` lists "
         "every recompile with its cause.";
}

bool EntryMaker::withinLimits() {
  const CaptureConfig config = recompileRules();
  const int here = entriesThatCount(point_, options_, globals_);
  if (!isReached(config, here, code_)) {
    if (here > point_.died) explainMisses("recompile");
    return true;
  }
  ++captureCounters().limits;
  const bool raises = config.failOnRecompileLimitHit || options_->fullgraph;
  if (std::exchange(point_.limitExplained, true) && !raises) return false;
  explainMisses("limit");
  CaptureEvent e = event(CaptureEvent::Kind::Limit);
  e.what = here >= config.recompileLimit ? "recompile_limit" : "accumulated_recompile_limit";
  e.detail = "reached after " + std::to_string(here) + " entries; the frame runs eagerly when none of them fits";
  if (recorder_) recorder_->frameStatus(frame_, "limit", e.what + " " + e.detail);
  const std::string text = limitText(e, here >= config.recompileLimit ? config.recompileLimit : config.accumulatedRecompileLimit);
  if (raises) {
    PyErr_SetString(captureExceptions().recompile ? captureExceptions().recompile : PyExc_RuntimeError, text.c_str());
  } else if (!code_.limitReported) {
    code_.limitReported = true;
    if (PyErr_WarnEx(PyExc_RuntimeWarning, text.c_str(), 1) < 0) clearError();
  }
  addEvent(std::move(e));
  return false;
}

tl::unexpected<Error> EntryMaker::skip(const std::string& why) {
  skipped_ = true;
  point_.eager = true;
  return fail(ErrorCode::Unsupported, why);
}

/// Symbols are given up at this place. False: they may not be (a mark asks for them), or were none.
bool EntryMaker::refuseSymbols(const std::string& why) {
  if (!symbols_.allowed || !symbols_.used || symbols_.strict) return false;
  symbols_.allowed = symbols_.dataAllowed = false;
  point_.symbolsRefused = why;
  if (std::getenv("FUSEBOX_DEBUG")) std::fprintf(stderr, "fusebox: sizes are constants from now on: %s\n", why.c_str());
  if (recorder_) recorder_->loss("symbolic sizes given up", 1, why);
  return true;
}

/// Symbols for what data decide are given up at this place.
void EntryMaker::refuseDataSizes(const std::string& why) {
  symbols_.dataAllowed = false;
  point_.dataRefused = why;
  if (std::getenv("FUSEBOX_DEBUG")) std::fprintf(stderr, "fusebox: sizes that data decide are graph breaks from now on: %s\n", why.c_str());
  if (recorder_) recorder_->loss("data-dependent sizes given up", 1, why);
}

/// A break or error that constants do not have costs more than compiling for each size.
void EntryMaker::constantsWhereFurther(Result<Segment>& captured, const CaptureOptions& how, bool* interrupted) {
  const bool whole = captured && captured->exit == Segment::Exit::Return;
  if (whole || !symbols_.used || symbols_.strict || !symbols_.allowed) return;
  symbols_.allowed = false;
  const bool data = std::exchange(symbols_.dataAllowed, false);
  Result<Segment> constant = captureOnce(how, interrupted);
  if (*interrupted) {
    captured = std::move(constant);
    return;
  }
  const bool further = constant && (!captured || constant->exit == Segment::Exit::Return ||
                                    (constant->offset != captured->offset && constant->bytecodes > captured->bytecodes));
  symbols_.allowed = symbols_.used = true;
  symbols_.dataAllowed = data;
  if (!further) return;
  std::string why = captured ? std::string("graph break") : "capture failed: " + captured.error().text();
  if (captured && captured->graphBreak) why = captured->graphBreak->kind + ": " + captured->graphBreak->reason;
  refuseSymbols(why);
  captured = std::move(constant);
}

Result<Segment> EntryMaker::captureOnce(const CaptureOptions& how, bool* interrupted) {
  Counted suspended(captureSuspended()), depth(captureDepth());
  const NoCollection whole;
  record::StageTimer timer(recorder_, compile_, record::Phase::Capture, "capture");
  try {
    if (askedToSkip_) return skip(FrameSkipped{}.why);
    return captureSegment(state_, how);
  } catch (const FrameSkipped& skipped) {
    return skip(skipped.why);
  } catch (const SetUp&) {
    isSetUp_ = true;
    return fail(ErrorCode::Internal, "objects were set up");
  } catch (const ConstraintViolation& violation) {
    *interrupted = true;
    raiseViolation(violation.what());
    return fail(ErrorCode::Unsupported, violation.what());
  } catch (const ProgramInterrupted& interrupt) {
    *interrupted = true;
    interrupt.restore();
    return fail(ErrorCode::Internal, isInterrupt() ? interrupt.what() : raisedWords());
  } catch (std::exception& error) {
    if (restorePythonError(error)) *interrupted = isInterrupt();
    if (!*interrupted) clearError();
    if (!*interrupted && !symbols_.used) tellFailure("capturing a frame", runtime::textOf(error));
    return fail(ErrorCode::Internal, "capture raised", runtime::textOf(error));
  }
}

bool EntryMaker::capture(Segment* segment) {
  const int64_t start = nowNs();
  CaptureOptions how;
  how.fullgraph = options_->fullgraph;
  how.breakEvery = options_->breakEvery;
  how.compiler = compilerTraits(compileOptions(*options_));
  how.functionBackend = options_->function;
  how.compile = compile_;
  if (!options_->fullgraph) how.longLoops = &code_.longLoops;
  how.loopOperators = captureConfig().loopOperators;
  how.changedTexts = &point_.changedTexts;
  if (!point_.runTimeNumbers.empty() && !point_.numbersRefused) {
    how.runTimeNumbers = &point_.runTimeNumbers;
    how.numbersRefused = &point_.numbersRefused;
  }
  how.symbolic = &symbols_;
  how.assumesOfData = point_.dataRefused.empty();
  how.endsAtSetUp = kept_ && setUps_ < kMaxSetUps;
  bool interrupted = false;
  Result<Segment> captured = captureOnce(how, &interrupted);
  if (isSetUp_) return false;
  how.endsAtSetUp = false;
  if (!interrupted && !skipped_ && !captured && symbols_.dataUsed) {
    refuseDataSizes("capture failed: " + captured.error().text());
    captured = captureOnce(how, &interrupted);
  }
  if (!interrupted && !skipped_) constantsWhereFurther(captured, how, &interrupted);
  if (interrupted) {
    if (recorder_) recorder_->endCompile(compile_, {false, captured.error().text(), {}, {}});
    return false;
  }
  if (PyErr_Occurred()) clearError();
  captureNs_ = nowNs() - start;
  if (captured) {
    *segment = std::move(*captured);
    return true;
  }
  if (!skipped_ && debug::armed(debug::Kind::Error)) stopAtError("capturing", captured.error().text());
  CaptureEvent e = event(skipped_ ? CaptureEvent::Kind::RanEagerly : CaptureEvent::Kind::Failed);
  e.what = captured.error().message;
  e.detail = captured.error().context;
  if (!skipped_) ++captureCounters().failures;
  // Once may depend on the inputs; three times does not.
  if (++point_.failures >= 3) point_.eager = true;
  if (recorder_) {
    recorder_->endCompile(compile_, {false, captured.error().text(), {}, {}});
    recorder_->frameStatus(frame_, skipped_ ? "skipped" : "failed", captured.error().text());
  }
  giveUp("capture failed", captured.error().text(), {}, placeOf(code_.code, state_.offset));
  addEvent(std::move(e));
  return false;
}

void EntryMaker::reportBreak(const Segment& segment) {
  if (!segment.graphBreak) return;
  const GraphBreak& b = *segment.graphBreak;
  if (!BreakTold::isKnown(b)) {
    ++captureCounters().graphBreaks;
    CaptureEvent e = event(CaptureEvent::Kind::GraphBreak);
    e.what = b.kind;
    e.detail = b.reason;
    e.hint = b.hint;
    if (!b.place.file.empty()) {
      e.file = b.place.file;
      e.line = b.place.line;
      if (!b.place.function.empty()) e.function = b.place.function;
    }
    addEvent(std::move(e));
  }
  if (!recorder_) return;
  record::GraphBreakRecord row;
  row.frame = frame_;
  row.compile = compile_;
  row.kind = b.kind;
  row.reason = b.reason;
  row.hint = b.hint;
  row.place = toRecord(b.place);
  row.offset = segment.offset * 2;
  describePosition(segment.offset, b.place, row);
  row.stack = stackOfCall(b.stack.empty() ? b.place : b.stack.front());
  for (size_t i = 1; i < b.stack.size(); ++i) row.stack.push_back(toRecord(b.stack[i]));
  row.bytecode = bytecodeAround(code_.code, segment.offset);
  recorder_->graphBreak(std::move(row));
}

/// Columns and instruction, where the break is in the frame itself and not in a function that was inlined into it.
void EntryMaker::describePosition(int offset, const Place& place, record::GraphBreakRecord& row) const {
  int line = 0, column = -1, endLine = 0, endColumn = -1;
  if (!PyCode_Addr2Location(code_.code, offset * 2, &line, &column, &endLine, &endColumn) || line != place.line) return;
  const char* file = utf8Of(code_.code->co_filename);
  if (!file || place.file != file) return;
  row.endLine = endLine;
  row.column = column;
  row.endColumn = endColumn;
  PyRef bytes = PyRef::steal(PyCode_GetCode(code_.code));
  if (bytes && offset * 2 < PyBytes_GET_SIZE(bytes.get()))
    row.opcode = opcodeName(static_cast<uint8_t>(PyBytes_AS_STRING(bytes.get())[offset * 2]));
  clearError();
}

void EntryMaker::recordGuards(Entry& entry) {
  if (!recorder_) return;
  entry.firstGuard = recorder_->guards(compile_, guardRows(entry, code_.code));
  recordShapes(recorder_, compile_, entry.firstGuard, entry.guards->guards(), point_.symbolsRefused);
}

constexpr const char* kSkipped = "the backend asks for the frame to be left to Python";
constexpr const char* kAsks = "the backend asks more of its sizes";  ///< which it says when the place is captured again

/// Hands the graph to a backend in Python, which may run any code.
void EntryMaker::compileByFunction(const Segment& segment, Entry& entry, CaptureEvent& e) {
  const int64_t start = nowNs();
  RegionPause pause;
  // Hooks of the program on what is saved for backward (checkpoint's) are for the graph's runs.
  const at::impl::SavedTensorDefaultHooksTLS hooks = at::SavedTensorDefaultHooks::get_tls_state();
  at::SavedTensorDefaultHooks::set_tls_state({});
  const ProgramModesAside modes;
  PyRef made = PyRef::steal(PyObject_CallMethod(options_->function, "compile", "Os", segment.torchGraph.get(), e.function.c_str()));
  at::SavedTensorDefaultHooks::set_tls_state(hooks);
  e.compileNs = nowNs() - start;
  PyRef operators = made ? PyRef::steal(PyObject_GetAttrString(segment.torchGraph.get(), "operators")) : PyRef();
  if (operators) e.operators = PyLong_AsLong(operators.get());
  if (made && keepsGraphText()) {
    PyRef text = PyRef::steal(PyObject_GetAttrString(segment.torchGraph.get(), "text"));
    e.graph = text && PyUnicode_Check(text.get()) ? utf8Of(text.get()) : "";
    clearError();
  }
  if (made && PyUnicode_Check(made.get())) {
    e.kind = CaptureEvent::Kind::Failed;
    e.what = "sizes are constants for the backend";
    e.detail = utf8Of(made.get());
    return;
  }
  if (made && made.get() != Py_None) {
    entry.callable = std::move(made);
    entry.callableResults = segment.torchResults;
    return;
  }
  e.kind = CaptureEvent::Kind::Failed;
  e.what = "compilation failed";
  e.detail = made ? kSkipped : raisedWords();
}

/// "aten::mm at model.py:12" for each operator.
std::vector<std::string> operatorsAt(const graph::Graph& graph) {
  std::vector<std::string> lines;
  for (const graph::Node& node : graph.nodes()) {
    if (node.kind != graph::NodeKind::Call) continue;
    lines.push_back(node.op);
    if (!node.origin.stack || node.origin.stack->empty()) continue;
    const graph::SourceLine& at = node.origin.stack->back();
    lines.back() += " at " + at.file.substr(at.file.rfind('/') + 1) + ":" + std::to_string(at.line);
  }
  return lines;
}

std::shared_ptr<Entry> EntryMaker::newEntry() const {
  auto entry = std::make_shared<Entry>();
  entry->options = options_;
  entry->globals = globals_;
  entry->recorder = recorder_;
  entry->compile = compile_;
  entry->number = point_.compiled;
  return entry;
}

/// A graph that cannot be compiled makes `e` one of failure.
void EntryMaker::compileGraph(const std::shared_ptr<const aot::AotModule>& graph, Entry& entry, CaptureEvent& e) {
  for (const graph::Node& node : graph->forward.nodes()) e.operators += node.kind == graph::NodeKind::Call;
  if (keepsGraphText()) e.graph = graph->forward.str();
  if (keepsOperators()) e.operatorsAt = operatorsAt(graph->forward);
  CompileOptions how = compileOptions(*options_);
  how.stored = stored_;
  how.caches = caches_;
  how.buckets = gradientBuckets();
  how.compile = compile_;
  how.name = e.function;
  const int64_t start = nowNs();
  try {
    Counted suspended(captureSuspended());
    GilRelease release;
    entry.function = compileModule(graph, how);
  } catch (const std::exception& error) {
    e.kind = CaptureEvent::Kind::Failed;
    e.what = "compilation failed";
    e.detail = runtime::textOf(error);
    if (debug::armed(debug::Kind::Error)) stopAtError("compiling", e.detail);
  }
  e.compileNs = nowNs() - start;
}

/// An entry whose graph is compiled and whose guards are made: counted, recorded, and no owner of the program's objects.
void EntryMaker::finish(Entry& entry, CaptureEvent& e) {
  captureCounters().graphs += entry.computes();
  captureCounters().operators += e.operators;
  e.guards = static_cast<int64_t>(entry.guards->guards().guards().size());
  e.relations = static_cast<int64_t>(entry.guards->guards().shapes().relations.size());
  if (keepsOperators())
    for (const SymbolOrigin& origin : entry.guards->guards().shapes().origins) e.symbols.push_back(origin.at.str());
  recordGuards(entry);
  entry.recipeObjects = heldByRecipes(entry.segment);
  entry.guards->loosen(entry.recipeObjects, globals_);
  std::erase_if(entry.recipeObjects, [](const HeldRef* object) { return !object->isLoose(); });
}

void EntryMaker::giveUpCompiling(CaptureEvent& e) {
  ++captureCounters().failures;
  // What a backend raises is the program's to see, at every call.
  if (PyErr_Occurred()) return;
  point_.eager = true;
  if (e.detail != kSkipped) giveUp(e.what, e.detail, {}, placeOf(code_.code, state_.offset));
}

std::shared_ptr<Entry> EntryMaker::compile(Segment segment) {
  const std::shared_ptr<Entry> entry = newEntry();
  CaptureEvent e = event(CaptureEvent::Kind::Compiled);
  e.captureNs = captureNs_;
  RECORD_USER_SCOPE("call_user_compiler (dynamo_timed)");
  if (segment.graph) compileGraph(segment.graph, *entry, e);
  if (e.kind == CaptureEvent::Kind::Failed && symbols_.dataUsed && symbols_.dataAllowed) {
    refuseDataSizes("compilation failed: " + e.detail);
    constantsInstead_ = true;
    return nullptr;
  }
  if (e.kind == CaptureEvent::Kind::Failed && refuseSymbols("compilation failed: " + e.detail)) {
    constantsInstead_ = true;
    return nullptr;
  }
  if (segment.torchGraph) compileByFunction(segment, *entry, e);
  if (e.kind == CaptureEvent::Kind::Failed && segment.torchGraph && !PyErr_Occurred() && e.detail != kSkipped && (e.detail == kAsks || refuseSymbols(e.detail))) {
    constantsInstead_ = true;
    return nullptr;
  }
  const bool ok = e.kind == CaptureEvent::Kind::Compiled;
  if (ok) {
    if (Recorder::listener() && recorder_ && !segment.effects.empty()) recorder_->effects({compile_, effectLines(segment)});
    finishEntry(*entry, std::move(segment));
    finish(*entry, e);
  } else {
    giveUpCompiling(e);
  }
  if (recorder_) {
    recorder_->endCompile(compile_, {ok, ok ? "" : e.detail, {}, {}});
    recorder_->frameStatus(frame_, ok ? "compiled" : "failed", e.detail);
  }
  addEvent(std::move(e));
  return ok ? entry : nullptr;
}

/// Why captures of the cache are neither looked for nor kept here; empty: they are.
/// By the user's settings.
std::string EntryMaker::whyCacheIsOff() const {
  if (!caches_.whyNot.empty()) return caches_.whyNot;
  if (std::string why = cache::whyNoCache(); !why.empty()) return why;
  return captureConfig().cacheCaptures ? std::string() : "fusebox.config.cache_captures is off";
}

std::string EntryMaker::whyNotCached() const {
  if (std::string why = whyCacheIsOff(); !why.empty()) return why;
  if (options_->function) return "graphs of a backend written in Python stay in their process";
  if (debug::armedAny(~uint32_t{0})) return "a debugger is attached";
  if (tellsInstructions()) return "a log of instructions is asked for";
  if (ignoredInGraph()) return "functions are left out of compiled code";
  if (reorderedInGraph()) return "functions were given that may be called after the graph";
  if (substitutesInGraph()) return "functions were given to substitute_in_graph or disallow_in_graph";
  if (dynamoSwitch("enable_compiler_collectives", "TORCH_COMPILER_COLLECTIVES", false)) return "ranks decide together";
  return {};
}

/// An entry of an earlier process that fits this call; null: there is none.
std::shared_ptr<Entry> EntryMaker::recall() {
  if (!keptPlaceOf || stored_ || options_->breakEvery) return nullptr;
  Counted suspended(captureSuspended());
  std::string why = whyNotCached();
  std::shared_ptr<Entry> entry;
  int64_t savedNs = 0;
  const int64_t start = nowNs();
  try {
    if (why.empty()) kept_ = keptPlaceOf({code_, point_, state_, *options_, globals_, caches_}, why);
    if (kept_) {
      const NoCollection whole;
      record::StageTimer timer(recorder_, compile_, record::Phase::Capture, "capture");
      std::string problem;  // of the capture that came nearest to fitting
      int64_t furthest = -2;
      kept_->recall([&](KeptPlace::Candidate& candidate) {
        savedNs = candidate.captureNs;
        entry = recalled(candidate, problem, furthest);
        return entry != nullptr;
      }, why);
      if (!entry && !problem.empty()) why = problem;
    }
  } catch (std::exception& error) {
    entry = nullptr;
    why = runtime::textOf(error);
    restorePythonError(error);
  }
  clearError();
  if (recorder_) recorder_->cacheEvent({compile_, "capture", entry ? "hit" : kept_ ? "miss" : whyCacheIsOff().empty() ? "bypass" : "disabled", {}, why, entry ? savedNs - (nowNs() - start) : 0});
  return entry;
}

/// `furthest`: the guard that failed in the capture that `why` tells of.
std::shared_ptr<Entry> EntryMaker::recalled(KeptPlace::Candidate& candidate, std::string& why, int64_t& furthest) {
  const std::shared_ptr<Entry> entry = newEntry();
  const int64_t start = nowNs();
  finishEntry(*entry, std::move(candidate.segment));
  const FrameView view = viewOf(state_);
  const auto holds = [&] {
    if (entry->guards->check(view, now_)) return true;
    const GuardFailure failure = entry->guards->explain(view, now_);
    if (failure.index <= furthest) return false;
    furthest = failure.index;
    why = failure.guard + ": expected " + failure.expected + ", found " + failure.found;
    return false;
  };
  {
    const CachesMayLack yet;
    if (!holds()) return nullptr;
  }
  const auto facts = CaptureFacts::read(candidate.facts);
  if (std::string other = !facts ? "it does not say what it was captured from" : differentChoice(*entry, *facts, point_, symbols_.rules.automatic); !other.empty()) {
    why = std::move(other);
    furthest = std::numeric_limits<int64_t>::max();
    return nullptr;
  }
  // Only now is it known that the program would ask them.
  if (why = askLackingCaches(entry->guards->guards()); !why.empty() || !holds()) return nullptr;
  CaptureEvent e = event(CaptureEvent::Kind::Compiled);
  if (const std::shared_ptr<const aot::AotModule> graph = candidate.readGraph()) {
    e.captureNs = nowNs() - start;
    compileGraph(graph, *entry, e);
  }
  if (e.kind != CaptureEvent::Kind::Compiled) {
    why = e.what + ": " + e.detail;
    return nullptr;
  }
  point_.numbers.note(facts->place.numbers);
  reportBreak(entry->segment);
  if (Recorder::listener() && recorder_ && !entry->segment.effects.empty()) recorder_->effects({compile_, effectLines(entry->segment)});
  finish(*entry, e);
  ++captureCounters().recalled;
  if (recorder_) {
    recorder_->endCompile(compile_, {true, {}, {}, {}});
    recorder_->frameStatus(frame_, "compiled", {});
  }
  addEvent(std::move(e));
  install(entry);
  return entry;
}

/// For further processes.
void EntryMaker::keep(const Entry& entry) {
  if (!kept_ || entry.segment.bytecodes < captureConfig().cacheCapturesFrom) return;
  Counted suspended(captureSuspended());
  std::string why;
  try {
    if (entry.segment.ofProcess) why = std::string("it relies on ") + entry.segment.ofProcess + ", which may be another one in other processes";
    else if (entry.watchesMemory) why = "its inputs share memory";
    else why = kept_->keep(entry, CaptureFacts::of(entry, point_).text(), captureNs_);
  } catch (std::exception& error) {
    why = runtime::textOf(error);
    restorePythonError(error);
  }
  clearError();
  if (why.empty()) ++captureCounters().kept;
  if (recorder_) recorder_->cacheEvent({compile_, "capture", why.empty() ? "store" : "bypass", {}, why});
}

void EntryMaker::install(const std::shared_ptr<Entry>& entry) {
  overtake(*entry);
  point_.entries.insert(point_.entries.begin(), entry);
  ++point_.compiled;
  ++code_.compiled;
}

std::shared_ptr<Entry> EntryMaker::make(bool* failed, bool mayTryAgain) {
  *failed = false;
  frame_ = frameRecord(code_, point_);
  if (isNotWorthIt()) return nullptr;
  if (!withinLimits()) {
    *failed = PyErr_Occurred();
    return nullptr;
  }
  const bool isRecompile = std::any_of(point_.entries.begin(), point_.entries.end(),
                                       [&](const auto& e) { return couldServe(*e, options_, globals_); });
  if (isRecompile) {
    ++captureCounters().recompiles;
    if (recompileRules().errorOnRecompile) {
      explainMisses("recompile");
      const std::string text = std::string("fusebox: recompiling ") + utf8Of(code_.code->co_qualname) + " (" + utf8Of(code_.code->co_filename) + ":" +
                               std::to_string(code_.code->co_firstlineno) + "), which error_on_recompile forbids." + whyUnfit();
      PyErr_SetString(captureExceptions().recompile ? captureExceptions().recompile : PyExc_RuntimeError, text.c_str());
      *failed = true;
      return nullptr;
    }
  } else {
    ++captureCounters().frames;
  }
  if (recorder_) {
    record::CompileRecord row;
    row.frame = frame_;
    row.attempt = point_.compiled;
    row.kind = state_.offset == 0 ? "frame" : "resume";
    row.backend = options_->backendName;
    row.mode = options_->mode;
    row.dynamic = options_->dynamic == 1;
    row.cause = cause_;
    row.logs = options_->logs;
    if (Recorder::listener()) row.stack = stackOfCall(placeOfState());
    compile_ = recorder_->beginCompile(std::move(row));
    if (tellsInstructions()) recorder_->bytecode({compile_, wholeBytecode(code_.code)});
  }
  constexpr uint32_t kStops = debug::bit(debug::Kind::Compile) | debug::bit(debug::Kind::Recompile);
  // While the program is stopped, its session shows where.
  if (recorder_ && debug::armedAny(kStops)) recorder_->flush();
  askedToSkip_ = debug::armedAny(kStops) && stopAtCompile(isRecompile, state_, point_.compiled, nearestFailure_ ? &*nearestFailure_ : nullptr);
  {
    Counted suspended(captureSuspended());
    symbols_.rules = dynamicRules(*options_);
    caches_ = cacheRules(*options_);
    if (!recallProfile(code_, point_)) {
      *failed = true;
      return nullptr;
    }
  }
  symbols_.history = &point_.numbers;
  symbols_.allowed = point_.symbolsRefused.empty();
  symbols_.dataAllowed = symbols_.allowed && point_.dataRefused.empty();
  symbols_.dataHints = point_.dataHints;
  point_.numbers.beginCapture();
  std::shared_ptr<Entry> entry = recall();
  if (PyErr_Occurred()) {
    if (recorder_) recorder_->endCompile(compile_, {false, "interrupted", {}, {}});
    *failed = true;
    return nullptr;
  }
  if (!entry) {
    entry = attempt(failed, mayTryAgain);
    // An earlier process may have captured what comes after that.
    for (; std::exchange(isSetUp_, false) && !*failed; ++setUps_)
      if (entry = recall(); entry) return entry;
      else entry = attempt(failed, mayTryAgain);
    if (std::exchange(constantsInstead_, false)) entry = attempt(failed, mayTryAgain);
    if (entry) keep(*entry);
    if ((*failed = *failed || (entry && PyErr_Occurred()))) return nullptr;
  }
  if (entry) keepProfile(code_, point_);
  return entry;
}

std::shared_ptr<Entry> EntryMaker::attempt(bool* failed, bool mayTryAgain) {
  Segment segment;
  if (!capture(&segment)) {
    *failed = PyErr_Occurred();
    return nullptr;
  }
  if (mayTryAgain && !options_->function && !std::exchange(hasAskedRanks_, true)) {
    if (learnFromRanks(code_, point_)) return attempt(failed, mayTryAgain);
    if ((*failed = PyErr_Occurred())) {
      if (recorder_) recorder_->endCompile(compile_, {false, "interrupted while other ranks were asked", {}, {}});
      return nullptr;
    }
  }
  reportBreak(segment);
  const bool breaks = segment.exit == Segment::Exit::Break;
  if (breaks && (options_->fullgraph || (segment.graphBreak && segment.graphBreak->isError))) {
    const GraphBreak b = segment.graphBreak.value_or(GraphBreak{"graph break", "", "", {}, {}});
    giveUp(b.kind, b.reason, b.hint, b.place, true);
    if (recorder_) recorder_->endCompile(compile_, {false, b.kind + ": " + b.reason, {}, {}});
    *failed = true;
    return nullptr;
  }
  if (raiseViolation(segment.guards->shapes())) {
    if (recorder_) recorder_->endCompile(compile_, {false, "a size that was marked dynamic became a constant", {}, {}});
    *failed = true;
    return nullptr;
  }
  std::shared_ptr<Entry> entry = compile(std::move(segment));
  if (!entry) {
    *failed = PyErr_Occurred();
    return nullptr;
  }
  // Guards that do not even hold for the inputs they were made from would recompile for ever.
  const FrameView view = viewOf(state_);
  if (!entry->guards->check(view, GlobalState::current())) {
    sawItsOwnChange_ = mayTryAgain;
    if (mayTryAgain) return nullptr;
    if (entry->isSymbolic() && refuseSymbols("its guards do not hold for the inputs that it was captured with")) {
      constantsInstead_ = true;
      return nullptr;
    }
    const GuardFailure why = entry->guards->explain(view, GlobalState::current());
    CaptureEvent e = event(CaptureEvent::Kind::Failed);
    e.what = "guards do not hold for the captured inputs";
    e.detail = why.guard + ": expected " + why.expected + ", found " + why.found;
    if (std::getenv("FUSEBOX_DEBUG")) std::fprintf(stderr, "fusebox: %s (%s)\n", e.what.c_str(), e.detail.c_str());
    if (recorder_) recorder_->loss(e.what, 1, e.detail);
    addEvent(std::move(e));
    ++captureCounters().failures;
    ++point_.failures;
    point_.eager = true;
    giveUp("its guards do not hold for the inputs that it was captured with", why.guard, {}, placeOf(code_.code, state_.offset));
    *failed = PyErr_Occurred();
    return nullptr;
  }
  entry->watchesMemory = entry->callable ? entry->segment.torchWrites : entry->function && !entry->function->module().memoryOf.empty();
  entry->sharedMemory = sharedMemoryOf(*entry);
  install(entry);
  return entry;
}

}  // namespace

std::unique_ptr<KeptPlace> (*keptPlaceOf)(const CapturePlace& place, std::string& why) = nullptr;

CompileOptions compileOptions(const RegionOptions& options) {
  CompileOptions how;
  how.backend = options.backend;
  how.graphs = options.graphs;
  how.fullgraph = options.fullgraph;
  how.fallbackRandom = options.fallbackRandom;
  how.maxAutotune = options.maxAutotune;
  how.emulatePrecisionCasts = options.emulatePrecisionCasts;
  how.nanAsserts = options.nanAsserts;
  how.deterministic = options.deterministic;
  how.logs = options.logs;
  return how;
}

void finishEntry(Entry& entry, Segment segment) {
  entry.sources = segment.graphInputs;
  entry.graphInputs = segment.graphInputs.size();
  numberSources(segment, entry.sources);
  for (Draw& draw : segment.draws)
    if (const auto at = std::find(entry.sources.begin(), entry.sources.end(), draw.number); at != entry.sources.end()) draw.index = at - entry.sources.begin();
  entry.sharedInputs = inputsUsedByRecipes(segment, entry.graphInputs);
  entry.sharedCount = sharedCountOf(segment);
  entry.guards = std::make_unique<GuardTree>(std::move(segment.guards), entry.sources);
  segment.graph.reset();
  segment.torchGraph = PyRef();
  entry.segment = std::move(segment);
}

bool leaveToPython(CodeState& code, EntryPoint& point, const RegionOptions* options, const char* why) {
  Place place = placeOf(code.code, point.offset);
  if (point.offset == 0) place.line = code.code->co_firstlineno;
  // Frames that compilers run themselves are nobody's; so are those of a call that does not fit its graph and is run again, whose operators are heard.
  const bool isTracing = std::string_view(why) == "tracing is active";
  const bool isToldOfCaller = isRefusedAgain(why);
  if (code.refused != why) {
    code.refused = why;
    CaptureEvent e;
    e.kind = CaptureEvent::Kind::RanEagerly;
    e.function = place.function;
    e.file = place.file;
    e.line = place.line;
    e.what = why;
    addEvent(std::move(e));
    const bool isCompilers = isTracing || std::string_view(why) == "functionalisation is active";
    const std::string told = place.function + " (" + place.file + ":" + std::to_string(place.line) + ")";
    if (Recorder* recorder = Recorder::active()) {
      recorder->frameStatus(frameRecord(code, point), "skipped", why);
      if (!isCompilers) recorder->loss("frame left to Python", 1, told + ": " + why);
    }
    if (!options->fullgraph && !isCompilers && !isToldOfCaller) warnOnce(told + " is left to Python: " + why);
  }
  ++captureCounters().eagerRuns;
  if (!options->fullgraph || isTracing) return true;
  const std::string text = std::string(why) + "\n  at " + place.file + ":" + std::to_string(place.line) + " in " + place.function +
                           "\n  fullgraph=True asks for one graph without a break.";
  PyErr_SetString(captureExceptions().graphBreak ? captureExceptions().graphBreak : PyExc_RuntimeError, text.c_str());
  return false;
}

bool isKnownToBeAtLimit(const CodeState& code, const EntryPoint& point, const RegionOptions* options, PyObject* globals) {
  if (!point.limitExplained || options->fullgraph) return false;
  const CaptureConfig config = recompileRules();
  return !config.failOnRecompileLimitHit && isReached(config, entriesThatCount(point, options, globals), code);
}

std::shared_ptr<Entry> makeEntry(CodeState& code, EntryPoint& point, const FrameState& state, const GlobalState& now,
                                 const RegionOptions* options, PyObject* globals, bool* failed, std::shared_ptr<StoredGraphs> stored) {
  EntryMaker first(code, point, state, now, options, globals, stored);
  std::shared_ptr<Entry> entry = first.make(failed, true);
  return first.sawItsOwnChange() ? EntryMaker(code, point, state, now, options, globals, stored).make(failed, false) : entry;
}

}  // namespace fusebox::capture
