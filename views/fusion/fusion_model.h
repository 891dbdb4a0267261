#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "engine/support/result.h"
#include "profiler/query/holdings.h"
#include "profiler/query/symbols.h"
#include "views/common/table.h"

namespace fusebox::session {
class Reader;
}

namespace fusebox::views {

/// A scheduled graph whose fusions can be looked at, or a graph that can only be compiled.
struct FusionChoice {
  int64_t graph = 0, compile = 0;
  std::string label, file;
  bool hasDecisions = false;
};
Result<std::vector<FusionChoice>> loadFusionChoices(const session::Reader& reader);

/// The choice that an object belongs to: its own graph, or the scheduled one of the same compile; 0 if there is none.
Result<int64_t> fusionGraphOf(const session::Reader& reader, const Location& location);

enum DecisionColumn {
  kDecisionOutcome,
  kDecisionKind,
  kDecisionA,
  kDecisionB,
  kDecisionBytes,
  kDecisionReason,
  kDecisionRule,
  kDecisionColumns
};
enum GroupColumn {
  kGroupName,
  kGroupKind,
  kGroupNodes,
  kGroupRead,
  kGroupWrite,
  kGroupSaved,
  kGroupTime,
  kGroupReason,
  kGroupColumns
};
enum BufferColumn {
  kBufferName,
  kBufferKind,
  kBufferType,
  kBufferShape,
  kBufferBytes,
  kBufferLife,
  kBufferPlace,
  kBufferColumns
};
enum NumericsColumn {
  kNumericsNode,
  kNumericsOp,
  kNumericsType,
  kNumericsCompiled,
  kNumericsEager,
  kNumericsLocal,
  kNumericsUlp,
  kNumericsNote,
  kNumericsColumns
};

/// A fusion that the user forbids or forces: two names as in the decisions.
struct FusionWish {
  bool force = false;
  std::string a, b;
  bool operator==(const FusionWish&) const = default;
  bool isAbout(const std::string& x, const std::string& y) const { return (a == x && b == y) || (a == y && b == x); }
};

/// What the engine decided about a graph.
struct FusionContent {
  TableRows decisions, groups, buffers,
      numerics;                          ///< a decision's row has its position as id: several are about one node
  int64_t allDecisions = 0, allGroups = 0, allBuffers = 0, allNumerics = 0;  ///< of which these are the first
  std::vector<Location> decisionPlaces;  ///< by that position: the node
  query::Holdings holdings;
  std::vector<query::ShapeSymbol> symbols;  ///< sizes that are symbols in the graph
  std::vector<FusionWish> recorded;         ///< rules in force when it was compiled
  bool canCompile = false;
  std::string program;  ///< file from outside that PyTorch would load for it, which can run code in it; empty: none
  std::string foreign;  ///< session from elsewhere whose graphs would be run; empty: this user's own
  std::string whyNot;   ///< where it cannot
  int64_t traffic = 0;         ///< bytes that all groups read and write
  int64_t withoutTraffic = 0;  ///< groups of which neither is known
  int64_t saved = 0;    ///< bytes that fusing saved
  int64_t divergent = 0;
};
/// Of each list the first `most`, and how many there are; traffic and what was saved are those of all groups.
inline constexpr int64_t kMostFusionRows = 100'000;
Result<FusionContent> loadFusion(const session::Reader& reader, int64_t graph, int64_t most = kMostFusionRows);

/// "forced" or "forbidden" where one of `wishes` is about the pair; empty otherwise.
std::string wishText(const std::vector<FusionWish>& wishes, const std::string& a, const std::string& b);
/// "--size=s0=8" for each of what a person wrote, "s0=1:512:x2 s1=4"; whether it makes sense, the engine says.
std::vector<std::string> sizeWords(const std::string& text);
/// Words of `fusebox replay` for wishes that were others when the graph was recorded.
std::vector<std::string> replayWords(const std::vector<FusionWish>& wishes, const std::vector<FusionWish>& recorded);

enum ReplayColumn {
  kReplayWhat,
  kReplayMedian,
  kReplayMin,
  kReplayLaunches,
  kReplayExtern,
  kReplayBytes,
  kReplayError,
  kReplayColumns
};

/// Errors of one value: a row of the session's `numerics` or of `fusebox numerics --json`. NaN: not known.
struct ValueErrors {
  Location location;
  std::string name, op, dtype, note;
  double compiled = NAN, eager = NAN, alone = NAN;  ///< largest error relative to the largest value
  double ulp = NAN;
  int64_t output = 0, mismatches = 0;
  bool isDivergent = false;
};
TableRow numericsRow(const ValueErrors& value);

/// What a graph took at one size.
struct SizeTime {
  std::string name, label;  ///< of the size that varies: "s0"; "s0=37, s1=4"
  double size = 0, median = 0, least = 0, most = 0;  ///< times in ns
  bool isWrong = false;     ///< results differ from eager's by too much
};

/// What `fusebox replay --json` reports.
struct ReplayReport {
  TableRows rows;                     ///< one for each way, and the change between them
  std::string session;                ///< that was written
  std::string verdict;                ///< in a sentence
  std::vector<std::string> outcomes;  ///< what became of each wish; of sizes that were asked for, which were left out and why
  std::vector<SizeTime> sizes;        ///< of a sweep
};
Result<ReplayReport> readReplayReport(const std::string& json);

/// What `fusebox numerics --json` reports, in a sentence, and its session.
struct NumericsReport {
  TableRows rows;  ///< in the columns of NumericsColumn; of no node of the open session
  std::string session, verdict;
  int64_t divergent = 0;
};
Result<NumericsReport> readNumericsReport(const std::string& json);

}  // namespace fusebox::views
