#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/inductor/ir/loop_ir.h"

namespace fusebox::inductor {

/// A tensor of the compiled program at run time.
struct ProgramBuffer {
  BufferId id = -1;
  std::string name;
  graph::TensorMeta meta;     ///< meta.storageOffset is relative to `base` for a View
  enum class Kind : uint8_t {
    Input,       ///< graph input number `index`
    Constant,    ///< captured constant number `index`
    Planned,     ///< intermediate at byte `poolOffset` of the call's memory pool
    Owned,       ///< allocated by itself (outputs, results of extern calls)
    View,        ///< same storage as buffer `base`, own sizes, strides and offset
  } kind = Kind::Owned;
  int32_t index = -1;
  int64_t poolOffset = 0;     ///< for the hints, where Program::places says how it depends on sizes
  int32_t place = -1;         ///< Planned, where sizes change: position in Program::places
  BufferId base = -1;
};

/// Launch kernels[kernel] on `buffers` (its pointer arguments, in order).
struct LaunchStep {
  int32_t kernel = -1;
  std::vector<BufferId> buffers;
  int32_t group = -1;  ///< fusion group, for the record
  std::vector<SymExpr> sizes;  ///< values of the kernel's sizeSymbols for this launch (kernels are shared between launches)
  int32_t batch = -1;  ///< not negative: launches of the same number, which follow one another, are independent and may run at once
};

/// Call an operator through the boxed dispatcher. ValueRef arguments name buffers: {node = BufferId, output = 0}.
struct ExternStep {
  std::string op;
  graph::ArgumentList args;
  std::vector<BufferId> results;        ///< one for each (flattened) output; -1 where the output is not used or None
  /// For each (flattened) output that is an integer, what the graph was compiled for; other positions are empty, and so is the list
  /// where no output is one.
  std::vector<std::optional<int64_t>> integers;
  std::string outVariant;               ///< if set: "aten::addmm.out", results written into existing buffers `results`
  BufferId changes = -1;                ///< if set, `op` changes this buffer in place ("aten::index_copy_")
  bool resultIsList = false;
  bool withGrad = false;                ///< called as eager calls it, with gradient mode on (some kernels keep more for backward then)
  int32_t group = -1;
  std::string reason;                   ///< why this is not a generated kernel
};

/// Allocate an Owned buffer, or drop the reference to one (frees its memory unless it is an output).
struct AllocateStep { BufferId buffer; };
struct FreeStep { BufferId buffer; };

/// A piece of a pool, in use from step `first` to step `last` of the schedule's order.
struct PoolPlace {
  SymExpr bytes;
  int32_t first = 0, last = 0;
  bool onDevice = false;
};

using Step = std::variant<LaunchStep, ExternStep, AllocateStep, FreeStep>;

/// A compiled graph without its code: what the run time carries out in order. `results[i]` is a buffer, -1 for None, or, where
/// `resultScalars[i]` is set, an integer expression.
struct Program {
  std::string name;
  std::vector<ProgramBuffer> buffers;  ///< position = id
  std::vector<Kernel> kernels;         ///< distinct ones only
  std::vector<Step> steps;
  std::vector<graph::Argument> results; ///< ValueRef{buffer id}, SymExpr or None
  int32_t inputCount = 0;
  int64_t poolBytes = 0;               ///< of the memory pool, 64-byte aligned
  int64_t devicePoolBytes = 0;         ///< of a pool for Planned buffers on `poolDevice`, a GPU
  graph::Device poolDevice;
  /// Where a size is symbolic: what the pools are planned for in every call, since offsets depend on the sizes. Else empty.
  std::vector<PoolPlace> places;
  /// The first step that changes an input so that what ran before it would not run the same way again; -1 if none does.
  int32_t firstUnrepeatable = -1;

  std::string str() const;
};

}  // namespace fusebox::inductor
