#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What the engine tells the session, as plain values. Column by column they are described in profiler/session/SCHEMA.md.
/// Strings may be empty and ids 0 where nothing is known.
namespace fusebox::record {

/// Id of a recorded thing, unique in the session and its table, from 1; 0 is none.
using Id = int32_t;

/// A position in the user's program. line 0: unknown.
struct Place {
  std::string file;
  int line = 0;
  std::string function;
};

struct FrameRecord {
  Id parent = 0;               ///< the frame that this resume function continues
  std::string name, qualname;
  Place place;                 ///< first line of the code object
  int resumeOffset = -1;       ///< bytecode offset at which a resume function starts
};

struct CompileRecord {
  Id frame = 0;
  Id parent = 0;
  int attempt = 0;             ///< 0 for the first entry of the frame, 1 for the first recompilation, ...
  std::string kind = "frame";  ///< frame, resume, backward, graph
  std::string backend, mode;
  bool dynamic = false;
  Id cause = 0;                ///< the guard failure that made it necessary
  std::vector<Place> stack;    ///< of the call that is compiled for, innermost last; for a listener alone
  int logs = 0;                ///< of a listener: which settings of its own the program compiled it with
  Place place;                 ///< where empty, the frame's
};

struct CompileEnd {
  bool ok = true;
  std::string error;
  std::string cache;           ///< hit, miss, bypass or disabled
  std::string cacheKey;
};

struct GraphBreakRecord {
  Id frame = 0, compile = 0;
  std::string kind, reason, hint;
  Place place;
  int endLine = 0, column = -1, endColumn = -1;
  std::string opcode;
  int offset = -1;
  std::vector<Place> stack;    ///< innermost last
  struct Instruction {
    int offset = 0, line = 0, to = -1;  ///< to: where a jump leads, -1 for others
    std::string op, argument;
  };
  std::vector<Instruction> bytecode;  ///< around `offset`
};

struct GuardRecord {
  std::string kind;            ///< TENSOR_MATCH
  std::string source;          ///< L['x']
  std::string expected;
  std::string code;            ///< whole check as an expression, for people
  std::string reason;
  Place place;
  std::vector<Place> stack;    ///< innermost last; empty where `place` says it all
};

struct GuardFailureRecord {
  Id frame = 0;
  Id compile = 0;              ///< the entry whose guard failed
  Id guard = 0;
  std::string text, expected, found;
  std::string outcome = "recompile";  ///< recompile, limit (recompile_limit reached), eager, next_entry
  Place place;
  std::vector<Place> stack;    ///< of the call that did not fit, innermost last
};

/// A symbolic number of a compiled entry: what its kernels take at every call instead of a constant.
struct SymbolRecord {
  std::string name;            ///< as expressions print it: s0; unique within the compilation
  std::string source;          ///< where a call's value is read: L['x'].size()[0]; empty for unbacked ones
  std::string kind = "size";   ///< size, stride, offset, int, float, unbacked
  std::optional<double> hint;  ///< value at capture; none for unbacked ones
  std::optional<int64_t> lower, upper;  ///< values that it may take, both included; none: unbounded
  std::string policy;          ///< why it is no constant: automatic, dynamic, marked, unbacked
  std::string reason;          ///< the same as a sentence, with what asked for it
  std::string before, after;   ///< policy automatic: what it was in the entry before, and what it was found to be
  Place place;                 ///< the line that made, marked or read it
  std::vector<Place> stack;    ///< innermost last; empty where `place` says it all
};

/// What capture took as true of symbols: `left op right`.
struct RelationRecord {
  std::string kind = "guard";  ///< guard (checked at every call), duck (equal sizes share a symbol), runtime (asserted in the graph)
  std::string op;              ///< ==, !=, <, <=
  std::string left, right;     ///< expressions over symbols
  std::vector<std::string> symbols;  ///< names of those in them
  std::string reason;          ///< what asked
  Id guard = 0;                ///< the guard that checks it
  Place place;                 ///< the line that asked
  std::vector<Place> stack;
};

/// A number that could have been symbolic and became a constant of the entry.
struct SpecialisationRecord {
  std::string kind = "number"; ///< number, comparison, operator, zero_one, static, plan, fallback (SCHEMA.md says what they mean)
  std::string expression;      ///< over symbols; empty where none was made
  std::vector<std::string> symbols;  ///< names of those in it
  std::string source;          ///< where its value is read at a call
  double value = 0;
  std::string op;              ///< operator or construct that needed the number: aten::topk, range(), hash
  std::string reason;
  Id guard = 0;                ///< the guard that holds calls to this value
  Place place;                 ///< the line that needed it
  std::vector<Place> stack;
};

/// A recorded graph. Node k of the Graph is session node firstNode + k.
struct GraphSnapshot {
  Id id = 0;
  Id firstNode = 0;
  Id node(int32_t nodeId) const { return id == 0 || nodeId < 0 ? 0 : firstNode + nodeId; }
};

struct GraphRecord {
  Id compile = 0;
  std::string stage;           ///< captured, joint, forward, backward, post_grad, post_fusion
  std::string direction = "inference";  ///< inference, forward, backward, joint
  GraphSnapshot from;          ///< the graph that Provenance::from of its nodes refers to
  bool samePositions = false;  ///< node k was made from node k of `from`, whatever Provenance::from says
  std::string name;            ///< for people; empty: the graph's own
};

struct FusionGroupRecord {
  Id compile = 0;
  GraphSnapshot graph;
  int position = 0;            ///< in order of execution
  std::string name;
  std::string kind;            ///< pointwise, reduction, loops, extern, template
  Id kernel = 0;
  std::vector<int32_t> nodes;  ///< node ids of `graph`
  std::vector<int32_t> results;  ///< those of them whose values leave the kernel
  int64_t readBytes = 0, writeBytes = 0, bytesSaved = 0;
  std::string reason;          ///< extern: why no kernel was generated
};

struct FusionDecisionRecord {
  Id compile = 0;
  GraphSnapshot graph;
  int position = 0;
  std::string a, b;            ///< names of the candidates
  int32_t aNode = -1, bNode = -1;  ///< a node of each, in `graph`
  Id group = 0;                ///< where they ended up, if fused
  std::string kind;            ///< vertical, horizontal, reduction, epilogue
  bool fused = false;
  std::string reason, detail;
  int64_t scoreBytes = 0;
};

struct BufferRecord {
  Id compile = 0;
  GraphSnapshot graph;
  std::string name;
  std::string kind;            ///< input, constant, planned, allocated (freed after its last use), owned (a result), view
  int32_t node = -1;
  std::string dtype, shape, device;
  int64_t bytes = 0;
  int firstUse = -1, lastUse = -1;
  int64_t poolOffset = -1;
  Id reuses = 0;
};

/// A generated kernel, or an operator called as it is.
struct KernelRecord {
  Id compile = 0;
  GraphSnapshot graph;
  Id group = 0;
  std::string name;
  std::string kind = "generated";  ///< generated, template, extern, cuda_graph
  std::string op;              ///< extern: aten::mm
  std::string device = "cpu";
  std::string loopIr;
  std::string reason;          ///< extern: why no kernel was generated
  int64_t readBytes = 0, writeBytes = 0, flops = 0;
  std::vector<int32_t> nodes;  ///< node ids of `graph`; the last with a place gives the kernel's own
  Id codeOf = 0;               ///< an earlier kernel that shares its machine code
  Place place;                 ///< of a kernel without nodes
};

/// Code of a kernel at a tier; recorded again for a better tier.
struct KernelCodeRecord {
  Id kernel = 0;
  int tier = 0;
  std::string target;          ///< CPU and features, or GPU architecture
  std::string llvmIr, assembly;
  int64_t codeBytes = 0;
  int64_t compileNs = 0;
  std::string cache;
};

/// A stage that has ended already, inside the innermost open one of its thread.
struct StageRecord {
  Id compile = 0;
  std::string phase, name;
  int64_t startNs = 0, endNs = 0;
  int changed = -1;            ///< 1 or 0; -1: does not apply
  int64_t nodesBefore = -1, nodesAfter = -1;
  std::string detail;
};

/// What became of a compiled graph that CUDA graphs were asked for.
struct CudaGraphRecord {
  struct Nodes {
    int stretch = 0, first = 0, count = 0;
    Id group = 0, kernel = 0;
  };
  Id compile = 0;
  std::string event;           ///< recorded, warm_up, refused, stopped, moved, busy
  int number = -1, replaces = -1;
  std::string reason, device;
  int nodeCount = -1, stretches = -1, plainSteps = -1;
  std::string plainReason;
  int staticInputs = -1, copiedInputs = -1;
  int64_t copiedBytes = -1, keptBytes = -1, startNs = 0, durNs = 0;
  int64_t poolBytes = -1;      ///< that the pool of all recordings of the device holds by then
  Id kernel = 0;               ///< of kind cuda_graph: its launches are the replays
  std::vector<Nodes> nodes;
};

struct CacheRecord {
  Id compile = 0;
  std::string cache;           ///< graph, kernel, autotune, ...
  std::string outcome;         ///< hit, miss, bypass, disabled (by the user's settings), store
  std::string key, reason;
  int64_t savedNs = 0;
};

/// How exact one output of a node is; errors are largest absolute ones, negative where not known. See the view `numerics`.
struct NumericsRecord {
  Id graph = 0, node = 0;      ///< session ids
  int output = 0;
  std::string dtype;
  int64_t elements = 0;
  double eagerAbs = -1, eagerRel = -1, compiledAbs = -1, compiledRel = -1;  ///< against float64
  double differenceAbs = -1, differenceUlp = -1;                            ///< compiled against eager
  double localAbs = -1;        ///< compiled from eager's inputs, against float64
  double magnitude = -1;
  int64_t mismatches = 0;
  bool divergent = false;
  std::string note;
};

struct SpanRecord {
  std::string kind, name;
  int64_t startNs = 0, durNs = 0;
  Id compile = 0;
  std::string detail;
  Place place;
};

}  // namespace fusebox::record
