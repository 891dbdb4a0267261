#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/query/advice.h"
#include "profiler/query/break_groups.h"
#include "profiler/session/reader.h"

namespace fusebox::query {

/// The kind of an Uncompiled function whose error names none.
inline constexpr const char* kUnnamedFailure = "not compiled";
/// The kind of an Uncompiled function in which capture broke where it cannot be taken up again.
inline constexpr const char* kGivenUp = "given up at a graph break";

/// Something that runs without the compiler: a compilation that failed, a frame that was left to Python or reached its limit of
/// entries, a graph that runs operator by operator.
struct Uncompiled {
  int64_t frame = 0, compile = 0;  ///< 0 where not known
  std::string function = {};            ///< of the root frame; empty where not known
  std::string kind = {};                ///< "Unsupported", "BackendCompilerFailed", "recompile limit", "frame left to Python"
  std::string reason = {}, hint = {};        ///< without the compiler's own debug text
  std::string error = {};               ///< as recorded, whole
  std::string file = {};
  int64_t line = 0, count = 1;
  bool recovered = false;          ///< a later attempt at the same frame was compiled
};

/// A function that the compiler was given, with what resumes it after breaks.
struct FunctionCoverage {
  enum class Verdict : uint8_t { Whole, Partly, Not, Saved, AtLeastPartly };  ///< Saved: a graph in a file, which nothing compiled. AtLeastPartly: its source knows no graph breaks
  int64_t frame = 0;
  std::string name = {}, file = {};
  int64_t line = 0;
  Verdict verdict = Verdict::Whole;
  int64_t entries = 0, restarts = 0;    ///< compiled without an error; attempts before them
  int64_t breaks = 0, recompiles = 0;   ///< places where its graph broke; compilations after a guard failed
  int64_t breakId = 0, compile = 0;     ///< what stands in the way: a graph break or a compilation; 0 for none
  std::string why = {};                      ///< the same in a sentence; empty for a whole function
  bool ofLibrary = false;               ///< its code is an installed library's or Python's, called by the program or wrapped around it
};
const char* verdictName(FunctionCoverage::Verdict verdict);  ///< whole, partly, not, saved, at_least_partly
std::string verdictTitle(FunctionCoverage::Verdict verdict); ///< "compiled", "partly compiled", "not compiled"

struct Coverage {
  std::vector<FunctionCoverage> functions;  ///< those of the program before those of libraries, and those that the compiler does least for first
  std::vector<Uncompiled> uncompiled;
};

Result<Coverage> coverageOf(const session::Reader& reader);
/// The same by one who has read the breaks.
Result<Coverage> coverageOf(const session::Reader& reader, const std::vector<BreakGroup>& breaks);
/// "2 functions: 1 compiled, 1 not compiled; 1 function of libraries: 1 compiled"; empty for none.
std::string coverageSentence(const Coverage& coverage);
/// Best first. Never empty.
std::vector<Advice> adviseUncompiled(const Uncompiled& what);
/// Kind, reason and hints of a recorded error: what a person is told of it.
void readError(std::string_view error, Uncompiled& out);
nlohmann::json toJson(const std::vector<Uncompiled>& list);

}  // namespace fusebox::query
