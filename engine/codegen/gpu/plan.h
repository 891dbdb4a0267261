#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/codegen/gpu/launch_shape.h"
#include "engine/codegen/gpu/target.h"
#include "engine/inductor/ir/loop_ir.h"

namespace fusebox::codegen::gpu {

inline constexpr int64_t kStateBytes = 8;  ///< in working memory, of one number of a divided reduction's state

/// How the threads of a block are laid over outer points and over the inner work of one point. Thread numbers run along
/// the points first if `pointsFast`, else along the inner work.
struct Mapping {
  int points = 1;  ///< threads side by side over points
  int inner = 1;   ///< threads that share a point; a power of two
  int cluster = 1; ///< blocks that share a point and reach each other's shared memory (sm_90), `inner` being the threads of all; `points` is 1 then
  int vector = 1;  ///< neighbouring points (along Plan::vectorAxis) that one thread carries out
  int unroll = 1;  ///< such vectors a thread carries out, `points` vectors apart (tileFast: neighbours); 1 where `inner` > 1
  bool pointsFast = true;
  /// Not 0: `points` threads cover a rectangle of Plan::vectorAxis and Plan::crossAxis, so many of them along the former, and a thread's
  /// `unroll` vectors are neighbours along the latter. What is consecutive along either axis is accessed in whole sectors.
  int tileFast = 0;
  int innerOfBlock() const { return inner / cluster; }
  int threads() const { return points * innerOfBlock(); }
  int vectorsPerBlock() const { return points * unroll; }
};

/// Rows in vectors that lie as memory does and may reach beyond the row's ends (ragged.h).
struct Ragged {
  bool on = false;
  inductor::SymExpr start = 0;  ///< where rows begin in memory: what an access has more is aligned or not, whatever the row
  inductor::SymExpr shift = 0;  ///< elements before the row at which its first vector begins
};

/// How a section's own axes run: flattened in `order`, in vectors along the last of them, dealt out over Mapping::inner
/// threads.
struct SectionPlan {
  std::vector<int> order;        ///< positions in Section::axes, slowest first
  int vector = 1;                ///< neighbours along the last axis that a thread takes at once; divides its extent
  int unroll = 1;                ///< vectors in one iteration
  bool whole = false;            ///< one iteration covers everything: no loop, and what is loaded stays in registers
  inductor::SymExpr points = 1;  ///< product of the extents
  inductor::SymExpr position;    ///< row-major position along the axes, for ArgMax and ArgMin
  inductor::SymExpr chunk = 0;   ///< vectors in one chunk, where the section is divided
  /// Single elements of rows that begin anywhere: so many elements before the row, below kLineElements, the threads begin, without effect
  /// there. Then the elements of a warp lie in one line of the cache. 0: none.
  inductor::SymExpr shift = 0;
  Ragged ragged;                 ///< of the only axis; `vector` does not divide its extent then
};

/// Elements that fill a line of the cache, whatever their type.
constexpr int kLineElements = 64;

/// One launch. Launches of a kernel follow one another on the stream.
struct Phase {
  enum class Kind {
    Whole,   ///< every section
    Chunk,   ///< section `first`, divided into chunks over blocks; reductions leave partial results in working memory
    Finish,  ///< combines the partial results of section `first` - 1, then runs sections [first, last), which have no
             ///< axes
  } kind = Kind::Whole;
  int first = 0, last = 0;
  Mapping map;
  inductor::SymExpr blocks = 1;
  bool walks = false;  ///< Whole: blocks are so few that each walks over several groups of points, `blocks` apart (Plan::across)
};

/// Where the blocks that walk leave what an Accumulate statement has added up: a byte offset in working memory; element (walker, place
/// in the section) is at walker * elements of the section + place, walkers being `Phase::blocks` times Mapping::points.
struct AcrossPlace {
  int section = 0, statement = 0;
  inductor::SymExpr partial;
};

/// Where one component of a reduction's state is kept between launches: byte offsets in working memory, 8 bytes an
/// element; element (chunk, point) of `partial` is at chunk * points + point.
struct StatePlace {
  inductor::SymExpr partial, final;
};

/// Decisions taken before any code is emitted.
struct Plan {
  inductor::Kernel kernel;      ///< with axes merged and divided
  std::vector<int> outerOrder;  ///< positions in kernel.outer, slowest first: neighbouring points run along the last
  int vectorAxis = -1;          ///< position in kernel.outer of Mapping::vector; the last of outerOrder where inner > 1
  int crossAxis = -1;           ///< the other axis of Mapping::tileFast
  Ragged ragged;                ///< of vectorAxis; Mapping::vector does not divide its extent then
  std::vector<SectionPlan> sections;
  std::vector<Phase> phases;
  std::vector<std::vector<std::vector<StatePlace>>>
      states;                              ///< by section, Reduce statement in order, component; phased only
  std::vector<AcrossPlace> across;         ///< Accumulate statements in order
  std::map<inductor::BufferId, inductor::SymExpr> inWork;  ///< inputs that earlier launches left in working memory: byte offsets
  std::vector<Plan> after;                 ///< kernels launched behind this one, with the same arguments
  bool scratchIsShared = false;            ///< Scratch buffers lie in the block's shared memory, else in working memory
  std::vector<inductor::SymExpr> scratch;  ///< byte offset by position in kernel.buffers (Scratch ones)
  inductor::SymExpr workBytes = 0;         ///< global memory for one launch sequence
  int64_t sharedBytes = 0;                 ///< of Scratch buffers
  int resident = 0;                        ///< LaunchShape::resident
  bool addsVectors = false;                ///< GpuTarget::hasVectorAtomics
  int ahead = 0;                           ///< walking: so many groups of points ahead, rows are fetched into the cache
  int64_t bytesMoved = 0;                  ///< rough, by the extents (dynamic ones guessed)

  bool isPhased() const { return phases.size() > 1; }
  /// For people; it stands above the LLVM IR that a session shows. Plans with different texts are different code.
  std::string str() const;
  inductor::SymExpr points() const;                     ///< product of the outer extents
  inductor::SymExpr vectors(const Mapping& map) const;  ///< points / map.vector
  inductor::SymExpr vectorsAlong(const Mapping& map, int axis) const;  ///< of an outer axis; its extent where that is not vectorAxis
  inductor::SymExpr blocksOver(const Mapping& map) const;  ///< that cover all points
  inductor::SymExpr sectionVectors(int section) const;  ///< inner points / vector; of ragged rows, as many as there may be
  inductor::SymExpr chunks(int section) const;
};

/// Whether sections hand elements on through buffers of their own.
bool hasScratch(const inductor::Kernel& kernel);

/// `aligned`: every buffer may be taken to begin at a multiple of 16 bytes.
Plan makePlan(const inductor::Kernel& kernel, const GpuTarget& target, bool aligned, const LaunchShape& shape = {});

/// makePlan for a kernel of Plan::after: `inWork` as there, and working memory from `workBytes` on.
Plan planBehind(const inductor::Kernel& kernel, const GpuTarget& target, bool aligned, std::map<inductor::BufferId, inductor::SymExpr> inWork,
                const inductor::SymExpr& workBytes);

/// Whether `index`, read along `axis` in vectors of `width` elements that start at multiples of `width`, is consecutive
/// in memory and starts at a multiple of `width`.
bool isVectorAccess(const inductor::SymExpr& index, inductor::Symbol axis, int width,
                    const std::function<bool(inductor::Symbol)>& varies);
/// Bytes that are known to divide the address of the buffer's first element: where not all are aligned, nothing but its own size (an
/// operator's result may be a view).
int64_t alignmentOf(const inductor::KernelBuffer& buffer, bool aligned);

}  // namespace fusebox::codegen::gpu
