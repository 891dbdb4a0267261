#include "engine/codegen/gpu/plan.h"

#include <algorithm>
#include <bit>

#include "engine/codegen/cpu/index_emitter.h"
#include "engine/codegen/cpu/normalise.h"
#include "engine/codegen/cpu/plan.h"
#include "engine/codegen/gpu/online_softmax.h"
#include "engine/codegen/gpu/plan_across.h"
#include "engine/codegen/gpu/plan_axes.h"
#include "engine/codegen/gpu/ragged.h"

namespace fusebox::codegen::gpu {
using inductor::Axis;
using inductor::BufferRole;
using inductor::Kernel;
using inductor::KernelBuffer;
using inductor::ReduceKind;
using inductor::Section;
using inductor::Statement;
using inductor::Symbol;
using inductor::SymExpr;

namespace {

constexpr int64_t kSharedScratch = 20 * 1024;  // bytes of Scratch buffers in shared memory

/// Launches of a kernel whose points are too few to fill the device: chunks of each section with axes, then what
/// follows it.
void addPhases(Plan& plan, const Mapping& chunkMap) {
  const int count = static_cast<int>(plan.kernel.sections.size());
  for (int s = 0; s < count;) {
    if (!plan.kernel.sections[static_cast<size_t>(s)].axes.empty()) {
      plan.phases.push_back({Phase::Kind::Chunk, s, s + 1, chunkMap, 1});
      ++s;
    }
    int last = s;
    while (last < count && plan.kernel.sections[static_cast<size_t>(last)].axes.empty()) ++last;
    const bool reduces = s > 0 && inductor::hasReduction(plan.kernel.sections[static_cast<size_t>(s - 1)]);
    if (reduces || last > s) plan.phases.push_back({Phase::Kind::Finish, s, last, {}, 1});
    s = last;
  }
}

/// Threads for combining `chunks` partial results of each point.
Mapping finishMapping(const Plan& plan, int section) {
  constexpr int kThreads = 128;
  constexpr int64_t kManyPoints = 4096;
  Mapping map;
  map.pointsFast = false;
  const auto points = plan.points().maybeConstant();
  const auto chunks = section >= 0 ? plan.chunks(section).maybeConstant() : std::optional<int64_t>(1);
  if (!points || *points < kManyPoints) {
    const int64_t wanted = chunks ? *chunks : kThreads;
    map.inner = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::clamp<int64_t>(wanted, 1, kThreads))));
  }
  map.points = kThreads / map.inner;
  return map;
}

void placeStates(Plan& plan) {
  const SymExpr points = plan.points();
  auto place = [&](const SymExpr& bytes) {
    const SymExpr at = plan.workBytes;
    plan.workBytes += wholeLines(bytes);
    return at;
  };
  for (size_t s = 0; s < plan.kernel.sections.size(); ++s) {
    auto& reductions = plan.states.emplace_back();
    for (const Statement& st : plan.kernel.sections[s].body) {
      if (st.kind != Statement::Kind::Reduce) continue;
      auto& components = reductions.emplace_back();
      for (size_t c = 0; c < inductor::componentCount(st.reduce); ++c) {
        const SymExpr bytes = points * SymExpr(kStateBytes);
        const SymExpr partial = place(bytes * plan.chunks(static_cast<int>(s)));
        components.push_back({partial, place(bytes)});
      }
    }
  }
}

void placeScratch(Plan& plan) {
  SymExpr perPoint(0);
  for (const KernelBuffer& b : plan.kernel.buffers)
    if (b.role == BufferRole::Scratch) perPoint += b.numel * SymExpr(graph::elementSize(b.dtype)) + SymExpr(16);
  const Mapping& map = plan.phases.front().map;
  const auto known = perPoint.maybeConstant();
  plan.scratchIsShared = !plan.isPhased() && known && *known * map.vectorsPerBlock() * map.vector <= kSharedScratch;
  for (const KernelBuffer& b : plan.kernel.buffers) {
    if (b.role != BufferRole::Scratch) {
      plan.scratch.emplace_back(0);
      continue;
    }
    const SymExpr bytes = b.numel * SymExpr(graph::elementSize(b.dtype));
    if (plan.scratchIsShared) {
      plan.scratch.emplace_back(plan.sharedBytes);
      plan.sharedBytes += (bytes.constant() * map.vectorsPerBlock() * map.vector + 15) / 16 * 16;
    } else {
      plan.scratch.push_back(plan.workBytes);
      plan.workBytes += wholeLines(bytes * plan.points());
    }
  }
}

void estimate(Plan& plan) {
  double bytes = 0;
  for (const Section& s : plan.kernel.sections)
    forEachAccess(plan.kernel, s, [&](const SymExpr& index, bool, const KernelBuffer& b) {
      double n = 1;  // distinct elements: axes that the index does not use touch the same ones again
      for (const std::vector<Axis>* axes : {&std::as_const(plan.kernel.outer), &s.axes})
        for (const Axis& a : *axes)
          if (index.contains(a.symbol)) n *= guess(a.extent);
      bytes += n * graph::elementSize(b.dtype);
    });
  plan.bytesMoved = static_cast<int64_t>(bytes);
}

}  // namespace

SymExpr ceilDiv(const SymExpr& a, const SymExpr& b) { return graph::floorDiv(a + b - SymExpr(1), b); }

SymExpr wholeLines(const SymExpr& bytes) { return ceilDiv(bytes, SymExpr(256)) * SymExpr(256); }

bool hasScratch(const Kernel& kernel) {
  return std::any_of(kernel.buffers.begin(), kernel.buffers.end(), [](const KernelBuffer& b) { return b.role == BufferRole::Scratch; });
}

SymExpr Plan::points() const {
  SymExpr n(1);
  for (const Axis& a : kernel.outer) n *= a.extent;
  return n;
}

SymExpr Plan::vectorsAlong(const Mapping& map, int axis) const {
  const SymExpr& extent = kernel.outer[static_cast<size_t>(axis)].extent;
  if (axis != vectorAxis) return extent;
  return ragged.on ? raggedCount(extent, map.vector, ragged) : graph::floorDiv(extent, SymExpr(map.vector));
}

SymExpr Plan::vectors(const Mapping& map) const {
  SymExpr n(1);
  for (size_t i = 0; i < kernel.outer.size(); ++i) n *= vectorsAlong(map, static_cast<int>(i));
  return n;
}

SymExpr Plan::blocksOver(const Mapping& map) const {
  if (map.tileFast == 0) return ceilDiv(vectors(map), SymExpr(map.vectorsPerBlock()));
  SymExpr blocks(1);
  for (size_t i = 0; i < kernel.outer.size(); ++i) {
    const int axis = static_cast<int>(i);
    const int side = axis == vectorAxis ? map.tileFast * map.vector : axis == crossAxis ? map.points / map.tileFast * map.unroll : 1;
    blocks *= ceilDiv(kernel.outer[i].extent, SymExpr(side));
  }
  return blocks;
}

SymExpr Plan::sectionVectors(int section) const {
  const SectionPlan& p = sections[static_cast<size_t>(section)];
  return p.ragged.on ? raggedCount(p.points, p.vector, p.ragged) : graph::floorDiv(p.points, SymExpr(p.vector));
}

SymExpr Plan::chunks(int section) const {
  const SectionPlan& p = sections[static_cast<size_t>(section)];
  return p.chunk == SymExpr(0) ? SymExpr(1) : ceilDiv(sectionVectors(section), p.chunk);
}

bool isVectorAccess(const SymExpr& index, Symbol axis, int width, const std::function<bool(Symbol)>& varies) {
  const cpu::IndexShape shape = cpu::shapeOf(index, &axis, varies);
  if (!shape.isAffine() || !(shape.stride == SymExpr(1))) return false;
  if (shape.uniform.isConstant()) return shape.uniform.constant() % width == 0;
  for (const auto& term : shape.uniform.terms())
    if (term.coefficient % width != 0) return false;
  return true;
}

int64_t alignmentOf(const KernelBuffer& buffer, bool isAligned) {
  return isAligned ? 16 : graph::elementSize(buffer.dtype);
}

namespace {

Plan planFrom(Plan plan, const Kernel& kernel, const GpuTarget& target, bool isAligned, const LaunchShape& shape) {
  plan.resident = shape.resident;
  plan.addsVectors = target.hasVectorAtomics();
  plan.kernel = cpu::normalised(kernel);
  plan.kernel = withOnlineSoftmax(std::move(plan.kernel), keptRow(plan.kernel, target));
  const Kernel& k = plan.kernel;
  plan.sections.resize(k.sections.size());
  for (size_t i = 0; i < k.sections.size(); ++i) {
    const cpu::Flattened all = cpu::flattened(k.sections[i].axes);
    plan.sections[i].position = all.position;
    plan.sections[i].points = all.points;
  }
  const bool loops =
      std::any_of(k.sections.begin(), k.sections.end(), [](const Section& s) { return !s.axes.empty(); });
  const Mapping map = loops ? mapLoops(plan, target, isAligned, shape) : mapPoints(plan, target, isAligned, shape);
  const bool divided = std::any_of(plan.sections.begin(), plan.sections.end(),
                                   [](const SectionPlan& p) { return !(p.chunk == SymExpr(0)); });
  if (divided) {
    addPhases(plan, map);
    placeStates(plan);
  } else {
    plan.phases.push_back({Phase::Kind::Whole, 0, static_cast<int>(k.sections.size()), map, 1});
  }
  for (Phase& phase : plan.phases) {
    if (phase.kind == Phase::Kind::Finish) phase.map = finishMapping(plan, phase.first - 1);
    phase.blocks = plan.blocksOver(phase.map);
    if (phase.kind == Phase::Kind::Chunk) phase.blocks *= plan.chunks(phase.first);
    phase.blocks *= SymExpr(phase.map.cluster);
  }
  placeScratch(plan);
  estimate(plan);
  planAcross(plan, target, isAligned, shape);
  return plan;
}

}  // namespace

Plan makePlan(const Kernel& kernel, const GpuTarget& target, bool isAligned, const LaunchShape& shape) {
  return planFrom({}, kernel, target, isAligned, shape);
}

Plan planBehind(const Kernel& kernel, const GpuTarget& target, bool isAligned, std::map<inductor::BufferId, SymExpr> inWork, const SymExpr& workBytes) {
  Plan plan;
  plan.inWork = std::move(inWork);
  plan.workBytes = workBytes;
  return planFrom(std::move(plan), kernel, target, isAligned, {});
}

}  // namespace fusebox::codegen::gpu
