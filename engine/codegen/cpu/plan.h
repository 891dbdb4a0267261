#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/codegen/cpu/segments.h"
#include "engine/codegen/cpu/target.h"
#include "engine/inductor/ir/loop_ir.h"

namespace fusebox::codegen::cpu {

/// A section's axes as one, the last running fastest.
struct Flattened {
  inductor::SymExpr position;  ///< along them
  inductor::SymExpr points;    ///< product of the extents
};
Flattened flattened(const std::vector<inductor::Axis>& axes);

/// How a section's loops run.
struct SectionPlan {
  std::vector<int> order;        ///< positions in Section::axes, outermost loop first
  int vectorAxis = -1;           ///< position in Section::axes that is vectorised (then last in `order`); -1: none
  inductor::SymExpr position;    ///< flattened position along the axes, for ArgMax and ArgMin
  inductor::SymExpr points = 1;  ///< product of the extents
  inductor::SymExpr chunk = 0;   ///< phases: iterations of loop order[0] in one work unit; 0: not divided
  std::vector<std::vector<int64_t>> runs;  ///< by loop in `order`: runSizes()
};

/// Whether the errors of a reduction grow faster with the number of values that one accumulator takes in than with that of all (a product's
/// do not).
bool addsUpRounding(inductor::ReduceKind kind, inductor::DType type);
/// Values that go into one accumulator where there are many, and up to how many are not worth a second one.
struct RunLengths {
  int64_t run = 32, whole = 64;
};
/// Lengths of the runs that a loop of `iterations` is cut into when it is too long for one accumulator, shortest first; none where it is not.
/// Every run of each length has an accumulator of its own, which then goes into that of the next longer one, so that errors grow with the
/// logarithm of the length. `taken`: values that go into the accumulator in one iteration.
std::vector<int64_t> runSizes(double iterations, double taken = 1, const RunLengths& lengths = {});

/// A stage that must be finished everywhere before the next begins.
struct Phase {
  enum class Kind {
    Whole,    ///< every section, for one outer point (or vector chunk of them)
    Chunk,    ///< a part of section `first`: one chunk of its first loop; reductions leave partial results
    Finish,   ///< combines the partial results of section `first` - 1, then runs sections [first, last), which have no axes
  } kind = Kind::Whole;
  int first = 0, last = 0;
};

/// Points along a section's innermost loop in a tile that is turned.
constexpr int64_t kTurnedPoints = 16;

/// Decisions taken before any code is emitted. `kernel` is the kernel with axes merged and divided.
struct Plan {
  inductor::Kernel kernel;
  int lanes = 1;
  int outerVector = -1;              ///< position in kernel.outer that is vectorised across outer points; -1: inside sections
  int64_t outerChunk = 0;            ///< points of the vector axis in one work unit (a multiple of lanes)
  int tileAxis = -1;                 ///< outer axis run inside a unit in tiles of tileSize, for transposing access
  int64_t tileSize = 1;
  std::optional<Segments> segments;
  std::vector<SectionPlan> sections;
  std::vector<Phase> phases;
  double nsPerUnit = 0;
  int64_t bytesPerUnit = 0;

  bool isPhased() const { return phases.size() > 1; }
  /// For people; it stands above the LLVM IR that a session shows.
  std::string str() const;
  /// Work units of one phase: product of the outer extents (the vector axis in chunks, the tile axis in tiles), times chunks.
  inductor::SymExpr unitsOf(const Phase& phase) const;
  inductor::SymExpr outerUnits() const;
  inductor::SymExpr chunksOf(int section) const;
  inductor::SymExpr outerPoints() const;
};

Plan makePlan(const inductor::Kernel& kernel, const TargetTraits& target);

}  // namespace fusebox::codegen::cpu
