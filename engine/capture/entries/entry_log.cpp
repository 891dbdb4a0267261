#include "engine/capture/entries/entry_log.h"

#include <algorithm>
#include <utility>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/entries/dynamic_rules.h"
#include "engine/capture/entries/hook.h"

namespace fusebox::capture {
namespace {

constexpr size_t kKeptEvents = 4096;

struct Log {
  std::deque<CaptureEvent> events;
  int64_t first = 0;  ///< number of events.front()
};

Log& theLog() {
  static Log log;
  return log;
}

std::string text(PyObject* o) {
  const char* s = o ? utf8Of(o) : nullptr;
  if (!s) clearError();
  return s ? s : "?";
}

}  // namespace

CaptureCounters& captureCounters() {
  static CaptureCounters counters;
  return counters;
}

namespace {

thread_local const BreakTold* innermostTold = nullptr;

}  // namespace

BreakTold::BreakTold(const GraphBreak* told) : told_(told), outer_(std::exchange(innermostTold, this)) {}
BreakTold::~BreakTold() { innermostTold = outer_; }

bool BreakTold::isKnown(const GraphBreak& met) {
  for (const BreakTold* at = innermostTold; at; at = at->outer_) {
    const GraphBreak* b = at->told_;
    const bool isThere = b && b->place.line == met.place.line && b->place.file == met.place.file && b->place.function == met.place.function;
    if (isThere && b->kind == met.kind && b->reason == met.reason) return true;
  }
  return false;
}

void addEvent(CaptureEvent event) {
  Log& log = theLog();
  log.events.push_back(std::move(event));
  if (log.events.size() > kKeptEvents) {
    log.events.pop_front();
    ++log.first;
  }
}

int64_t latestEvent() { return theLog().first + static_cast<int64_t>(theLog().events.size()); }

std::vector<PyRef>& compileListeners() {
  static auto* listeners = new std::vector<PyRef>();  // Python may be gone when statics end
  return *listeners;
}

namespace {

thread_local PyObject* listenersError = nullptr;  ///< owned

void holdListenersError() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  if (listenersError)
    Py_DECREF(value);
  else
    listenersError = value;
}

}  // namespace

void tellListeners(bool begins) {
  const std::vector<PyRef> listeners = compileListeners();
  if (listeners.empty()) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  {
    RegionPause pause;
    for (const PyRef& listener : listeners)
      if (!PyRef::steal(PyObject_CallOneArg(listener.get(), begins ? Py_True : Py_False))) holdListenersError();
  }
  PyErr_Restore(type, value, traceback);
}

bool isListenersErrorHeld() { return listenersError != nullptr; }

bool raiseListenersError() {
  if (!listenersError) return false;
  const PyRef held = PyRef::steal(std::exchange(listenersError, nullptr));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(held.get())), held.get());
  return true;
}

std::vector<CaptureEvent> eventsSince(int64_t since) {
  const Log& log = theLog();
  const int64_t skip = std::max<int64_t>(0, since - log.first);
  if (skip >= static_cast<int64_t>(log.events.size())) return {};
  return {log.events.begin() + skip, log.events.end()};
}

bool& keepsGraphText() {
  static bool keeps = false;
  return keeps;
}

bool& keepsOperators() {
  static bool keeps = false;
  return keeps;
}

Place placeOf(PyCodeObject* code, int offset) {
  Place p;
  p.file = text(code->co_filename);
  // A jump that CPython put in has no line: it belongs to what it follows.
  do p.line = PyCode_Addr2Line(code, offset * 2);
  while (p.line < 0 && offset-- > 0);
  if (p.line < 0) p.line = code->co_firstlineno;
  p.function = text(code->co_name);
  return p;
}

record::Place toRecord(const Place& place) { return {place.file, place.line, place.function}; }

std::vector<record::Place> stackOf(const Place& place) {
  std::vector<record::Place> out;
  if (!place.callers) return out;
  for (const Place& caller : *place.callers) out.push_back(toRecord(caller));
  out.push_back(toRecord(place));
  return out;
}

std::vector<record::Place> stackOfCall(const Place& frame) {
  constexpr size_t kDeepest = 64;
  std::vector<record::Place> out{toRecord(frame)};
  PyRef at = PyRef::steal(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
  while (at && out.size() < kDeepest) {
    auto* object = reinterpret_cast<PyFrameObject*>(at.get());
    PyRef code = PyRef::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(object)));
    const auto* c = reinterpret_cast<PyCodeObject*>(code.get());
    out.push_back({text(c->co_filename), PyFrame_GetLineNumber(object), text(c->co_name)});
    at = PyRef::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(object)));
  }
  std::reverse(out.begin(), out.end());
  return out;
}

namespace {

/// What a side effect is done to or with, as far as the program has a name for it.
std::string recipeText(const RecipePtr& recipe) {
  if (!recipe) return "nothing";
  if (recipe->source) return recipe->source->str();
  if (recipe->kind == Recipe::Kind::GraphOutput) return "a tensor of the graph";
  PyObject* object = recipe->object.get();
  if (object && PyUnicode_CheckExact(object)) return "'" + text(object) + "'";
  if (object && (PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyBool_Check(object) || object == Py_None)) {
    const PyRef printed = PyRef::steal(PyObject_Repr(object));
    return text(printed.get());
  }
  if (object && PyCFunction_Check(object)) return reinterpret_cast<PyCFunctionObject*>(object)->m_ml->ml_name;
  if (object && Py_IS_TYPE(object, &PyMethodDescr_Type)) return text(PyDescr_NAME(object));
  return object ? std::string("a ") + Py_TYPE(object)->tp_name : "a new object";
}

std::string effectText(const SideEffect& effect) {
  using Kind = SideEffect::Kind;
  const std::string target = recipeText(effect.target), key = recipeText(effect.key);
  const auto name = [&] { return key.size() > 2 && key.front() == '\'' ? key.substr(1, key.size() - 2) : key; };
  switch (effect.kind) {
    case Kind::SetAttr:
    case Kind::SetSlot: return target + "." + name() + " = " + recipeText(effect.value);
    case Kind::DelAttr:
    case Kind::DelSlot: return "del " + target + "." + name();
    case Kind::SetItem: return target + "[" + key + "] = " + recipeText(effect.value);
    case Kind::DelItem: return "del " + target + "[" + key + "]";
    case Kind::SetCell: return "cell " + target + " = " + recipeText(effect.value);
    case Kind::Method: return target + "." + name() + "(...)";
    case Kind::AdvanceIterator: return "next(" + target + "), " + std::to_string(effect.number) + " times";
    case Kind::AskCache: return "a cached function counts what it remembers";
    case Kind::Call: break;
  }
  const bool known = effect.value && !effect.value->children.empty();
  return "call of " + (known ? recipeText(effect.value->children.front()) : std::string("a function")) + " after the graph";
}

}  // namespace

std::vector<std::string> effectLines(const Segment& segment) {
  std::vector<std::string> lines;
  for (const SideEffect& effect : segment.effects) lines.push_back(effectText(effect));
  return lines;
}

record::Id frameRecord(CodeState& code, EntryPoint& point) {
  record::Recorder* recorder = record::Recorder::active();
  if (!recorder) return 0;
  auto make = [&](record::Id parent, int offset) {
    record::FrameRecord row;
    row.parent = parent;
    row.name = text(code.code->co_name);
    row.qualname = text(code.code->co_qualname);
    row.place = toRecord(placeOf(code.code, offset));
    if (offset > 0) row.resumeOffset = offset * 2;
    else row.place.line = code.code->co_firstlineno;
    return recorder->frame(std::move(row));
  };
  if (code.recorder != recorder) {
    code.recorder = recorder;
    code.frame = 0;
    for (auto& p : code.points) {
      p->frame = 0;
      p->limitExplained = false;
    }
  }
  if (!code.frame) code.frame = make(0, 0);
  if (!point.frame) point.frame = point.offset == 0 && point.depth == 0 ? code.frame : make(code.frame, point.offset);
  return point.frame;
}

std::vector<record::GuardRecord> guardRows(const Entry& entry, PyCodeObject* code) {
  std::vector<record::GuardRecord> rows;
  const GuardSet& set = entry.guards->guards();
  for (const Guard& guard : set.guards()) {
    record::GuardRecord row;
    row.kind = name(guard.kind);
    if (guard.source) row.source = guard.source->str();
    row.expected = expectedText(guard, set);
    row.code = row.kind + (row.source.empty() ? "" : " " + row.source) + ": " + row.expected;
    row.reason = guard.text;
    row.place = toRecord(guard.place.file.empty() ? placeOf(code, 0) : guard.place);
    if (guard.place.file.empty()) row.place.line = code->co_firstlineno;
    row.stack = stackOf(guard.place);
    rows.push_back(std::move(row));
  }
  return rows;
}

void describeEntry(record::Recorder* recorder, CodeState& code, EntryPoint& point, Entry& entry) {
  if (entry.recorder == recorder) return;
  const record::Recorder::Quiet quiet;
  record::CompileRecord row;
  row.frame = frameRecord(code, point);
  row.attempt = entry.number;
  row.kind = point.offset == 0 ? "frame" : "resume";
  row.backend = entry.options->backendName;
  row.mode = entry.options->mode;
  row.dynamic = entry.options->dynamic == 1;
  entry.recorder = recorder;
  entry.compile = recorder->beginCompile(std::move(row));
  entry.firstGuard = recorder->guards(entry.compile, guardRows(entry, code.code));
  recordShapes(recorder, entry.compile, entry.firstGuard, entry.guards->guards(), point.symbolsRefused);
  entry.forward = {};
  if (entry.function) entry.forward = describeModule(entry.function->module(), entry.compile, text(code.code->co_name));
  recorder->endCompile(entry.compile, {true, {}, "before the recording", {}});
  recorder->frameStatus(row.frame, "compiled");
}

}  // namespace fusebox::capture
