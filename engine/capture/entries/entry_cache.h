#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/aot/aot_function.h"
#include "engine/capture/guards/guard_tree.h"
#include "engine/capture/guards/number_history.h"
#include "engine/capture/effects/segment.h"
#include "engine/compile/compile.h"
#include "engine/record/recorder.h"

namespace fusebox::capture {

/// What options= says about caches; nothing where it says nothing.
struct CacheOptions {
  std::optional<bool> isKept, isShared;  ///< fx_graph_cache, fx_graph_remote_cache
  bool operator==(const CacheOptions&) const = default;
};

/// What one torch.compile call asked for. Interned by content, so that equal options are one object.
struct RegionOptions {
  Backend backend = Backend::Inductor;
  GraphOptions graphs;
  bool fallbackRandom = false, maxAutotune = false, emulatePrecisionCasts = false, nanAsserts = false, deterministic = false;
  bool fullgraph = false;
  bool captureOnly = false;    ///< backend "eager": the traced graph runs operator by operator, nothing is generated
  std::string backendName = "inductor", mode = "default";
  CacheOptions caches;
  int dynamic = -1;            ///< -1 None, 0 False, 1 True
  /// A backend in Python: fusebox._torch_calls.FunctionBackend, alive for good; null for the engine's own.
  PyObject* function = nullptr;
  int breakEvery = 0;          ///< force a break at every k-th instruction (tests)
  int logs = 0;                ///< record::CompileRecord::logs
  bool operator==(const RegionOptions&) const = default;
};
const RegionOptions* internOptions(const RegionOptions& options);

/// Limits and switches of the process (torch._dynamo.config's names where it has them).
struct CaptureConfig {
  int recompileLimit = 8;              ///< entries at one place of a code object
  int accumulatedRecompileLimit = 256; ///< entries of a code object
  bool failOnRecompileLimitHit = false;
  bool errorOnRecompile = false;
  bool assumeStaticByDefault = true;   ///< sizes are symbols only where they changed
  bool automaticDynamicShapes = true;  ///< … and are symbols then
  bool specializeInt = false, specializeFloat = false;  ///< changed ones are constants nevertheless
  bool forceParameterStaticShapes = true;
  int64_t loopOperators = 1 << 15;     ///< that one loop may give a segment; a longer one is compiled turn by turn
  bool cacheCaptures = true;           ///< captures are kept in the cache, and taken from there
  int cacheCapturesFrom = 64;          ///< … if so many instructions were followed: others are captured again as fast as read
};
CaptureConfig& captureConfig();

/// One captured and compiled stretch of a frame, ready to run.
struct Entry {
  const RegionOptions* options = nullptr;
  PyObject* globals = nullptr;         ///< of the frame, not held: the same code may run over others
  std::unique_ptr<GuardTree> guards;   ///< its outputs: first the graph's inputs, then sources of recipes
  size_t graphInputs = 0;
  std::vector<bool> sharedInputs;      ///< graph inputs that recipes hand on as they are
  std::vector<const Source*> sources;
  std::shared_ptr<aot::AotFunction> function;  ///< null when no tensor operation was captured
  PyRef callable;                      ///< in its place: what a backend in Python returned
  size_t callableResults = 0;          ///< tensors that it must give
  bool watchesMemory = false;          ///< it writes, and how its inputs share memory is not looked at elsewhere, or was assumed
  std::vector<int64_t> sharedMemory;   ///< how they did while it was captured (aot::sharedMemory)
  bool computes() const { return function || callable; }
  Segment segment;                     ///< `guards` and `graph` have been moved out
  size_t sharedCount = 0;
  std::vector<HeldRef*> recipeObjects; ///< what recipes hold weakly, and a run must hold on to
  int64_t hits = 0;
  int64_t misfits = 0;                 ///< calls whose data were others than assumed (aot::DataMisfit)
  bool overtaken = false;              ///< a later one has symbols for the sizes that made this one miss: it is no sign of a storm
  int number = 0;                      ///< 0 for the first entry of its place, counting up
  bool isSymbolic() const { return !guards->guards().shapes().empty(); }
  record::Recorder* recorder = nullptr; ///< whose ids the following are
  record::Id compile = 0, firstGuard = 0;
  record::GraphSnapshot forward;
};

/// Where capture can start in a code object, and what was compiled for it.
struct EntryPoint {
  int offset = 0, depth = 0;
  std::vector<std::shared_ptr<Entry>> entries;  ///< last hit first
  int compiled = 0;                    ///< entries ever made here
  int died = 0;                        ///< entries that were dropped with an object before they had served often
  bool eager = false;                  ///< no further captures: limit reached, or capture failed; existing entries still serve
  bool limitExplained = false;         ///< the guards that failed when the limit was reached are in the record
  int failures = 0;
  std::set<std::string> runTimeNumbers;  ///< sources of floats that changed between calls
  std::set<std::string> changedTexts;    ///< those of texts
  bool numbersRefused = false;           ///< capture could not follow them: they are constants, and change by recompiling
  bool ranEagerlyFirst = false;          ///< under set_stance("eager_then_compile")
  NumberHistory numbers;                 ///< sizes and ints of the captures made here
  std::string symbolsRefused;            ///< why sizes are constants here although some change; empty: they may be symbols
  std::vector<int64_t> dataHints;        ///< values of symbols that data decide, of a call that did not fit
  int dataCaptures = 0;                  ///< captures that were made because of such a call
  std::string dataRefused;               ///< why there are no such symbols here; empty: there may be
  record::Id frame = 0;                ///< in the recording of the code's `recorder`
};

/// Everything known of one code object; lives in its extra slot.
struct CodeState {
  PyCodeObject* code = nullptr;        ///< borrowed: the state dies with it
  bool skip = false;                   ///< its frames are CPython's (unless they are what the user asked to compile)
  bool tracing = false;                ///< ... and so is all that they call
  bool isStored = false;               ///< stands for a function that was compiled ahead of time: there is no program behind it
  bool unprofitable = false;           ///< the same, because guarding them costs more than running them; until reset()
  const char* refused = nullptr;       ///< why its frames were last left to CPython (GlobalState::refusal); told once
  bool limitReported = false;
  int compiled = 0;
  int died = 0;                        ///< entries that were dropped with an object
  record::Recorder* recorder = nullptr; ///< whose frame ids this state and its points hold
  record::Id frame = 0;
  std::vector<std::unique_ptr<EntryPoint>> points;
  LongLoops longLoops;                 ///< that captures met

  EntryPoint& point(int offset, int depth);
  int liveEntries() const;
};

/// The state of a code object, made on first use.
CodeState& stateOf(PyCodeObject* code, PyObject* globals = nullptr);
/// Forgets every compiled entry (torch.compiler.reset). Entries that are running end first.
void clearEntries();
/// Number of code objects with entries, and of entries.
std::pair<size_t, size_t> entryCounts();

/// How the graph's inputs that the last check found share memory.
std::vector<int64_t> sharedMemoryOf(const Entry& entry);

/// The first entry of `point` whose guards hold, moved to the front; null if none: entries whose objects died are dropped then.
std::shared_ptr<Entry> findEntry(CodeState& code, EntryPoint& point, const FrameView& view, const GlobalState& state,
                                 const RegionOptions* options, PyObject* globals);

}  // namespace fusebox::capture
