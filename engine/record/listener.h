#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/record/records.h"

namespace fusebox::record {

/// What became of a frame or a compilation that was told before.
struct FrameStatusRecord {
  Id frame = 0;
  std::string status, reason;
};
struct CompileEndRecord {
  Id compile = 0;
  CompileEnd end;
};

/// Records of one entry that come together; the first has the id that they are heard with, the others those that follow.
template <class Record>
struct Listed {
  Id compile = 0;
  std::vector<Record> rows;
};

struct HeardGraph {
  GraphRecord record;
  std::shared_ptr<const graph::Graph> graph;
};

/// A form of a graph between lowering and code generation, as text.
struct IrRecord {
  Id compile = 0;
  std::string stage;      ///< pre_fusion, post_fusion
  std::string direction;  ///< as in GraphRecord
  std::string text;
};

/// An instruction that capture is about to follow, for the entry whose compilation began last.
struct TracedInstruction {
  Place place;
  int depth = 0;          ///< of its frame: 0 for the one that is captured
  size_t stack = 0;       ///< values on that frame's stack
  int column = -1, endLine = -1, endColumn = -1;  ///< of the code that it stands for, in bytes; -1: not known
  std::vector<std::string> made;                  ///< operators that have been recorded since the instruction told of before
  GraphBreakRecord::Instruction instruction;
};

/// The instructions of a code object of which an entry is made.
struct BytecodeRecord {
  Id compile = 0;
  std::vector<GraphBreakRecord::Instruction> instructions;
};

/// What an entry does besides computing: a line for each write and each call that is put off, in the order in which they are carried out.
struct EffectsRecord {
  Id compile = 0;
  std::vector<std::string> lines;
};

/// A session begins: ids below kFirstIdWithoutSession start anew.
struct SessionBegins {};
/// Recorders without a session share one sequence of ids, from here on.
inline constexpr Id kFirstIdWithoutSession = Id{1} << 30;

struct LossRecord {
  std::string what, detail;
  int64_t count = 0;
};

/// One record on its way to the session, under the id that it has there.
struct Heard {
  Id id = 0;
  std::variant<FrameRecord, FrameStatusRecord, CompileRecord, CompileEndRecord, GraphBreakRecord, Listed<GuardRecord>, GuardFailureRecord,
               Listed<SymbolRecord>, Listed<RelationRecord>, Listed<SpecialisationRecord>, HeardGraph, FusionGroupRecord, FusionDecisionRecord,
               BufferRecord, KernelRecord, KernelCodeRecord, IrRecord, StageRecord, CacheRecord, CudaGraphRecord, TracedInstruction,
               BytecodeRecord, EffectsRecord, SessionBegins, LossRecord>
      what;
  int64_t timeNs = 0;
};

/// Hears of what is compiled while it is, beside a session or without one: the program's logs. Calls come from any thread, with Python's lock
/// or without, and must neither wait for anything nor throw. What happens in every call (launches, checks of guards) is not told.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void heard(Heard heard) = 0;
  /// Whether code and loop IR as text are wanted, which take time to print.
  std::atomic<bool> wantsCode{false};
  /// Whether each instruction that capture follows is wanted.
  std::atomic<bool> wantsInstructions{false};
};

}  // namespace fusebox::record
