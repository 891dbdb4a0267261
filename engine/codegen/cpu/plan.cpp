#include "engine/codegen/cpu/plan.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/codegen/cpu/index_emitter.h"
#include "engine/codegen/cpu/normalise.h"
#include "engine/codegen/cpu/operations.h"
#include "engine/graph/symbol_values.h"
#include "engine/inductor/ir/loop_transform.h"

namespace fusebox::codegen::cpu {
using inductor::Axis;
using inductor::BufferRole;
using inductor::Kernel;
using inductor::KernelBuffer;
using inductor::Op;
using inductor::Section;
using inductor::Statement;
using inductor::SymExpr;
using inductor::Symbol;

Flattened flattened(const std::vector<inductor::Axis>& axes) {
  Flattened all{SymExpr(0), SymExpr(1)};
  for (size_t i = axes.size(); i-- > 0;) {
    all.position += SymExpr(axes[i].symbol) * all.points;
    all.points *= axes[i].extent;
  }
  return all;
}

namespace {

constexpr double kTargetUnitNs = 3000;       // pointwise chunks: long enough to hide a unit's overhead
constexpr int64_t kPhasedElements = 32768;   // below this, one thread is faster than two phases
constexpr int64_t kChunkElements = 16384;    // of a divided reduction
constexpr int64_t kCacheLine = 64;           // bytes
constexpr int64_t kTileLanes = 128;          // points along the vector axis in a tile: lines that stay in the first cache
constexpr int64_t kFewPoints = 64;           // outer points up to which reductions are divided
constexpr RunLengths kRunsOfMeans = {16, 16};  // each step of a running mean and its deviations rounds several times
constexpr double kLeastLength = 1 << 14;     // that loops of unknown extent are cut into runs for, and how many times the one at capture
constexpr double kLengthened = 16;

double guess(const SymExpr& e) { return static_cast<double>(graph::hint(e)); }

SymExpr ceilDiv(const SymExpr& a, int64_t b) { return graph::floorDiv(a + SymExpr(b - 1), SymExpr(b)); }

double pointsOf(const std::vector<Axis>& axes) {
  double n = 1;
  for (const Axis& a : axes) n *= guess(a.extent);
  return n;
}

const KernelBuffer* bufferOf(const Kernel& k, inductor::BufferId id) {
  for (const KernelBuffer& b : k.buffers)
    if (b.id == id) return &b;
  return nullptr;
}

/// Calls fn(index, isStore, buffer) for every access of a section to memory outside the kernel.
template <class Fn>
void forEachAccess(const Kernel& k, const Section& s, Fn&& fn) {
  for (const auto& v : s.values)
    if (v.op == Op::Load && bufferOf(k, v.buffer)->role != BufferRole::Scratch) fn(v.index, false, *bufferOf(k, v.buffer));
  for (const Statement& st : s.body)
    if (st.kind != Statement::Kind::Reduce && bufferOf(k, st.buffer)->role != BufferRole::Scratch)
      fn(st.index, true, *bufferOf(k, st.buffer));
}

/// Whether a store there is one of two to neighbours.
bool isOfPair(const Section& s, const SymExpr& index) {
  for (size_t i = 1; i < s.body.size(); ++i)
    if ((s.body[i - 1].index == index || s.body[i].index == index) && storesPair(s.body[i - 1], s.body[i])) return true;
  return false;
}

/// How well a section's accesses suit lanes along `axis`: 1 for consecutive elements, less for one common element, little for
/// gathers, unless whole tiles of them are turned. Summed over accesses.
double laneScore(const Kernel& k, const Section& s, const Axis& axis, int nativeLanes) {
  double score = 0;
  auto varies = [&](Symbol x) { return x == axis.symbol || s.indirect.count(x) > 0; };
  const bool isOuter = std::none_of(s.axes.begin(), s.axes.end(), [&](const Axis& a) { return a.symbol == axis.symbol; });
  // Lanes across outer points turn what lies along the section's innermost loop. Lanes along the section that lie along outer points in memory
  // take a line of it each, which is gone when the next point would read on.
  auto turns = [&](const SymExpr& index) { return isOuter && !s.axes.empty() && index.strideOf(s.axes.back().symbol) == 1 && guess(s.axes.back().extent) >= kTurnedPoints; };
  auto wastesLines = [&](const SymExpr& index) {
    return !isOuter && std::any_of(k.outer.begin(), k.outer.end(), [&](const Axis& a) { return index.strideOf(a.symbol) == 1 && guess(a.extent) >= nativeLanes; });
  };
  forEachAccess(k, s, [&](const SymExpr& index, bool isStore, const KernelBuffer&) {
    const IndexShape shape = shapeOf(index, &axis.symbol, varies);
    if (shape.isUniform()) score += isStore ? 0 : 0.8;
    else if (shape.isAffine() && shape.stride == SymExpr(1)) score += isStore ? 1.05 : 1;
    else if (const auto stride = shape.stride.maybeConstant(); shape.isAffine() && stride && (isStore ? *stride == 2 && isOfPair(s, index) : isPicked(*stride))) score += 0.6;
    else if (shape.isAffine() && turns(index)) score += 0.5;
    else if (shape.isAffine() && wastesLines(index)) score -= 1;
    else score += 0.12;
  });
  return (score + 0.01) * std::min(1.0, guess(axis.extent) / nativeLanes);
}

/// Bits of the widest values that take part in arithmetic; indices that only address memory do not count, nor does what runs once for a
/// whole loop.
int widestBits(const Kernel& k) {
  int bits = 8;
  const bool loops = std::any_of(k.sections.begin(), k.sections.end(), [](const Section& s) { return !s.axes.empty(); });
  for (const Section& s : k.sections) {
    if (loops && s.axes.empty()) continue;
    for (const auto& v : s.values) {
      if (v.op == Op::Index || v.op == Op::Constant) continue;
      int width = 8 * graph::elementSize(v.type);
      if (graph::isFloatingPoint(v.type)) width = std::max(width, 32);
      bits = std::max(bits, width);
    }
  }
  return bits;
}

double costOfSection(const Section& s) {
  double ns = 0.02;
  for (const auto& v : s.values) ns += costOf(v.op, v.type);
  return ns;
}

/// Lanes of one vector value: two registers, so that chains of dependent operations overlap; four for reductions with little to
/// do, whose accumulators would otherwise wait for one another; one for long bodies, which run out of registers.
int chooseLanes(const Kernel& k, const TargetTraits& target, bool insideSections) {
  size_t values = 0;
  double cost = 0;
  for (const Section& s : k.sections) {
    values = std::max(values, s.values.size());
    cost = std::max(cost, costOfSection(s));
  }
  int registers = values > 48 ? 1 : 2;
  if (insideSections && values <= 10 && cost < 0.6) registers = 4;
  return std::min(64, registers * target.vectorBits / widestBits(k));
}

int fitLanes(int lanes, const SymExpr& extent, const TargetTraits& target) {
  if (!extent.isConstant()) return lanes;
  const auto n = static_cast<uint64_t>(std::max<int64_t>(1, extent.constant()));
  const uint64_t fit = target.maskedMemory ? std::bit_ceil(n) : std::bit_floor(n);
  return static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(lanes), fit));
}

void planSection(const Section& s, SectionPlan& p) {
  const Flattened all = flattened(s.axes);
  p.position = all.position;
  p.points = all.points;
  for (size_t i = 0; i < s.axes.size(); ++i)
    if (static_cast<int>(i) != p.vectorAxis) p.order.push_back(static_cast<int>(i));
  if (p.vectorAxis >= 0) p.order.push_back(p.vectorAxis);
}

/// The section's axis with the best score for lanes.
std::pair<int, double> bestAxis(const Kernel& k, const Section& s, const std::vector<Axis>& axes, int nativeLanes) {
  int best = -1;
  double bestScore = -1;
  for (size_t i = 0; i < axes.size(); ++i) {
    const double score = laneScore(k, s, axes[i], nativeLanes);
    if (score >= bestScore * 0.999) {
      best = static_cast<int>(i);
      bestScore = score;
    }
  }
  return {best, bestScore};
}

void chooseVectorAxis(Plan& plan, const TargetTraits& target) {
  const Kernel& k = plan.kernel;
  const int native = target.vectorBits / widestBits(k);
  double inside = 0;
  std::vector<double> outside(k.outer.size(), 0.0);
  bool anyAxes = false;
  for (size_t i = 0; i < k.sections.size(); ++i) {
    const Section& s = k.sections[i];
    const double weight = s.axes.empty() ? 1 : pointsOf(s.axes);
    for (size_t o = 0; o < k.outer.size(); ++o) outside[o] += weight * laneScore(k, s, k.outer[o], native);
    if (s.axes.empty()) continue;
    anyAxes = true;
    const auto [axis, score] = bestAxis(k, s, s.axes, native);
    plan.sections[i].vectorAxis = axis;
    inside += weight * score;
  }
  int best = -1;
  double bestScore = anyAxes ? inside : -1;
  for (size_t o = 0; o < k.outer.size(); ++o)
    if (outside[o] > bestScore || (best >= 0 && outside[o] >= bestScore * 0.999)) {
      best = static_cast<int>(o);
      bestScore = std::max(bestScore, outside[o]);
    }
  plan.outerVector = best;
  plan.lanes = 1;
  if (best >= 0) {
    plan.lanes = fitLanes(chooseLanes(k, target, false), k.outer[static_cast<size_t>(best)].extent, target);
    for (SectionPlan& p : plan.sections) p.vectorAxis = -1;
  } else if (anyAxes) {
    int lanes = 1;
    const int wanted = chooseLanes(k, target, true);
    for (size_t i = 0; i < k.sections.size(); ++i)
      if (plan.sections[i].vectorAxis >= 0)
        lanes = std::max(lanes, fitLanes(wanted, k.sections[i].axes[static_cast<size_t>(plan.sections[i].vectorAxis)].extent, target));
    plan.lanes = lanes;
  }
}

/// Reductions over many elements with few outer points are divided into chunks.
void choosePhases(Plan& plan) {
  const Kernel& k = plan.kernel;
  const int count = static_cast<int>(k.sections.size());
  plan.phases = {{Phase::Kind::Whole, 0, count}};
  const int64_t points = graph::hint(plan.outerPoints());
  if (points <= 0) return;
  const double units = static_cast<double>(points) / (plan.outerVector >= 0 ? plan.lanes : 1);
  if (units > kFewPoints) return;
  double largest = 0;
  for (const Section& s : k.sections) {
    if (!s.axes.empty()) largest = std::max(largest, pointsOf(s.axes) * static_cast<double>(points));
  }
  if (largest < static_cast<double>(kPhasedElements)) return;
  plan.phases.clear();
  for (int s = 0; s < count;) {
    if (!k.sections[static_cast<size_t>(s)].axes.empty()) {
      plan.phases.push_back({Phase::Kind::Chunk, s, s + 1});
      ++s;
    }
    int last = s;
    while (last < count && k.sections[static_cast<size_t>(last)].axes.empty()) ++last;
    const bool reduces = s > 0 && inductor::hasReduction(k.sections[static_cast<size_t>(s - 1)]);
    if (reduces || last > s) plan.phases.push_back({Phase::Kind::Finish, s, last});
    s = last;
  }
  for (size_t s = 0; s < k.sections.size(); ++s) {
    SectionPlan& p = plan.sections[s];
    if (p.order.empty()) continue;
    double perIteration = plan.outerVector >= 0 ? plan.lanes : 1;
    for (size_t d = 1; d < p.order.size(); ++d) perIteration *= guess(k.sections[s].axes[static_cast<size_t>(p.order[d])].extent);
    auto chunk = static_cast<int64_t>(std::max(1.0, static_cast<double>(kChunkElements) / std::max(1.0, perIteration)));
    if (p.order[0] == p.vectorAxis) chunk = (chunk + plan.lanes - 1) / plan.lanes * plan.lanes;
    p.chunk = SymExpr(chunk);
  }
}

/// Cuts loops into runs where a section adds up more than one accumulator takes in without losing digits.
void chooseRuns(Plan& plan) {
  for (size_t i = 0; i < plan.sections.size(); ++i) {
    const Section& s = plan.kernel.sections[i];
    SectionPlan& p = plan.sections[i];
    p.runs.assign(p.order.size(), {});
    bool adds = false, hasMeans = false;
    for (const Statement& st : s.body) {
      if (st.kind != Statement::Kind::Reduce) continue;
      adds |= addsUpRounding(st.reduce, s.values[static_cast<size_t>(st.inputs[0])].type);
      hasMeans |= st.reduce == inductor::ReduceKind::Welford;
    }
    if (!adds) continue;
    const RunLengths lengths = hasMeans ? kRunsOfMeans : RunLengths();
    double taken = 1;
    for (size_t d = p.order.size(); d-- > 0;) {
      const SymExpr& extent = s.axes[static_cast<size_t>(p.order[d])].extent;
      double length = extent.isConstant() ? static_cast<double>(extent.constant()) : std::max(kLeastLength, kLengthened * guess(extent));
      if (d == 0 && !(p.chunk == SymExpr(0))) length = std::min(length, static_cast<double>(p.chunk.constant()));
      const int64_t step = p.order[d] == p.vectorAxis ? plan.lanes : 1;
      const double iterations = std::ceil(length / static_cast<double>(step));
      p.runs[d] = runSizes(iterations, taken, lengths);
      taken = p.runs[d].empty() ? taken * iterations : std::ceil(iterations / static_cast<double>(p.runs[d].back()));
      for (int64_t& run : p.runs[d]) run *= step;
    }
  }
}

void chooseOuterChunk(Plan& plan) {
  if (plan.outerVector < 0) return;
  double ns = 0;
  bool loops = false;
  for (const Section& s : plan.kernel.sections) {
    ns += costOfSection(plan.segments ? plan.segments->largest() : s) * pointsOf(s.axes);
    loops |= !s.axes.empty();
  }
  double wanted = kTargetUnitNs / ns;
  if (loops) wanted = std::min(wanted, 4.0 * plan.lanes);
  const auto vectors = static_cast<int64_t>(std::clamp(wanted / plan.lanes, 1.0, 512.0));
  plan.outerChunk = plan.lanes * static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(vectors)));
}

/// Access that runs across the vector axis but along another outer axis reads (or writes) a whole cache line for every element.
/// In tiles, the line is used up while it is near.
void chooseTile(Plan& plan) {
  const Kernel& k = plan.kernel;
  if (plan.outerVector < 0) return;
  const Axis& vector = k.outer[static_cast<size_t>(plan.outerVector)];
  for (const Section& s : k.sections)
    if (!s.axes.empty()) return;
  std::vector<int> crossing(k.outer.size(), 0);
  int elementSize = 8;
  for (const Section& s : k.sections)
    forEachAccess(k, s, [&](const SymExpr& index, bool isStore, const KernelBuffer& b) {
      const auto along = graph::symbolicStride(index, vector.symbol);
      if (!along || *along == SymExpr(0) || *along == SymExpr(1) || (!isStore && along->isConstant() && isPicked(along->constant()))) return;
      for (size_t o = 0; o < k.outer.size(); ++o)
        if (static_cast<int>(o) != plan.outerVector && index.strideOf(k.outer[o].symbol) == 1) {
          ++crossing[o];
          elementSize = std::min(elementSize, graph::elementSize(b.dtype));
        }
    });
  const auto most = std::max_element(crossing.begin(), crossing.end());
  if (most == crossing.end() || *most == 0) return;
  plan.tileAxis = static_cast<int>(most - crossing.begin());
  plan.tileSize = kCacheLine / elementSize;
  plan.outerChunk = std::min(plan.outerChunk, std::max<int64_t>(kTileLanes, plan.lanes));
}

void estimate(Plan& plan) {
  const Kernel& k = plan.kernel;
  double ns = 0, bytes = 0;
  const double outer = pointsOf(k.outer);
  for (const Section& s : k.sections) {
    ns += outer * pointsOf(s.axes) * costOfSection(plan.segments ? plan.segments->largest() : s);
    forEachAccess(k, s, [&](const SymExpr& index, bool, const KernelBuffer& b) {
      double n = 1;  // distinct elements: axes that the index does not use touch the same ones again
      for (const Axis& a : k.outer)
        if (index.contains(a.symbol)) n *= guess(a.extent);
      for (const Axis& a : s.axes)
        if (index.contains(a.symbol)) n *= guess(a.extent);
      bytes += n * graph::elementSize(b.dtype);
    });
  }
  double units = 0;
  for (const Phase& p : plan.phases)
    units += guess(plan.unitsOf(p));
  units = std::max(1.0, units);
  plan.bytesPerUnit = static_cast<int64_t>(std::ceil(bytes / units));
  plan.nsPerUnit = std::max(ns, bytes * 0.1) / units + 5;
}

}  // namespace

bool addsUpRounding(inductor::ReduceKind kind, inductor::DType type) {
  return inductor::roundsByOrder(kind, type) && kind != inductor::ReduceKind::Prod;
}

std::vector<int64_t> runSizes(double iterations, double taken, const RunLengths& lengths) {
  std::vector<int64_t> sizes;
  if (iterations * taken <= static_cast<double>(lengths.whole)) return sizes;
  const auto first = static_cast<int64_t>(std::max(1.0, static_cast<double>(lengths.run) / taken));
  for (int64_t size = first; static_cast<double>(size) < std::min(iterations, 0x1p50); size *= lengths.run) sizes.push_back(size);
  return sizes;
}

SymExpr Plan::outerPoints() const {
  SymExpr n(1);
  for (const Axis& a : kernel.outer) n *= a.extent;
  return n;
}

SymExpr Plan::outerUnits() const {
  SymExpr n(1);
  for (size_t i = 0; i < kernel.outer.size(); ++i) {
    const SymExpr& extent = kernel.outer[i].extent;
    if (static_cast<int>(i) == outerVector) n *= ceilDiv(extent, outerChunk);
    else if (static_cast<int>(i) == tileAxis) n *= ceilDiv(extent, tileSize);
    else n *= extent;
  }
  return n;
}

SymExpr Plan::chunksOf(int section) const {
  const SectionPlan& p = sections[static_cast<size_t>(section)];
  if (p.order.empty()) return SymExpr(1);
  const SymExpr& extent = kernel.sections[static_cast<size_t>(section)].axes[static_cast<size_t>(p.order[0])].extent;
  return graph::floorDiv(extent + p.chunk - SymExpr(1), p.chunk);
}

SymExpr Plan::unitsOf(const Phase& phase) const {
  SymExpr n = outerUnits();
  if (phase.kind == Phase::Kind::Chunk) n *= chunksOf(phase.first);
  return n;
}

Plan makePlan(const Kernel& kernel, const TargetTraits& target) {
  Plan plan;
  plan.kernel = normalised(kernel);
  plan.sections.resize(plan.kernel.sections.size());
  chooseVectorAxis(plan, target);
  for (size_t i = 0; i < plan.sections.size(); ++i) planSection(plan.kernel.sections[i], plan.sections[i]);
  plan.segments = segmentsOf(plan.kernel, plan.outerVector, plan.lanes);
  chooseOuterChunk(plan);
  chooseTile(plan);
  choosePhases(plan);
  chooseRuns(plan);
  estimate(plan);
  return plan;
}

}  // namespace fusebox::codegen::cpu
