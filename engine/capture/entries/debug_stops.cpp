#include "engine/capture/entries/debug_stops.h"

#include <array>

#include "engine/capture/entries/debug_facts.h"
#include "engine/capture/entries/entry_log.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/debug/site.h"
#include "engine/support/control_frame.h"

namespace fusebox::capture {
namespace {

using debug::Kind;
using nlohmann::json;

constexpr uint32_t kWatched = debug::bit(Kind::Line) | debug::bit(Kind::GraphBreak);

/// Frames of the program on this thread that are not under evaluation.
int framesBelow() {
  int count = 0;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame) {
    ++count;
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  return count;
}

int depthIn(const Frame& frame) {
  int depth = 0;
  for (const Frame* f = frame.caller; f; f = f->caller) ++depth;
  return depth;
}

/// A stop on a thread that holds the GIL: others go on while it waits, and errors that are set stay set.
class PythonSite : public debug::Site {
 public:
  PythonSite() { PyErr_Fetch(&type_, &value_, &traceback_); }
  ~PythonSite() override { PyErr_Restore(type_, value_, traceback_); }
  void wait(const std::function<void()>& block) override {
    GilRelease release;
    block();
  }

 private:
  PyObject *type_ = nullptr, *value_ = nullptr, *traceback_ = nullptr;
};

json placeRow(const Place& place) { return {{"file", place.file}, {"line", place.line}, {"function", place.function}}; }

std::string baseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// Texts before and after, as of a pass.
class PythonTextSite : public PythonSite {
 public:
  PythonTextSite(std::string title, debug::TextSite::Text before, debug::TextSite::Text after = {})
      : text_(std::move(title), std::move(before), std::move(after)) {}
  std::string title() override { return text_.title(); }
  Result<json> answer(const std::string& question) override { return text_.answer(question); }
  std::span<const std::string_view> questions() const override { return text_.questions(); }

 private:
  debug::TextSite text_;
};

/// The symbolic numbers of a capture, and what was decided on them.
json shapesOf(const graph::ShapeEnv& shapes) {
  json symbols = json::array(), relations = json::array();
  for (size_t i = 0; i < shapes.symbols().size(); ++i) {
    const graph::Symbol s = shapes.symbols()[i];
    symbols.push_back({{"name", s.name()}, {"hint", shapes.hints()[i]}, {"lower", s.lower()}, {"upper", s.upper()}});
  }
  for (const graph::Relation& r : shapes.relations()) relations.push_back({{"relation", r.str()}, {"reason", r.reason}});
  return {{"symbols", std::move(symbols)}, {"relations", std::move(relations)}};
}

/// Inside an evaluation.
class EvaluationSite : public PythonSite {
 public:
  EvaluationSite(Evaluation& e, Frame& frame, const GraphBreak* why) : e_(e), frame_(frame), why_(why) {}

  std::string title() override {
    if (why_) return "graph break: " + why_->kind + ": " + why_->reason;
    return baseName(utf8Of(frame_.code()->co_filename)) + ":" + std::to_string(frame_.line()) + " in " +
           utf8Of(frame_.code()->co_qualname) + ": " + instructionText(frame_, frame_.instruction());
  }

  json detail() override {
    json d{{"file", utf8Of(frame_.code()->co_filename)},
           {"line", frame_.line()},
           {"function", utf8Of(frame_.code()->co_qualname)},
           {"instruction", instructionText(frame_, frame_.instruction())},
           {"offset", frame_.instruction().offset * 2},
           {"depth", depthIn(frame_)},
           {"operators", e_.trace().recordedOps()},
           {"guard_count", e_.guardSet().guards().size()}};
    if (why_) {
      d["break_kind"] = why_->kind;
      d["break_reason"] = why_->reason;
      d["hint"] = why_->hint;
    }
    return d;
  }

  /// "locals:2" asks the caller's caller.
  Result<json> answer(const std::string& question) override {
    const size_t colon = question.find(':');
    const std::string what = question.substr(0, colon);
    const Frame* frame = &frame_;
    if (colon != std::string::npos)
      for (int up = std::atoi(question.c_str() + colon + 1); up > 0 && frame; --up) frame = frame->caller;
    if (!frame) return fail(ErrorCode::NotFound, "there are not that many frames");
    if (what == "locals") return localsOf(e_, *frame);
    if (what == "stack") return stackOf(e_, *frame);
    if (what == "code") return codeOf(*frame);
    if (what == "frames") return framesOf(e_);
    if (what == "guards") return guardsOf(e_.guardSet());
    if (what == "shapes") return shapesOf(e_.trace().shapes());
    if (what == "graph")
      return json{{"text", control::clipped(e_.trace().graph().str())}, {"operators", e_.trace().recordedOps()}};
    return PythonSite::answer(question);
  }

  std::span<const std::string_view> questions() const override {
    static constexpr std::array<std::string_view, 7> kQuestions{"locals", "stack", "frames", "code", "guards", "graph", "shapes"};
    return kQuestions;
  }

 private:
  Evaluation& e_;
  Frame& frame_;
  const GraphBreak* why_;
};

/// Where a decision leaves one value for a symbolic number.
class SpecialiseSite : public EvaluationSite {
 public:
  SpecialiseSite(Evaluation& e, Frame& frame, std::string expression, int64_t value, std::string reason)
      : EvaluationSite(e, frame, nullptr), expression_(std::move(expression)), value_(value), reason_(std::move(reason)) {}
  std::string title() override { return expression_ + " is specialised to " + std::to_string(value_) + (reason_.empty() ? "" : ": " + reason_); }
  json detail() override {
    json d = EvaluationSite::detail();
    d.update({{"expression", expression_}, {"value", value_}, {"why", reason_}});
    return d;
  }

 private:
  std::string expression_;
  int64_t value_;
  std::string reason_;
};

/// Outside one: a frame's state between two instructions.
class StateSite : public PythonSite {
 public:
  StateSite(const FrameState& state, std::string title, json detail)
      : state_(state), title_(std::move(title)), detail_(std::move(detail)) {}
  std::string title() override { return title_; }
  json detail() override { return detail_; }
  Result<json> answer(const std::string& question) override {
    if (question == "locals") return localsOf(state_);
    if (question == "stack") return stackOf(state_);
    if (constexpr std::string_view kTensor = "tensor:"; question.starts_with(kTensor)) return tensorOf(state_, question.substr(kTensor.size()));
    if (constexpr std::string_view kContent = "content:"; question.starts_with(kContent)) return contentOf(state_, question.substr(kContent.size()));
    return PythonSite::answer(question);
  }
  std::span<const std::string_view> questions() const override {
    static constexpr std::array<std::string_view, 3> kQuestions{"locals", "stack", "tensor"};
    return kQuestions;
  }

 private:
  const FrameState& state_;
  std::string title_;
  json detail_;
};

std::array<std::string, 2> namesOf(PyCodeObject* code) { return {utf8Of(code->co_qualname), utf8Of(code->co_name)}; }

Place whereabouts(const FrameState& state) {
  Place place = placeOf(state.code, state.offset);
  if (state.offset == 0) place.line = state.code->co_firstlineno;
  return place;
}

debug::Verdict reachState(Kind kind, const FrameState& state, const Place& place, std::string title, json detail) {
  detail.update(placeRow(place));
  detail["offset"] = state.offset * 2;
  StateSite site(state, std::move(title), std::move(detail));
  const auto names = namesOf(state.code);
  debug::Event event;
  event.kind = kind;
  event.file = place.file.c_str();
  event.line = place.line;
  event.names = names;
  return debug::reach(event, site);
}

/// Before an instruction of `frame`.
void reachLine(Evaluation& e, Frame& frame) {
  // A person at a line has it once, unless they step through its instructions: not again for each of them, nor where a call
  // that the line made has returned.
  Evaluation::DebugState& seen = e.watch;
  const auto depth = static_cast<size_t>(depthIn(frame));
  const int line = frame.line();
  if (seen.baseDepth < 0) seen.baseDepth = framesBelow();
  const auto names = namesOf(frame.code());
  const std::string file = utf8Of(frame.code()->co_filename);
  debug::Event event;
  event.kind = Kind::Line;
  event.file = file.c_str();
  event.line = line;
  event.names = names;
  event.depth = seen.baseDepth + static_cast<int>(depth);
  event.frame = &frame;
  event.isEntry = frame.pc == 0;
  event.isNewLine = event.isEntry || seen.lines.size() <= depth || seen.lines[depth] != line;
  seen.lines.resize(depth + 1);  // forgets those of calls that have returned
  seen.lines[depth] = line;
  EvaluationSite site(e, frame, nullptr);
  if (debug::reach(event, site).skipFrame) throw FrameSkipped{};
}

/// Operators of the capture since this thread was asked last.
std::vector<std::string> operatorsSince(Evaluation& e) {
  static thread_local std::pair<const Evaluation*, size_t> told;
  const auto& nodes = e.trace().graph().nodes();
  if (told.first != &e || nodes.size() < told.second) told = {&e, 0};
  std::vector<std::string> names;
  for (size_t i = std::exchange(told.second, nodes.size()); i < nodes.size(); ++i)
    if (nodes[i].kind == graph::NodeKind::Call) names.push_back(nodes[i].op);
  return names;
}

void tellInstruction(Evaluation& e, const Frame& frame) {
  record::Recorder* recorder = record::Recorder::active();
  if (!recorder || frame.pc >= static_cast<int>(frame.decoded->instructions.size())) return;
  record::TracedInstruction row;
  row.place = {utf8Of(frame.code()->co_filename), frame.line(), utf8Of(frame.code()->co_name)};
  row.depth = depthIn(frame);
  row.stack = frame.stack.size();
  row.instruction = bytecodeText(*frame.decoded, frame.pc);
  int line = 0;
  if (!PyCode_Addr2Location(frame.code(), frame.instruction().offset * 2, &line, &row.column, &row.endLine, &row.endColumn) || line != row.place.line)
    row.column = row.endLine = row.endColumn = -1;
  row.made = operatorsSince(e);
  recorder->tracedInstruction(std::move(row));
}

void reachBreak(Evaluation& e, Frame& frame, const GraphBreak& why) {
  if (std::exchange(e.watch.told, true) || !debug::armed(Kind::GraphBreak)) return;
  const Place place = e.place();
  const std::array<std::string, 2> names{why.kind, place.function};
  debug::Event event;
  event.kind = Kind::GraphBreak;
  event.file = place.file.c_str();
  event.line = place.line;
  event.names = names;
  EvaluationSite site(e, frame, &why);
  if (debug::reach(event, site).skipFrame) throw FrameSkipped{};
}

std::string failureText(const GuardFailure& failure) {
  return failure.guard + ": expected " + failure.expected + ", found " + failure.found;
}
json failureRow(const GuardFailure& failure) {
  return {{"guard", failure.guard}, {"expected", failure.expected}, {"found", failure.found}};
}

}  // namespace

Flow placedStep(Evaluation& e, Frame& frame) {
  try {
    return step(e, frame);
  } catch (const trace::BreakError& b) {
    e.breakHere(b);
  }
}

Flow watchedStep(Evaluation& e, Frame& frame) {
  // Later attempts at the same segment only repeat what was seen.
  if (e.watch.repeats) return placedStep(e, frame);
  if (tellsInstructions()) tellInstruction(e, frame);
  if (debug::armed(Kind::Line)) reachLine(e, frame);
  std::optional<GraphBreak> why;
  try {
    return placedStep(e, frame);
  } catch (const CaptureBreak& b) {
    if (e.watch.told || b.first) throw;
    why = b.what;
    reachBreak(e, frame, *why);
    throw;
  } catch (const c10::Error& error) {
    if (e.watch.told) throw;
    reachBreak(e, frame, {"error while tracing", error.what_without_backtrace(), "", e.place(), e.stackPlaces()});
    throw;
  }
}

void stopAtSpecialise(Evaluation& e, const graph::SymExpr& expression, int64_t value, std::string_view reason) {
  Frame* frame = e.frame();
  if (e.watch.repeats || !frame || !debug::armed(Kind::Specialise)) return;
  const Place place = e.place();
  const std::array<std::string, 3> names{expression.str(), std::string(reason), place.function};
  debug::Event event;
  event.kind = Kind::Specialise;
  event.file = place.file.c_str();
  event.line = place.line;
  event.names = names;
  SpecialiseSite site(e, *frame, expression.str(), value, std::string(reason));
  debug::reach(event, site);
}

bool stopAtBreak(const FrameState& state, const GraphBreak& why) {
  json detail{{"break_kind", why.kind}, {"break_reason", why.reason}, {"hint", why.hint}};
  const Place place = why.place.file.empty() ? whereabouts(state) : why.place;
  const std::array<std::string, 2> names{why.kind, place.function};
  detail.update(placeRow(place));
  StateSite site(state, "graph break: " + why.kind + ": " + why.reason, std::move(detail));
  debug::Event event;
  event.kind = Kind::GraphBreak;
  event.file = place.file.c_str();
  event.line = place.line;
  event.names = names;
  return debug::reach(event, site).skipFrame;
}

bool stopAtCompile(bool isRecompile, const FrameState& state, int entries, const GuardFailure* why) {
  const Place place = whereabouts(state);
  const std::string of = place.function + " (" + baseName(place.file) + ":" + std::to_string(place.line) + ")";
  const json detail{{"entries", entries}};
  if (isRecompile && debug::armed(Kind::Recompile)) {
    json told = detail;
    if (why) told.update(failureRow(*why));
    const debug::Verdict verdict =
        reachState(Kind::Recompile, state, place, "recompile of " + of + (why ? ": " + failureText(*why) : ""), told);
    if (verdict.stopped) return verdict.skipFrame;
  }
  if (!debug::armed(Kind::Compile)) return false;
  return reachState(Kind::Compile, state, place,
                    (state.offset == 0 ? "compile of " : "compile, after a break, of ") + of, detail)
      .skipFrame;
}

void stopAtFunctionalisation(const graph::Graph& traced, const aot::AotModule* made) {
  static const std::string kName = "functionalise_and_partition";
  const auto before = [&] { return traced.str(); };
  const auto after = [&] {
    return made->forward.str() + (made->backward ? "\nbackward:\n" + made->backward->str() : "");
  };
  PythonTextSite site((made ? "after pass " : "before pass ") + kName, before,
                      made ? debug::TextSite::Text(after) : debug::TextSite::Text());
  debug::Event event;
  event.kind = Kind::Pass;
  event.when = made ? debug::When::After : debug::When::Before;
  event.names = {&kName, 1};
  debug::reach(event, site);
}

void stopAtError(const char* where, const std::string& what) {
  const std::string name = where;
  PythonTextSite site("compiler error while " + name + ": " + what, {});
  debug::Event event;
  event.kind = Kind::Error;
  event.names = {&name, 1};
  debug::reach(event, site);
}

void stopAtGuardFailure(const FrameState& state, const GuardFailure& failure, int entry, const char* outcome) {
  const Place place = failure.place.file.empty() ? whereabouts(state) : failure.place;
  json detail = failureRow(failure);
  detail.update({{"entry", entry}, {"outcome", outcome}});
  reachState(Kind::GuardFailure, state, place, "guard failed: " + failureText(failure), detail);
}

}  // namespace fusebox::capture
