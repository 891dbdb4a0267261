#pragma once

#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/graph/symbol_values.h"
#include "engine/inductor/schedule/fusion_rules.h"
#include "engine/inductor/ir/loop_ir.h"
#include "engine/inductor/ir/program.h"

/// Between lowering and scheduling: buffers, and the operations that compute them, not yet fused.
namespace fusebox::inductor {

/// Bytes of a tensor's elements, at the hints.
inline int64_t bytesOf(const graph::TensorMeta& meta) { return graph::hint(meta.numel()) * graph::elementSize(meta.dtype); }

struct LoweredBuffer {
  BufferId id = -1;  ///< position in LoweredGraph::buffers
  std::string name;
  graph::TensorMeta meta;
  enum class Kind : uint8_t {
    Input,     ///< graph input `index`
    Constant,  ///< captured constant `index`
    Computed,  ///< written by one operation (several may write parts of it; the scheduler keeps their order)
    View,      ///< shares storage with `base`; never written itself. Made only where an extern call or a result needs one.
  } kind = Kind::Computed;
  int32_t index = -1;
  BufferId base = -1;
  bool isKept = false;  ///< computed whole although nobody may read it: what computes it checks data
};

/// Something to carry out. A Loops operation is an unfused kernel (`kernel.outer` are its spatial axes; a reduction has one
/// reduction section and one section that stores the results); an Extern operation is a call of an ATen operator.
struct Operation {
  int32_t id = -1;  ///< position in LoweredGraph::operations
  std::string name;
  enum class Kind : uint8_t { Loops, Extern } kind = Kind::Loops;
  Kernel kernel;
  ExternStep call;                       ///< Extern
  std::vector<BufferId> reads, writes;   ///< views resolved to their base
  std::vector<graph::NodeId> origins;    ///< post-grad graph nodes it carries out
  /// What fixes its place among others, beyond what it reads and writes.
  enum class Order : uint8_t {
    Free,
    Draws,   ///< takes numbers from a generator: in the order of the program among such
    Effect,  ///< others see it happen: no draw, no other effect and no operation that may raise changes sides with it
  } order = Order::Free;
};

/// A write to an input that the caller wants to see: result `result` of the graph is the input's new value.
struct InputWrite {
  int32_t input = -1;
  size_t result = 0;
  std::string refusal;  ///< why it has to be a copy, as far as the graph's caller knows; empty: it may happen in place
};

/// Whether a write happens in the memory of what is written, or to a copy of it, and why.
struct WriteDecision {
  int32_t operation = -1;  ///< that makes the new value
  bool inPlace = false;
  std::string reason;
  int64_t bytes = 0;       ///< that need not be copied
};

struct LoweredGraph {
  std::string name;
  std::vector<LoweredBuffer> buffers;
  std::vector<Operation> operations;    ///< in a valid order
  std::vector<graph::Argument> results; ///< ValueRef{buffer id}, SymExpr or None
  int32_t inputCount = 0;
  std::vector<InputWrite> inputWrites;   ///< LowerOptions::inputWrites
  std::vector<WriteDecision> writes;     ///< decided while lowering
  std::vector<std::string> nodeNames;   ///< of the post-grad graph, by node id; rules about fusions name them
};

/// A rewrite of the post-grad graph: what ran, and whether it changed anything.
struct PassLog {
  std::string pass;
  int64_t startNs = 0, ns = 0;  ///< nowNs()'s clock
  int64_t nodesBefore = 0, nodesAfter = 0;
  bool changed = false;
  std::string detail;
};

/// Runs the graph passes in their fixed order (the list is the table in passes.cpp): decompositions, constant folding,
/// no-op and dead-code removal, common subexpressions, layout choice.
/// Those named in `skipped` are left out, and logged as such.
Result<graph::Graph> runGraphPasses(graph::Graph graph, std::vector<PassLog>* log, const std::vector<std::string>& skipped = {});
/// Names of the passes, in order.
std::vector<std::string> graphPassNames();

/// What code can be generated for, asked while lowering.
struct LowerOptions {
  /// Why there is no code for a device; empty where there is.
  std::function<std::string(const Device&)> refusal = [](const Device& device) {
    return device.kind == graph::DeviceKind::Cpu ? std::string() : "no code generator for device " + device.str();
  };
  /// Post-grad nodes that generated code was tried for in vain, and why: they become calls of their operators.
  std::map<graph::NodeId, std::string> asCalls;
  bool deterministic = false;  ///< torch.use_deterministic_algorithms: nothing whose result depends on the order of threads
  bool emulatePrecisionCasts = false;  ///< 16-bit floats are rounded after every operator, as eager has it
  bool hasOtherHalf = false;  ///< the graph is the forward or the backward of a pair, which both compute some of the forward nodes' values
  /// Whether a device other than the CPU has code for an operation on values of a type.
  std::function<bool(const Device&, Op, DType)> hasCode = [](const Device&, Op, DType) { return true; };
  /// Results from this position on are read by compiled code alone (tensors saved for backward): they may lie in memory otherwise than
  /// traced, as the buffers of LoweredGraph::results say.
  size_t firstSaved = std::numeric_limits<size_t>::max();
  std::vector<InputWrite> inputWrites;
};

/// Lowers every node: to loops where a lowering exists, to an extern call (with the reason) where none does.
Result<LoweredGraph> lower(const graph::Graph& graph, const LowerOptions& options = {});

/// Why two groups were fused, or not. `scoreBytes` is the memory traffic that fusing saves.
struct FusionDecision {
  int32_t a = -1, b = -1;       ///< operation ids (any member of each group)
  bool fused = false;
  std::string kind;             ///< "vertical", "horizontal", "reduction", "epilogue"; "in place" for a write, of which a and b are the operation
  std::string reason;
  int64_t scoreBytes = 0;
  bool byRule = false;          ///< a person forbade or forced it
};

struct FusionGroup {
  int32_t id = -1;
  std::vector<int32_t> operations;
  int32_t kernel = -1;          ///< position in Program::kernels; -1 for an extern call
  std::string name;
  int64_t bytesSaved = 0;
};

struct Schedule {
  Program program;
  std::vector<FusionGroup> groups;      ///< in order of execution; LaunchStep::group and ExternStep::group refer to them
  std::vector<FusionDecision> decisions;
  std::vector<std::string> unknownNames;  ///< of ScheduleOptions::rules, that nothing in this graph has
};

struct ScheduleOptions {
  bool fuse = true;
  int maxFusionSize = 64;               ///< operations per kernel
  std::vector<FusionRule> rules;        ///< fusions that a person forbids or forces
  bool emulatePrecisionCasts = false;   ///< as LowerOptions
};

/// Fuses, orders, plans memory and writes the program.
Result<Schedule> schedule(const LoweredGraph& lowered, const ScheduleOptions& options);

}  // namespace fusebox::inductor
