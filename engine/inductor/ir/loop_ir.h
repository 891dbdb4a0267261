#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/graph/graph.h"

/// The loop IR: what an operator computes, point by point, before and after fusion. It knows no target: the CPU and GPU code
/// generators read the same structures.
namespace fusebox::inductor {

using graph::Device;
using graph::DType;
using graph::SymExpr;
using graph::Symbol;

using BufferId = int32_t;
using ValueId = int32_t;  ///< position in Section::values

/// Operations on values. Operands and result have the type `Value::type` unless noted. Floating-point operations follow IEEE
/// and torch: Maximum/Minimum propagate NaN, Where selects bitwise, comparisons yield Bool.
enum class Op : uint8_t {
  // leaves
  Constant,    ///< `imm` (bits of a double, or an int64 for integers and Bool)
  Index,       ///< `index` as an Int64 value
  Load,        ///< buffer[index]; with `mask` >= 0: `mask ? buffer[index] : imm`, and nothing is read where mask is false
  Reduced,     ///< result number `imm` of reduction `a` (id of the reduction in this kernel); usable after its section
  // type
  Cast,        ///< numeric conversion from the operand's type (float to int truncates; to Bool is != 0)
  Bitcast,
  // unary
  Neg, Abs, Sign, Reciprocal, Sqrt, Rsqrt, Exp, Exp2, Expm1, Log, Log2, Log10, Log1p, Sin, Cos, Tan, Asin, Acos, Atan,
  Sinh, Cosh, Tanh, Asinh, Acosh, Atanh, Erf, Erfc, Erfinv, Lgamma, Digamma, Sigmoid, Floor, Ceil, Trunc, RoundEven,
  LogicalNot, BitNot, IsNan, IsInf, SignBit,
  // binary
  Add, Sub, Mul, Div,       ///< Div: floating point only
  TruncDiv, FloorDiv,       ///< integers (result for a zero divisor is unspecified, no trap) and floats
  Fmod, Remainder,          ///< C's and Python's modulus
  Pow, Atan2, Hypot, CopySign, NextAfter, Maximum, Minimum,
  BitAnd, BitOr, BitXor, ShiftLeft, ShiftRight,
  Eq, Ne, Lt, Le, Gt, Ge,   ///< operands of one type, result Bool
  // ternary
  Where,                    ///< a (Bool) ? b : c
  Fma,
  // random: counter-based Philox4x32-10; a = Int64 seed, b = Int64 counter of the element. codegen/cpu/philox.h says which of its words
  RandUniform, RandNormal, RandInt64,
  Scan,                     ///< running reduction of a (kind and result number: scanImm) from the first point of the section's axes, row-major,
                            ///< to this one; of equal extremes ArgMax and ArgMin give the last. Only code of a GPU
  Check,                    ///< a; where b (Bool) is false the launch reports `imm` (a Fault) and its results are unspecified
};

/// What a kernel found wrong with its data; the launch's caller raises it as eager does.
enum class Fault : uint8_t {
  None,
  Index,         ///< x[i]: IndexError
  Lookup,        ///< embedding, index_select: IndexError
  Gather,        ///< gather: RuntimeError
  ZeroDivision,  ///< integer division or modulus by zero: RuntimeError
  UnitRange,     ///< binary cross entropy of what is not between 0 and 1: RuntimeError
};

struct Value {
  Op op = Op::Constant;
  DType type = DType::Undefined;  ///< type of the result
  std::array<ValueId, 3> args{-1, -1, -1};
  int64_t imm = 0;
  BufferId buffer = -1;  ///< Load
  SymExpr index;         ///< Load, Index: in elements, over axes, sizes and loaded indices
  ValueId mask = -1;     ///< Load: a Bool value
  // What people are told; equal kernels may differ in it.
  graph::NodeId origin = -1;  ///< of the post-grad graph: whose formula it is a part of; -1: not known
  int32_t line = 0;           ///< of the kernel's text, after numberLines()
};

/// Functions of tens of instructions, which are not computed for nothing.
bool isDear(Op op);

enum class ReduceKind : uint8_t {
  Sum, Prod, Max, Min, Any, All,
  ArgMax, ArgMin,   ///< one result: Int64 position along the flattened reduction axes, first occurrence; NaN wins
  Welford,          ///< three results: mean, m2 (sum of squared deviations), count (as the value's type); an infinity among
                    ///< the values makes mean and m2 NaN wherever it stands
  OnlineSoftmax,    ///< two results: max m, and sum of exp(x - m), unspecified where m is infinite
};

/// A step of a section's body, carried out once for each point of the iteration space, in order.
struct Statement {
  enum class Kind : uint8_t {
    Store,      ///< buffer[index] = value (cast to the buffer's type is explicit in the values)
    AtomicAdd,  ///< buffer[index] += value; points may collide. Only code of a GPU
    Reduce,     ///< accumulate `inputs` into reduction `reduction`
    Accumulate, ///< buffer[index] = `reduce` (Sum, Prod, Max or Min) of value over all outer points, converted to the buffer's type. The
                ///< index steps along the section's axes only, and nothing in the kernel loads the buffer. Only code of a GPU
  } kind = Kind::Store;
  BufferId buffer = -1;
  SymExpr index;
  ValueId value = -1;
  ValueId mask = -1;                     ///< Store, AtomicAdd: only where true; -1 for always
  ReduceKind reduce = ReduceKind::Sum;
  int32_t reduction = -1;                ///< unique within the kernel; Reduced refers to it
  std::array<ValueId, 3> inputs{-1, -1, -1};
  int32_t line = 0;                      ///< as Value::line
};

/// Value::imm of a Scan.
constexpr int64_t scanImm(ReduceKind kind, int result) { return static_cast<int64_t>(kind) | int64_t{result} << 8; }
constexpr ReduceKind scanKind(int64_t imm) { return static_cast<ReduceKind>(imm & 0xff); }
constexpr int scanResult(int64_t imm) { return static_cast<int>(imm >> 8); }

struct Axis {
  Symbol symbol;    ///< ranges over 0 <= symbol < extent
  SymExpr extent;
};

/// A loop nest inside a kernel: for every point of `axes` (row-major, last fastest), in addition to the kernel's outer axes,
/// the statements are carried out. If `isReduction`, the axes are reduction axes: the section accumulates into its Reduce
/// statements' results (which later sections read by Reduced) and may also Store per point. A section without axes runs once
/// for every point of the outer axes (for example to store a reduction's result).
struct Section {
  std::vector<Axis> axes;
  bool isReduction = false;
  std::vector<Value> values;  ///< SSA: operands precede users
  std::vector<Statement> body;
  /// Loaded indices: a symbol used in `index` expressions whose run-time value is that of a (Int64) value of this section.
  std::map<Symbol, ValueId> indirect;
};

/// What makes a kernel attention. Its one section runs along the columns: for a row (the outer axes, of which the last one or two are the rows
/// of one product) it stores the columns' values, weighted by the softmax of their scores. Its body is
///   reduction 0, Sum of the inputs query and key, which are loads and step along `width`: the product that scores are made of;
///   reduction 1, OnlineSoftmax of the inputs score (Float32) and value, a load that steps along `depth`;
///   the store of what comes of it, which steps along `depth` as well; its own value counts for nothing.
/// A fourth statement stores the logarithm of the sum of the exponentials of a row's scores, where it is wanted.
/// The gradients of attention (`stores`) have another body:
///   reduction 0 or 1, Sum of the inputs query and key, the product that scores are made of, and with them the exponentials of the scores;
///   the other one, Sum of the inputs gradient and value, which step along `depth`;
///   stores, of what is multiplied with another operand and summed: over the columns with the key for the query's gradient, over the rows
///   with the query for the key's and with the gradient for the value's. Their indices step along `width` or `depth` as well.
/// Only code of a GPU.
struct Attention {
  Axis width, depth;  ///< of constant extent
  int sharing = 0;    ///< outer axes before the last one, 0 or 1, that are rows of the same product
  bool safe = false;  ///< a row of which every score is -inf gives 0, not NaN
  /// Positions in the body of the stores of the query's, the key's and the value's gradient; -1: that one is not wanted, or these are
  /// no gradients.
  std::array<int, 3> stores{-1, -1, -1};
  bool isGradient() const { return stores[0] >= 0 || stores[1] >= 0 || stores[2] >= 0; }
};

enum class BufferRole : uint8_t { Input, Output, InOut, Scratch };

/// A buffer as the kernel sees it. Scratch buffers live inside the kernel: their contents are visible only at one point of the
/// outer axes, and the code generator chooses where to keep `sizes` (extent of the inner axes) elements.
struct KernelBuffer {
  BufferId id = -1;         ///< as used in Load and Store
  std::string name;         ///< "buf3", "arg0"
  DType dtype = DType::Undefined;
  BufferRole role = BufferRole::Input;
  SymExpr numel;            ///< elements reachable
  int64_t alignment = 64;   ///< bytes known to divide the base address; elementSize for inputs from outside
  BufferId overwrites = -1; ///< an input whose memory this output takes over: each element is to be loaded before the one at
                            ///< the same index is stored, in the same section
};

/// A fused kernel. For every point of the outer axes (independent of one another; they may run in parallel), the sections run
/// one after another.
struct Kernel {
  std::string name;         ///< "fused_add_gelu_3": from original ATen names
  Device device;
  std::vector<Axis> outer;
  std::vector<Section> sections;
  std::vector<KernelBuffer> buffers;   ///< in the order of the kernel's pointer arguments (Scratch ones have no argument)
  std::vector<Symbol> sizeSymbols;     ///< in the order of the kernel's size arguments
  /// Launched for many sets of buffers and sizes at a time: code of a GPU finds those of a block in a table (codegen/gpu/batch_table.h).
  bool isBatch = false;
  std::shared_ptr<const Attention> attention;  ///< null: what the sections say is all

  /// Text form for people and for golden tests. Behind a value `# name` says whose it is, where `nodeNames` has the node.
  std::string str(const std::vector<std::string>& nodeNames = {}) const;
  /// Hash of everything that matters to code generation, buffer names and symbol identities apart: equal kernels share code.
  uint64_t structuralHash() const;
};

/// The kernel's text with symbols and buffers numbered by position: equal exactly where structurally equal.
std::string canonicalText(const Kernel& kernel);

/// Tells each value and statement its line in Kernel::str(), the first being 1.
void numberLines(Kernel& kernel);

/// Whether the kernel can report a Fault.
bool hasChecks(const Kernel& kernel);

/// Whether only a GPU's code generator carries the kernel out: scans, additions at positions that are data, and accumulation over points.
bool isForGpu(const Kernel& kernel);
/// Whether the bits of a reduction of such values depend on the order in which they are taken in.
bool roundsByOrder(ReduceKind kind, DType type);
/// Whether the bits of a kernel's results depend on how its points are dealt out to threads.
bool roundsByOrder(const Kernel& kernel);
/// Whether some value of the section is a Scan, so that the order of its axes matters.
bool hasScan(const Section& section);

/// Numbers in the state of a reduction: an extreme and its position, a mean with its squares and count, ...
size_t componentCount(ReduceKind kind);
bool hasReduction(const Section& section);
/// The weight (SymExpr::weight) of the longest index at which the section reads or writes.
uint32_t longestIndex(const Section& section);

std::string_view name(Op op);
std::string_view name(ReduceKind kind);

}  // namespace fusebox::inductor
