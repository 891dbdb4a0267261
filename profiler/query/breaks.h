#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "profiler/query/advice.h"
#include "profiler/query/coverage.h"
#include "profiler/session/reader.h"

namespace fusebox::query {

/// An instruction around a break, as recorded.
struct BreakInstruction {
  int64_t offset = 0, line = 0, to = -1;  ///< to: where a jump leads, -1 for others
  std::string op, argument;
};

/// What became of the code before or after a break.
struct BreakPiece {
  int64_t frame = 0;    ///< of the code object, or of what resumes in it
  int64_t compile = 0;  ///< its first entry
  int64_t offset = 0;   ///< where it starts
  int64_t entries = 0, operators = 0, compileNs = 0;
};

/// A distinct graph break: one reason at one line.
struct BreakSummary {
  int64_t id = 0;            ///< break_id of the first
  std::vector<int64_t> ids;  ///< all of them, in order: a frame that compiles again breaks again
  int64_t frame = 0, compile = 0;
  std::string kind, reason, hint, function, file, opcode;
  std::string recorded;      ///< the reason in the engine's words
  int64_t line = 0, endLine = 0, column = -1, endColumn = -1, offset = -1;
  std::vector<StackPlace> stack;  ///< innermost last
  StackPlace inside;              ///< as of a BreakGroup

  int64_t crossings = -1;  ///< how often running code went through it; -1: not recorded
  /// Between the end of the graph before and the start of the one after, compiling left out: Python, guards and
  /// launching again.
  int64_t lostNs = -1;    ///< -1: not recorded
  int64_t measured = 0;   ///< crossings that lostNs sums up
  int64_t compileNs = 0;  ///< compiling of what resumes after it

  bool isFailure = false;    ///< no break: the function was not compiled at all (Uncompiled); id is below 0
  std::string error;         ///< of a failure, whole
  std::vector<BreakInstruction> code;  ///< around `offset`; empty where not recorded
  std::vector<BreakPiece> before, after;
};

/// Every distinct break, most time lost first. Long recordings are measured by their first 500,000 calls; `crossings`
/// are exact.
Result<std::vector<BreakSummary>> breakSummaries(const session::Reader& reader);
/// The same for what is not compiled at all; those come first.
Result<std::vector<BreakSummary>> stopSummaries(const session::Reader& reader);
std::vector<Advice> adviseBreak(const session::Reader& reader, const BreakSummary& summary);

/// With what was not compiled at all, which stops capture more than any break.
nlohmann::json toJson(const session::Reader& reader, const std::vector<BreakSummary>& breaks, const std::vector<Uncompiled>& uncompiled);
std::string toText(const session::Reader& reader, const std::vector<BreakSummary>& breaks, const std::vector<Uncompiled>& uncompiled);
/// The instructions with offsets and marks as a listing; `>>` is the one that breaks.
std::string bytecodeText(const BreakSummary& summary);
/// The same instructions as they run: which stretch is compiled into what, and what Python executes between.
std::string bytecodeAfterText(const BreakSummary& summary);

}  // namespace fusebox::query
