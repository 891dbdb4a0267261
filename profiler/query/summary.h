#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "profiler/query/coverage.h"
#include "profiler/query/stage_sums.h"
#include "profiler/session/reader.h"

namespace fusebox::query {

/// What `fusebox run` prints at the end; the JSON form is a promise (ARCHITECTURE.md, "The session").
struct Summary {
  std::string engine, torch, python, device, command, state;
  std::string importedFormat;      ///< of a foreign file; empty for a recorded session
  int64_t backwardCompiles = 0;    ///< of the compiles
  int64_t frames = 0, compiles = 0, graphs = 0, kernels = 0, launches = 0, externCalls = 0;
  /// `kernels` and `externCalls` were made, or met by a profiler; these of them ran, as far as launches are recorded (`hasLaunches`).
  int64_t kernelsRun = 0, externCallsRun = 0, eagerRun = 0;  ///< eagerRun: kernels of operators outside compiled code
  bool hasRunTimes = true, hasLaunches = true;               ///< whether a session of this source can tell (Holding)
  bool hasBreaks = true, hasRecompiles = true, hasCompileTimes = true;
  struct Break {
    std::string kind, reason, hint, file;
    int64_t line = 0, count = 1;
    int64_t id = 0;  ///< of the first
    StackPlace inside;  ///< as of a BreakGroup
  };
  std::vector<Break> graphBreaks;  ///< equal ones at one place are one row with a count
  Coverage coverage;               ///< which functions run in compiled code, and what fails
  struct Recompile {
    std::string frame, guard, expected, found, file, outcome;
    int64_t line = 0;
  };
  std::vector<Recompile> recompiles;  ///< what made compilations; a frame that reached its limit of entries is one row, of outcome `limit`
  int64_t compiledAgain = 0, limitsReached = 0;  ///< of them
  std::vector<StageSum> stages;    ///< and passes, most own time first
  double captureMs = 0, aotMs = 0, inductorMs = 0, codegenMs = 0, totalCompileMs = 0;
  double runMs = 0;                ///< in compiled calls; where calls are not recorded, in kernels (`runIsKernels`)
  bool runIsKernels = false;
  int64_t cacheHits = 0, cacheMisses = 0, cacheBypasses = 0;  ///< of graphs
  int64_t cacheDisabled = 0;    ///< graphs for which the user's settings left the cache out
  std::string cacheDisabledBy;  ///< which ones, where that is known
  struct Loss {
    std::string what, detail;
    int64_t count = 0;
  };
  std::vector<Loss> losses;  ///< what runs without the compiler is among them: leftToEager()
  struct Hot {
    int64_t kernel = 0, launches = 0, totalNs = 0, bytes = 0;
    std::string name, kind, file;
    int64_t line = 0;
  };
  std::vector<Hot> hottest;        ///< at most 5 kernels, most time first
};

Result<Summary> summarize(const session::Reader& reader);
/// Facts and the numbers of frames, compiles, graphs, kernels and launches alone: known at once, whatever the session's size.
Result<Summary> summarizeCounts(const session::Reader& reader);
nlohmann::json toJson(const Summary& summary);
/// What ran and for how long, or that the session cannot tell, and what was made.
std::string runSentence(const Summary& summary);
/// Whether a loss says that a graph or frame runs without the compiler, which is slow and right.
bool leftToEager(const Summary::Loss& loss);
/// How lines of the summary's text begin that say so.
inline constexpr const char* kNotCompiled = "NOT COMPILED  ";
/// For people: a dozen lines, no colour.
std::string toText(const Summary& summary);

}  // namespace fusebox::query
