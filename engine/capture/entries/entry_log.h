#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "engine/capture/entries/entry_cache.h"

namespace fusebox::capture {

struct DecodedCode;
struct GraphBreak;

/// One thing that capture did, kept in memory for fusebox.explain() and fusebox.counters() and written to the session if one is
/// being recorded.
struct CaptureEvent {
  enum class Kind : uint8_t { Compiled, GraphBreak, Recompile, Limit, Failed, RanEagerly } kind = Kind::Compiled;
  std::string function, file;
  int line = 0;
  std::string what;       ///< break kind, failed guard, reason
  std::string detail;     ///< break reason; expected
  std::string hint;       ///< break hint; found
  int64_t operators = 0;  ///< Compiled: of the graph
  int64_t guards = 0, relations = 0;  ///< relations: guards on sizes and numbers
  std::string graph;      ///< Compiled: the captured graph as text
  std::vector<std::string> operatorsAt, symbols;  ///< Compiled: operators with their lines, sources of symbols; where keepsOperators()
  int64_t captureNs = 0, compileNs = 0;
};

struct CaptureCounters {
  int64_t frames = 0, graphs = 0, graphBreaks = 0, recompiles = 0, limits = 0, failures = 0, hits = 0, eagerRuns = 0, operators = 0;
  int64_t recalled = 0, kept = 0;  ///< captures of the cache
  int64_t instructions = 0;  ///< of Python that segments stood for when they ran
};
CaptureCounters& captureCounters();

/// The newest events (bounded); `since` is an event number as latestEvent() gave it.
std::vector<CaptureEvent> eventsSince(int64_t since);
int64_t latestEvent();
void addEvent(CaptureEvent event);
/// Lives while the instruction is executed at which a capture has just stopped: what that calls is captured in its turn, and stops at the same place.
/// Such a break has been told and counted.
class BreakTold {
 public:
  explicit BreakTold(const GraphBreak* told);
  ~BreakTold();
  BreakTold(const BreakTold&) = delete;
  BreakTold& operator=(const BreakTold&) = delete;
  static bool isKnown(const GraphBreak& met);

 private:
  const GraphBreak* told_;  ///< null: none
  const BreakTold* outer_;
};
/// Callables of Python that hear of compiling: listener(True) before, listener(False) after.
std::vector<PyRef>& compileListeners();
/// Calls them, outside of any region; an error that is set stays. What the first of them raises (a callback of the program, or a signal handler
/// meanwhile) is held for this thread until it is raised.
void tellListeners(bool begins);
bool isListenersErrorHeld();
/// Sets the error that is held as Python's; false: none is.
bool raiseListenersError();
/// Tells them of what is compiled while it lives.
struct CompilingTold {
  CompilingTold() { tellListeners(true); }
  ~CompilingTold() { tellListeners(false); }
  CompilingTold(const CompilingTold&) = delete;
  CompilingTold& operator=(const CompilingTold&) = delete;
};
/// Whether compiled graphs are to be kept as text in events (fusebox.explain).
bool& keepsGraphText();
/// Whether their operators and symbols are to be.
bool& keepsOperators();

/// The session's row of a frame (or of the resume function that starts at the point); made on first use, 0 without a recorder.
record::Id frameRecord(CodeState& code, EntryPoint& point);
/// Writes the rows of an entry that was compiled before `recorder` started: frame, compilation, guards, traced graphs. No-op if it
/// has them.
void describeEntry(record::Recorder* recorder, CodeState& code, EntryPoint& point, Entry& entry);
/// Guards of an entry as rows; without a place of their own they get the code's.
std::vector<record::GuardRecord> guardRows(const Entry& entry, PyCodeObject* code);
record::Place toRecord(const Place& place);
/// A guard's place with the callers of the function that it is in, innermost last; empty where there are none.
std::vector<record::Place> stackOf(const Place& place);
/// The frames of Python that run now, and as innermost one `frame`, whose code has not been entered yet. At most 64.
std::vector<record::Place> stackOfCall(const Place& frame);
/// Instructions of a code object around an offset in code units: what a graph break is recorded with.
std::vector<record::GraphBreakRecord::Instruction> bytecodeAround(PyCodeObject* code, int offset);
/// All of them, and the one at a position.
std::vector<record::GraphBreakRecord::Instruction> wholeBytecode(PyCodeObject* code);
record::GraphBreakRecord::Instruction bytecodeText(const DecodedCode& code, int position);
/// A line for each of an entry's side effects.
std::vector<std::string> effectLines(const Segment& segment);
/// Position of an instruction of a code object.
Place placeOf(PyCodeObject* code, int offset);

}  // namespace fusebox::capture
