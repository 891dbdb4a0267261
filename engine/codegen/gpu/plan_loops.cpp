#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

#include "engine/codegen/cpu/index_emitter.h"
#include "engine/codegen/gpu/access_patterns.h"
#include "engine/codegen/gpu/plan_across.h"
#include "engine/codegen/gpu/plan_axes.h"
#include "engine/codegen/gpu/ragged.h"

/// Kernels with loops: rows and columns, blocks in clusters, chunks.
namespace fusebox::codegen::gpu {
using inductor::Axis;
using inductor::Kernel;
using inductor::KernelBuffer;
using inductor::Section;
using inductor::Statement;
using inductor::Symbol;
using inductor::SymExpr;

namespace {

constexpr int kHeldElements = 96;            // loaded elements a thread may keep in registers
constexpr int kComfortablyHeld = 64;         // without making the threads of a multiprocessor fewer
constexpr int64_t kBlockHeldRow = 32768;     // loaded elements that one block keeps
constexpr int kClusterThreads = 512;         // of each block, two of which share a multiprocessor, so that one loads while the other computes
constexpr int kClusterHeld = 32;             // loaded elements that a thread of these keeps
constexpr int kClusterBlocks = 8;            // that any device with clusters (compute capability 9.0) can launch together
constexpr int64_t kStateSharedBytes = 24 * 1024;

/// SectionPlan::shift: where the row begins within a line, by what is stored, else by what is read.
SymExpr shiftOf(const Kernel& k, const Section& s) {
  constexpr int64_t kLongRow = 2048;
  if (s.axes.size() != 1 || !s.axes[0].extent.isConstant() || s.axes[0].extent.constant() < kLongRow || inductor::hasScan(s) || accumulates(s)) return 0;
  SymExpr start(0);
  forEachAccess(k, s, [&](const SymExpr& index, bool, const KernelBuffer&) {  // stores come last
    if (accessAlong(k, s, index, s.axes[0].symbol) == Access::Consecutive) start = cpu::shapeOf(index, &s.axes[0].symbol, variesWith(k, s, s.axes[0].symbol)).uniform;
  });
  if (!cpu::isNatural(start) || cpu::dependsOn(start, [&](Symbol x) { return s.indirect.count(x) > 0; })) return 0;
  return graph::mod(start, SymExpr(kLineElements));
}

/// Sets how often each section's body is repeated in one iteration.
void chooseUnroll(Plan& plan, const Mapping& map, const LaunchShape& shape) {
  const Kernel& k = plan.kernel;
  const int limit = std::max(1, instanceLimit(k) / map.vector);
  const int held = kHeldElements / distinctLoads(k);
  const bool again = readsAgain(k);
  for (size_t i = 0; i < plan.sections.size(); ++i) {
    SectionPlan& p = plan.sections[i];
    if (k.sections[i].axes.empty()) continue;
    const auto vectors = plan.sectionVectors(static_cast<int>(i)).maybeConstant();
    const int most = p.vector == 1 && map.vector == 1 && !map.pointsFast ? 8 : 4;  // single elements: more of them, for as many bytes under way
    p.unroll = times(std::max(1, std::min(most, limit / p.vector)), shape.work, 1, 16);
    if (inductor::hasScan(k.sections[i]) && map.inner > 1) p.unroll = 1;  // each meeting of the threads has all their elements in order
    if (!vectors || *vectors == 0 || !(p.chunk == SymExpr(0))) continue;
    if (p.vector == 1 && map.vector == 1 && !map.pointsFast && map.inner >= kLineElements) p.shift = shiftOf(k, k.sections[i]);
    const int64_t rounds = (*vectors + (p.shift == SymExpr(0) ? 0 : kLineElements - 1) + map.inner - 1) / map.inner;
    p.unroll = static_cast<int>(std::min<int64_t>(p.unroll, rounds));
    const bool fits = rounds * p.vector * map.vector <= held && rounds * p.vector <= 64;
    const bool worthHolding = shape.work >= 0 || rounds * p.vector <= 16;
    if (accumulates(k.sections[i]) ? rounds * p.vector <= 2 * kAcrossElements
                                    : fits && worthHolding && (again || rounds == p.unroll) && (rounds == 1 || !inductor::hasScan(k.sections[i]))) {
      p.whole = true;
      p.unroll = static_cast<int>(rounds);
    }
  }
}

/// Divides sections over blocks where the points alone leave the device idle. Not where clusters divide them already.
void chooseChunks(Plan& plan, const Mapping& map, const GpuTarget& target, const LaunchShape& shape) {
  constexpr double kWorthIt = 32768;  // inner elements
  constexpr double kSmallestChunk = 4096;
  const Kernel& k = plan.kernel;
  const auto points = plan.points().maybeConstant();  // whether blocks are too few is known of these alone
  if (!points || *points == 0 || reducesWithoutAxes(k) || accumulates(k) || scans(k) || map.cluster > 1 || !plan.inWork.empty()) return;
  const double blocks = static_cast<double>(*points) / (map.vectorsPerBlock() * map.vector);
  if (blocks >= target.multiprocessors) return;
  double largest = 0;
  for (const Section& s : k.sections)
    if (!s.axes.empty()) largest = std::max(largest, pointsOf(s.axes) * map.vector * map.points);
  const bool mayGrow = std::any_of(plan.sections.begin(), plan.sections.end(), [](const SectionPlan& p) { return !p.points.isConstant(); });
  if (largest < kWorthIt && !mayGrow) return;
  for (size_t i = 0; i < plan.sections.size(); ++i) {
    SectionPlan& p = plan.sections[i];
    if (k.sections[i].axes.empty()) continue;
    const double wanted = std::max(1.0, std::exp2(shape.chunks) * 4.0 * target.multiprocessors / std::max(1.0, blocks));
    const double elements = pointsOf(k.sections[i].axes);
    const double chunk = std::max(elements / wanted, kSmallestChunk / (map.vector * map.points));
    const int64_t step = map.inner;  // whole rounds
    p.chunk = SymExpr(std::max<int64_t>(1, (static_cast<int64_t>(chunk / p.vector) + step - 1) / step) * step);
  }
}

size_t stateComponents(const Kernel& k) {
  size_t n = 0;
  for (const Section& s : k.sections)
    for (const Statement& st : s.body)
      if (st.kind == Statement::Kind::Reduce) n += inductor::componentCount(st.reduce);
  return n;
}

Mapping mapColumns(Plan& plan, int fast, double innerElements, const GpuTarget& target, bool aligned, const LaunchShape& shape) {
  const Kernel& k = plan.kernel;
  plan.outerOrder = orderWithLast(k.outer.size(), fast);
  plan.vectorAxis = fast;
  Mapping map;
  map.pointsFast = true;
  map.points = 32;
  map.inner = static_cast<int>(std::bit_ceil(natural(std::clamp(innerElements / 4, 1.0, 16.0))));
  map.inner = times(map.inner, shape.threads, 1, 32);
  if (!plan.inWork.empty()) {  // partial results of few columns, in the cache: many threads for short ways
    map.points = 8;
    map.inner = 64;
  }
  if (scans(k)) map.inner = 1;  // in order, by one thread
  if (map.inner * map.points < kPointThreads) map.points = kPointThreads / map.inner;
  map.vector = vectorWidth(k, all(k), k.outer[static_cast<size_t>(fast)], kVectorBytes, aligned);
  const double points = pointsOf(k.outer);
  while (map.vector > 1 && points / (map.vector * map.points) < 2.0 * target.multiprocessors) map.vector /= 2;
  map.vector = std::min(map.vector, instanceLimit(k));
  auto shared = [&] { return static_cast<int64_t>(stateComponents(k)) * 8 * map.threads() * map.vector; };
  while (shared() > kStateSharedBytes && map.vector > 1) map.vector /= 2;
  while (shared() > kStateSharedBytes && map.inner > 1) map.inner /= 2;
  for (size_t i = 0; i < plan.sections.size(); ++i)
    plan.sections[i].order = orderWithLast(k.sections[i].axes.size(), -1);
  return map;
}

/// Elements of the longest section.
int elementsOfRow(const Plan& plan) {
  double most = 1;
  for (const Section& s : plan.kernel.sections) most = std::max(most, pointsOf(s.axes));
  return static_cast<int>(std::min(most, 1e9));
}

/// Buffers that are read along rows.
int rowLoads(const Kernel& k) {
  std::vector<inductor::BufferId> seen;
  for (const Section& s : k.sections)
    for (const auto& v : s.values) {
      const bool along = v.op == inductor::Op::Load && std::any_of(s.axes.begin(), s.axes.end(), [&](const Axis& a) { return v.index.contains(a.symbol); });
      if (along && std::find(seen.begin(), seen.end(), v.buffer) == seen.end()) seen.push_back(v.buffer);
    }
  return std::max<int>(1, static_cast<int>(seen.size()));
}

/// Threads for the columns of accumulating sections, each with some of them for good.
int acrossThreads(const Plan& plan) {
  int threads = 32;
  for (size_t i = 0; i < plan.sections.size(); ++i) {
    if (!accumulates(plan.kernel.sections[i])) continue;
    const auto vectors = plan.sectionVectors(static_cast<int>(i)).maybeConstant();
    if (!vectors) throw std::runtime_error("accumulation over points in rows of unknown length");
    const int64_t each = std::max(1, kAcrossElements / 4 / plan.sections[i].vector);
    auto wanted = static_cast<int>(std::clamp<int64_t>(static_cast<int64_t>(std::bit_ceil(natural(static_cast<double>(*vectors) / static_cast<double>(each)))), 32, 1024));
    if (*vectors % wanted != 0 && wanted > 32 && *vectors % (wanted / 2) == 0) wanted /= 2;  // nobody idles
    threads = std::max(threads, wanted);
  }
  return threads;
}

/// Blocks to share a row that is read again and is too long for one block's threads to keep: as many as keep all of it.
int clusterFor(const Plan& plan, const GpuTarget& target, const LaunchShape& shape) {
  const Kernel& k = plan.kernel;
  if (!target.hasClusters() || hasScratch(k) || !readsAgain(k) || accumulates(k) || scans(k) || !plan.inWork.empty()) return 1;
  if (std::any_of(plan.sections.begin(), plan.sections.end(), [](const SectionPlan& p) { return !p.points.isConstant(); })) return 1;
  const double row = static_cast<double>(elementsOfRow(plan)) * rowLoads(k);
  if (row <= kBlockHeldRow) return 1;
  const auto blocks = static_cast<int64_t>(std::bit_ceil(natural(std::ceil(row / (kClusterThreads * kClusterHeld)))));
  if (blocks > kClusterBlocks || pointsOf(k.outer) * static_cast<double>(blocks) < target.multiprocessors) return 1;
  return times(static_cast<int>(blocks), shape.chunks, 1, kClusterBlocks);
}

/// Rows that end or begin within a vector, by where they lie in all sections of as many elements.
void chooseRagged(Plan& plan, size_t section, bool aligned) {
  const Kernel& k = plan.kernel;
  const Section& s = k.sections[section];
  if (s.axes.size() != 1 || accumulates(k)) return;
  Section same = s;  // what sections of such rows access, as if it were one
  const Symbol axis = s.axes[0].symbol;
  for (size_t other = 0; other < k.sections.size(); ++other) {
    const Section& o = k.sections[other];
    if (other == section || o.axes.size() != 1 || !(o.axes[0].extent == s.axes[0].extent)) continue;
    const auto isLoaded = [&](Symbol x) { return o.indirect.count(x) > 0; };
    const auto renamed = [&](const SymExpr& e) { return e.substitute([&](Symbol x) { return x == o.axes[0].symbol ? std::optional<SymExpr>(axis) : std::nullopt; }); };
    for (inductor::Value v : o.values)
      if (v.op == inductor::Op::Load && !cpu::dependsOn(v.index, isLoaded)) {
        v.index = renamed(v.index);
        v.mask = -1;
        same.values.push_back(std::move(v));
      }
    for (Statement st : o.body)
      if (st.kind == Statement::Kind::Store && !cpu::dependsOn(st.index, isLoaded)) {
        st.index = renamed(st.index);
        st.value = st.mask = -1;
        same.body.push_back(std::move(st));
      }
  }
  const RaggedChoice rows = raggedVectors(k, {&same}, s.axes[0], kVectorBytes, aligned);
  const int width = std::min(rows.width, instanceLimit(k));
  if (width <= plan.sections[section].vector) return;
  plan.sections[section].vector = width;
  plan.sections[section].ragged = rows.rows;
}

Mapping mapRows(Plan& plan, const GpuTarget& target, bool aligned, const LaunchShape& shape) {
  const Kernel& k = plan.kernel;
  plan.outerOrder = orderWithLast(k.outer.size(), -1);
  Mapping map;
  map.pointsFast = false;
  double vectors = 1;
  for (size_t i = 0; i < plan.sections.size(); ++i) {
    const Section& s = k.sections[i];
    if (s.axes.empty()) continue;
    const int last = inductor::hasScan(s) ? static_cast<int>(s.axes.size()) - 1 : bestInner(k, s).first;
    plan.sections[i].order = orderWithLast(s.axes.size(), last);
    if (!addsSingly(plan, s, s.axes[static_cast<size_t>(last)].symbol)) {
      plan.sections[i].vector =
          std::min(vectorWidth(k, {&s}, s.axes[static_cast<size_t>(last)], kVectorBytes, aligned), instanceLimit(k));
      chooseRagged(plan, i, aligned);
    }
    vectors = std::max(vectors, pointsOf(s.axes) / plan.sections[i].vector);
  }
  const double widest = vectors > 8192 && readsAgain(k) ? 1024 : 512;
  map.inner = static_cast<int>(std::bit_ceil(natural(std::clamp(vectors / 4, 1.0, widest))));
  // What is read again should fit the registers.
  while (readsAgain(k) && vectors <= 8192 && map.inner < 512 && elementsOfRow(plan) / map.inner > kComfortablyHeld / rowLoads(k)) map.inner *= 2;
  if (accumulates(k)) map.inner = acrossThreads(plan);
  map.cluster = clusterFor(plan, target, shape);
  if (map.cluster > 1) map.inner = kClusterThreads;
  map.inner = times(map.inner, shape.threads, map.cluster > 1 ? 128 : 1, 1024) * map.cluster;
  if (map.cluster > 1 && plan.resident == 0) plan.resident = std::max(1, 2 * kClusterThreads / map.threads());
  map.points = std::max(1, kPointThreads / map.inner);
  return map;
}

/// Whether columns are scanned sooner by a block each, whose threads meet in every round, than by a thread each.
bool areScannedByBlocks(const Kernel& k, double elements, const GpuTarget& target) {
  constexpr double kNanosecondsOfThread = 47, kNanosecondsOfRound = 2000, kThreads = 1024;  // an element by one thread, a round of a block; H100
  if (!scans(k)) return false;
  const double waves = std::ceil(pointsOf(k.outer) / (2.0 * target.multiprocessors));
  return waves * std::ceil(elements / kThreads) * kNanosecondsOfRound < elements * kNanosecondsOfThread;
}

}  // namespace

int64_t keptRow(const Kernel& k, const GpuTarget& target) {
  constexpr int64_t kWhereDivided = 8192;
  double points = 1;
  for (const Axis& a : k.outer) points *= guess(a.extent);
  if (points < target.multiprocessors) return kWhereDivided;
  return (target.hasClusters() ? int64_t{kClusterThreads} * kClusterHeld * kClusterBlocks : kBlockHeldRow) / rowLoads(k);
}

Mapping mapLoops(Plan& plan, const GpuTarget& target, bool aligned, const LaunchShape& shape) {
  const Kernel& k = plan.kernel;
  double inside = 0, elements = 1;
  for (const Section& s : k.sections) {
    if (s.axes.empty()) continue;
    elements = std::max(elements, pointsOf(s.axes));
    inside += bestInner(k, s).second;
  }
  const auto [outer, outside] = bestOuter(k);
  const bool columns = outer >= 0 && outside > inside * 1.001 && !accumulates(k) && !areScannedByBlocks(k, elements, target);
  const Mapping map = columns ? mapColumns(plan, outer, elements, target, aligned, shape) : mapRows(plan, target, aligned, shape);
  chooseChunks(plan, map, target, shape);
  chooseUnroll(plan, map, shape);
  return map;
}

}  // namespace fusebox::codegen::gpu
