#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/cli/run_arguments.h"
#include "engine/support/result.h"

namespace fusebox::cli {

/// Exit codes besides the script's own.
inline constexpr int kOk = 0;
inline constexpr int kDifferent = 1;  ///< compare --exit-code, and the sessions differ
inline constexpr int kBroken = 1;     ///< doctor, and something that is needed is broken
inline constexpr int kUsage = 2;
inline constexpr int kUnreadable = 3;  ///< input that cannot be read, output that cannot be written

struct SummaryOptions {
  std::vector<std::string> files;  ///< several: of the ranks of one run
  bool json = false;
};
struct QueryOptions {
  std::string file, sql, format = "table";
  int64_t limit = -1;
  bool json = false;
};
struct DiagramOptions {
  std::string file, stage, output;
  int64_t graph = 0;
  bool json = false;
};
struct ExportOptions {
  std::string file, output;
  bool redact = false, json = false;
};
struct WhyOptions {
  std::string file;
  bool wholeRun = false, json = false;
};
struct MemoryOptions {
  std::string file;
  int64_t graph = 0;
  bool json = false;
};
struct CompareOptions {
  std::string a, b, html;
  std::string engines = "fusebox,stock", python;
  std::vector<std::string> script;  ///< with `run`: the script form, as of `fusebox run`
  bool run = false, window = false, exitCode = false, json = false;
};
/// `replay` and `numerics`: what to compile, how, and with what inputs.
struct ReplayOptions {
  std::string file, engine = "fusebox", inputs, session, python;
  int64_t graph = 0;
  std::vector<std::string> forbid, force, allow, skipPass, sizes, shapes;
  int64_t seed = 0;
  int repeat = 20;
  bool noBisect = false, fixed = false, json = false;
};
/// `compile`: an exported program, and where its compiled code goes.
struct CompileProgramOptions {
  std::string file, output, python;
  bool json = false;
};
/// `config`: settings of the engine and of PyTorch, and what they do here.
struct ConfigOptions {
  std::vector<std::string> names;  ///< parts of names; empty: all
  std::string python;
  bool changed = false, json = false;
};
struct GpuOptions {
  std::string file;
  int64_t gaps = 200;  ///< explained, the longest first
  int64_t code = 0;    ///< show this kernel's code instead; 0: none
  bool counters = false, json = false;
};
struct ShapesOptions {
  std::string file;
  bool all = false, json = false;
};
struct RecompilesOptions {
  std::string file;
  std::vector<int64_t> guards;  ///< one or two compile_ids whose guards are shown instead
  bool all = false, json = false;
};
struct BreaksOptions {
  std::string file;
  bool bytecode = false, json = false;
};
struct FindOptions {
  std::string file, text;
  int limit = 100;  ///< hits of each kind
  bool json = false;
};
/// `cache`: what there is of compiled graphs on this machine.
struct CacheOptions {
  std::string directory;  ///< empty: the one that programs use
  std::string a, b, file;
  std::vector<std::string> ids;
  int64_t megabytes = -1;  ///< prune: what may stay; negative: the usual limit
  bool json = false;
};
struct DoctorOptions {
  std::string python;
  bool json = false;
};

/// Each carries out one command and returns the exit code; they write results to stdout and complaints to stderr.
int runScript(const RunOptions& options);
int debugAtConsole(const DebugOptions& options);
/// Where a debugged program stops before anybody could say so, for the control channel's hello.
Result<nlohmann::json> firstBreakpoints(const DebugOptions& options);
int showSummary(const SummaryOptions& options);
int runQuery(const QueryOptions& options);
int drawDiagram(const DiagramOptions& options);
int exportSession(const ExportOptions& options);
int explainMemory(const MemoryOptions& options);
int explainTime(const WhyOptions& options);
/// Runs the script once under each engine and fills in `a` and `b`; the script's exit code where that is not 0.
int runForComparison(CompareOptions& options);
int compareFiles(CompareOptions options);
int showGpu(const GpuOptions& options);
int showGpuCode(const GpuOptions& options);
int showRecompiles(const RecompilesOptions& options);
int showShapes(const ShapesOptions& options);
int showBreaks(const BreaksOptions& options);
int findInSession(const FindOptions& options);
int listCache(const CacheOptions& options);
int showCacheEntry(const CacheOptions& options);
int verifyCache(const CacheOptions& options);
int compareCacheEntries(const CacheOptions& options);
int pruneCache(const CacheOptions& options);
int exportCache(const CacheOptions& options);
int importCache(const CacheOptions& options);
int runDoctor(const DoctorOptions& options);
int replayGraph(const ReplayOptions& options);
int compileProgram(const CompileProgramOptions& options);
int showConfig(const ConfigOptions& options);
int measureNumerics(const ReplayOptions& options);

/// "fusebox: <error>" on stderr; returns the exit code that its kind of failure has.
int complain(const Error& error);
int complainUsage(const std::string& message);

}  // namespace fusebox::cli
