#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "profiler/query/advice.h"
#include "profiler/session/reader.h"

namespace fusebox::query {

struct ShapeEntry;

/// One compiled entry of a code object.
struct ChainEntry {
  int64_t compile = 0, attempt = 0;
  std::string kind, status, error, cache;
  std::string logId;  ///< as PyTorch's logs name it: [0/1]
  int64_t compileNs = 0;
  int64_t hits = -1;  ///< calls that its guards let in; -1: not recorded
  int64_t runs = -1, runNs = 0;
  int64_t guards = 0, failures = 0;
  int64_t cause = 0;  ///< the failure that made it necessary; 0 for the first
  std::vector<std::string> shapes;  ///< sentences: what became symbolic with it, and which numbers became constants
};

/// A guard that failed and made the frame compile again, or reach the limit.
struct GuardMiss {
  int64_t failure = 0, frame = 0;
  int64_t entry = 0;      ///< compile_id whose guard failed
  int64_t recompile = 0;  ///< compile_id that it led to; 0 at the limit
  int64_t guard = 0;
  std::string kind, source, text, expected, found, outcome;
  std::string difference;  ///< of tensors: what differs
  std::string file;        ///< of the line that made the assumption
  int64_t line = 0;
  std::vector<StackPlace> assumption;  ///< its stack, where an inlined call made it
  std::vector<StackPlace> call;        ///< stack of the call that did not fit
};

/// "TENSOR_MATCH L['x']: expected 8, found 12"; a guard without a source, whose kind alone says nothing, by its own words.
std::string missSentence(const GuardMiss& miss);

/// A code object (or what resumes after a break in it) with its entries, oldest first, and why each but the first was
/// made.
struct RecompileChain {
  int64_t frame = 0, parent = 0, line = 0, resumeOffset = 0;
  int part = 0;                   ///< of several that resume the function at this line, counted from 1; 0: it is the only one
  std::string name, file, status, reason;
  std::vector<ChainEntry> entries;
  std::vector<GuardMiss> misses;  ///< in order of time; those that are a cause of an entry or of the limit
  int64_t compileNs = 0;          ///< of all entries
  int64_t recompileNs = 0;        ///< of all but the first
  int64_t hits = -1;
};

/// Chains with more than one entry or a guard that failed; the most expensive recompilation first. With `all` every
/// frame.
/// Its function, and for what resumes after a break from where on: "step, from line 34" (", part 2", where
/// several resume there).
std::string chainName(const RecompileChain& chain);
Result<std::vector<RecompileChain>> recompileChains(const session::Reader& reader, bool all = false);
/// Whether an entry that was made for a miss holds for any value of what was missed: its guards are recorded, and none says which one.
bool takesAnyValue(const session::Reader& reader, const ShapeEntry& entry, const GuardMiss& miss);
/// What to do about a guard that failed.
std::vector<Advice> adviseMiss(const session::Reader& reader, const RecompileChain& chain, const GuardMiss& miss);

/// A line of two guard trees side by side.
struct GuardTreeRow {
  enum class State { Same, Changed, OnlyA, OnlyB };
  int depth = 0;
  bool isSource = false;  ///< a place that guards hang on, not a guard
  std::string label;      ///< part of the source (".scale", "[0]"), or kind of the guard
  std::string a, b;       ///< what each entry expects; empty where it has no such guard
  int64_t guardA = 0, guardB = 0;
  State state = State::Same;
  int differences = 0;  ///< isSource: guards below that differ or failed
  std::string found;    ///< what a failing check of A's guard found, newest
  std::string file;
  int64_t line = 0;
};
/// The guards of two entries (compile_ids), as one tree in the order of A's sources and then B's. Pass the same id
/// twice, or 0 for B, for one tree.
Result<std::vector<GuardTreeRow>> compareGuards(const session::Reader& reader, int64_t a, int64_t b);

/// The ids of the failures that count: one for each compilation that a failure made, and one for each frame that reached its
/// limit. Every entry of a frame fails; a compilation names the one used last, of a limit the first is told.
inline constexpr const char* kDecisiveFailures =
    "SELECT failure_id FROM t_compile WHERE failure_id IS NOT NULL UNION ALL SELECT min(id) FROM t_guard_failure WHERE outcome = 'limit' GROUP BY frame_id";

nlohmann::json toJson(const Advice& advice);
nlohmann::json toJson(const StackPlace& place);  ///< null for none
nlohmann::json toJson(const std::vector<StackPlace>& stack);
/// With the advice of each miss.
nlohmann::json toJson(const session::Reader& reader, const std::vector<RecompileChain>& chains);
nlohmann::json toJson(const std::vector<GuardTreeRow>& rows);
/// For people.
std::string toText(const session::Reader& reader, const std::vector<RecompileChain>& chains);
std::string toText(const std::vector<GuardTreeRow>& rows);
/// "    title\n      text\n" and the diff.
std::string toText(const std::vector<Advice>& advice, int indent);

}  // namespace fusebox::query
