#include "engine/codegen/gpu/plan_axes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "engine/codegen/cpu/index_emitter.h"
#include "engine/codegen/gpu/plan_across.h"

namespace fusebox::codegen::gpu {
using inductor::Axis;
using inductor::Kernel;
using inductor::KernelBuffer;
using inductor::Section;
using inductor::Statement;
using inductor::Symbol;
using inductor::SymExpr;

namespace {

constexpr double kUnknownExtent = 1024;  // guess for dynamic extents
constexpr int kVectorBytes = 16;         // of one memory access
constexpr int kSectorBytes = 32;         // what one access fetches
constexpr int kPointThreads = 128;
constexpr int kBlocksPerMultiprocessor = 8;  // that keep one busy
constexpr int kHeldElements = 96;            // loaded elements a thread may keep in registers
constexpr int kComfortablyHeld = 64;         // without making the threads of a multiprocessor fewer
constexpr int64_t kStateSharedBytes = 24 * 1024;

uint64_t natural(double v) { return static_cast<uint64_t>(std::max(1.0, v)); }

double pointsOf(const std::vector<Axis>& axes) {
  double n = 1;
  for (const Axis& a : axes) n *= guess(a.extent);
  return n;
}

std::function<bool(Symbol)> variesWith(const Section& s, Symbol axis) {
  return [&s, axis](Symbol x) { return x == axis || s.indirect.count(x) > 0; };
}

enum class Access { Uniform, Consecutive, Other };

Access accessAlong(const Section& s, const SymExpr& index, Symbol axis) {
  const cpu::IndexShape shape = cpu::shapeOf(index, &axis, variesWith(s, axis));
  if (shape.isUniform()) return Access::Uniform;
  return shape.isAffine() && shape.stride == SymExpr(1) ? Access::Consecutive : Access::Other;
}

/// How well a section's accesses suit neighbouring threads along `axis`.
double score(const Kernel& k, const Section& s, const Axis& axis) {
  double sum = 0.01;
  forEachAccess(k, s, [&](const SymExpr& index, bool isStore, const KernelBuffer& b) {
    const double size = graph::elementSize(b.dtype);
    switch (accessAlong(s, index, axis.symbol)) {
      case Access::Uniform:
        sum += isStore ? 0 : 0.5 * size;
        break;
      case Access::Consecutive:
        sum += (isStore ? 1.1 : 1) * size;
        break;
      case Access::Other:
        break;
    }
  });
  return sum * std::min(1.0, guess(axis.extent) / 32);
}

/// Elements of one 16-byte access along `axis`: by the widest type that is read or written so. 1 where there is nothing
/// to gain.
int vectorWidth(const Kernel& k, const std::vector<const Section*>& sections, const Axis& axis, int maxBytes,
                bool aligned) {
  const auto extent = axis.extent.maybeConstant();
  if (!extent || *extent == 0) return 1;
  int widest = 0;
  for (const Section* s : sections)
    forEachAccess(k, *s, [&](const SymExpr& index, bool, const KernelBuffer& b) {
      if (accessAlong(*s, index, axis.symbol) == Access::Consecutive)
        widest = std::max(widest, graph::elementSize(b.dtype));
    });
  if (widest == 0) return 1;
  int width = std::min(maxBytes / widest, 8 * maxBytes / kVectorBytes);
  auto useful = [&] {
    bool any = false;
    for (const Section* s : sections)
      forEachAccess(k, *s, [&](const SymExpr& index, bool, const KernelBuffer& b) {
        const int64_t bytes = std::min<int64_t>(kVectorBytes, int64_t{width} * graph::elementSize(b.dtype));
        any |= alignmentOf(b, aligned) % bytes == 0 &&
               isVectorAccess(index, axis.symbol, width, variesWith(*s, axis.symbol));
      });
    return any;
  };
  while (width > 1 && (*extent % width != 0 || !useful())) width /= 2;
  return std::max(1, width);
}

std::vector<int> orderWithLast(size_t count, int last) {
  std::vector<int> order;
  for (size_t i = 0; i < count; ++i)
    if (static_cast<int>(i) != last) order.push_back(static_cast<int>(i));
  if (last >= 0) order.push_back(last);
  return order;
}

size_t longestBody(const Kernel& k) {
  size_t n = 0;
  for (const Section& s : k.sections) n = std::max(n, s.values.size());
  return n;
}

/// Copies of a body that one thread can hold.
int instanceLimit(const Kernel& k) {
  const size_t values = longestBody(k);
  return values > 160 ? 2 : values > 80 ? 4 : values > 40 ? 8 : 16;
}

/// An outer axis along which some access is consecutive that is scattered along `fast`; -1 if none.
int crossingAxis(const Kernel& k, int fast) {
  std::vector<int64_t> votes(k.outer.size(), 0);
  for (const Section& s : k.sections)
    forEachAccess(k, s, [&](const SymExpr& index, bool, const KernelBuffer& b) {
      if (accessAlong(s, index, k.outer[static_cast<size_t>(fast)].symbol) != Access::Other) return;
      for (size_t o = 0; o < k.outer.size(); ++o)
        if (static_cast<int>(o) != fast && index.strideOf(k.outer[o].symbol) == 1)
          votes[o] += graph::elementSize(b.dtype);
    });
  const auto most = std::max_element(votes.begin(), votes.end());
  return most == votes.end() || *most == 0 ? -1 : static_cast<int>(most - votes.begin());
}

std::vector<const Section*> all(const Kernel& k) {
  std::vector<const Section*> list;
  for (const Section& s : k.sections) list.push_back(&s);
  return list;
}

/// The outer axis that suits neighbouring threads best, and its score over all sections.
std::pair<int, double> bestOuter(const Kernel& k) {
  int best = -1;
  double bestScore = -1;
  for (size_t o = 0; o < k.outer.size(); ++o) {
    double sum = 0;
    for (const Section& s : k.sections) sum += pointsOf(s.axes) * score(k, s, k.outer[o]);
    if (sum >= bestScore * 0.999) {
      best = static_cast<int>(o);
      bestScore = std::max(bestScore, sum);
    }
  }
  return {best, bestScore};
}

/// The section's axis that suits neighbouring threads best.
std::pair<int, double> bestInner(const Kernel& k, const Section& s) {
  int best = -1;
  double bestScore = -1;
  for (size_t i = 0; i < s.axes.size(); ++i) {
    const double value = score(k, s, s.axes[i]);
    if (value >= bestScore * 0.999) {
      best = static_cast<int>(i);
      bestScore = std::max(bestScore, value);
    }
  }
  return {best, bestScore};
}

bool reducesWithoutAxes(const Kernel& k) {
  return std::any_of(k.sections.begin(), k.sections.end(), [](const Section& s) {
    return s.axes.empty() && std::any_of(s.body.begin(), s.body.end(),
                                         [](const Statement& st) { return st.kind == Statement::Kind::Reduce; });
  });
}

bool scans(const Kernel& k) {
  return std::any_of(k.sections.begin(), k.sections.end(), [](const Section& s) { return inductor::hasScan(s); });
}

/// Whether sections with loops read a buffer that an earlier one has read: what stays in registers is then read once.
bool readsAgain(const Kernel& k) {
  std::vector<inductor::BufferId> seen;
  for (const Section& s : k.sections) {
    if (s.axes.empty()) continue;
    const size_t before = seen.size();
    for (const auto& v : s.values) {
      if (v.op != inductor::Op::Load) continue;
      if (std::find(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(before), v.buffer) != seen.begin() + static_cast<std::ptrdiff_t>(before))
        return true;
      seen.push_back(v.buffer);
    }
  }
  return false;
}

bool addsAtomically(const Kernel& k) {
  return std::any_of(k.sections.begin(), k.sections.end(), [](const Section& s) {
    return std::any_of(s.body.begin(), s.body.end(), [](const Statement& st) { return st.kind == Statement::Kind::AtomicAdd; });
  });
}

int distinctLoads(const Kernel& k) {
  std::vector<inductor::BufferId> seen;
  for (const Section& s : k.sections)
    for (const auto& v : s.values)
      if (v.op == inductor::Op::Load && std::find(seen.begin(), seen.end(), v.buffer) == seen.end())
        seen.push_back(v.buffer);
  return std::max<int>(1, static_cast<int>(seen.size()));
}

/// `n` times a power of two, within [least, most].
int times(int n, int power, int least, int most) {
  return std::clamp(power >= 0 ? n << power : n >> -power, least, most);
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
    const int64_t rounds = (*vectors + map.inner - 1) / map.inner;
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

/// Elements of a section's axes; many where that is dynamic, since one block for all of them would be slow.
double elementsOf(const Section& s) {
  constexpr double kMany = 1 << 22;
  const bool dynamic = std::any_of(s.axes.begin(), s.axes.end(), [](const Axis& a) { return !a.extent.isConstant(); });
  return dynamic ? kMany : pointsOf(s.axes);
}

/// Divides sections over blocks where the points alone leave the device idle.
void chooseChunks(Plan& plan, const Mapping& map, const GpuTarget& target, const LaunchShape& shape) {
  constexpr double kWorthIt = 32768;  // inner elements
  constexpr double kSmallestChunk = 4096;
  const Kernel& k = plan.kernel;
  const auto points = plan.points().maybeConstant();
  if (!points || *points == 0 || reducesWithoutAxes(k) || accumulates(k) || scans(k) || !plan.inWork.empty()) return;
  const double blocks = static_cast<double>(*points) / (map.vectorsPerBlock() * map.vector);
  if (blocks >= target.multiprocessors) return;
  double largest = 0;
  for (const Section& s : k.sections)
    if (!s.axes.empty()) largest = std::max(largest, elementsOf(s) * map.vector * map.points);
  if (largest < kWorthIt) return;
  for (size_t i = 0; i < plan.sections.size(); ++i) {
    SectionPlan& p = plan.sections[i];
    if (k.sections[i].axes.empty()) continue;
    const double wanted = std::max(1.0, std::exp2(shape.chunks) * 4.0 * target.multiprocessors / std::max(1.0, blocks));
    const double elements = elementsOf(k.sections[i]);
    const double chunk = std::max(elements / wanted, kSmallestChunk / (map.vector * map.points));
    const int64_t step = map.inner;  // whole rounds
    p.chunk = SymExpr(std::max<int64_t>(1, (static_cast<int64_t>(chunk / p.vector) + step - 1) / step) * step);
  }
}

size_t stateComponents(const Kernel& k) {
  size_t n = 0;
  for (const Section& s : k.sections)
    for (const Statement& st : s.body)
      if (st.kind == Statement::Kind::Reduce) n += componentCount(st.reduce);
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
    const int64_t each = std::max(1, kAcrossElements / 2 / plan.sections[i].vector);
    auto wanted = static_cast<int>(std::clamp<int64_t>(static_cast<int64_t>(std::bit_ceil(natural(static_cast<double>(*vectors) / static_cast<double>(each)))), 32, 1024));
    if (*vectors % wanted != 0 && wanted > 32 && *vectors % (wanted / 2) == 0) wanted /= 2;  // nobody idles
    threads = std::max(threads, wanted);
  }
  return threads;
}

Mapping mapRows(Plan& plan, bool aligned, const LaunchShape& shape) {
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
    plan.sections[i].vector =
        std::min(vectorWidth(k, {&s}, s.axes[static_cast<size_t>(last)], kVectorBytes, aligned), instanceLimit(k));
    vectors = std::max(vectors, pointsOf(s.axes) / plan.sections[i].vector);
  }
  const double widest = vectors > 8192 && readsAgain(k) ? 1024 : 512;
  map.inner = static_cast<int>(std::bit_ceil(natural(std::clamp(vectors / 4, 1.0, widest))));
  // What is read again should fit the registers.
  while (readsAgain(k) && vectors <= 8192 && map.inner < 512 && elementsOfRow(plan) / map.inner > kComfortablyHeld / rowLoads(k)) map.inner *= 2;
  if (accumulates(k)) map.inner = acrossThreads(plan);
  map.inner = times(map.inner, shape.threads, 1, 1024);
  map.points = std::max(1, kPointThreads / map.inner);
  return map;
}

}  // namespace

double guess(const SymExpr& e) { return e.isConstant() ? static_cast<double>(e.constant()) : kUnknownExtent; }

const KernelBuffer& bufferOf(const Kernel& k, inductor::BufferId id) {
  return *std::find_if(k.buffers.begin(), k.buffers.end(), [id](const KernelBuffer& b) { return b.id == id; });
}

namespace {

/// Rectangles over the vector axis and `crossing`; false where single elements would have to be accessed.
bool mapTile(Plan& plan, Mapping& map, int crossing, bool aligned, const LaunchShape& shape) {
  constexpr int kWideBody = 64, kShortBody = 16;  // elements a thread can hold, and of how many values
  const Kernel& k = plan.kernel;
  auto width = [&](int axis) { return vectorWidth(k, all(k), k.outer[static_cast<size_t>(axis)], kVectorBytes, aligned); };
  int side = std::min(width(plan.vectorAxis), width(crossing));
  const int most = longestBody(k) <= kShortBody ? kWideBody : instanceLimit(k);
  while (side * side > most) side /= 2;
  if (side < 2 || shape.work < 0) return false;
  plan.crossAxis = crossing;
  map.vector = map.unroll = side;
  map.points = times(kPointThreads, shape.threads, 64, 512);
  map.tileFast = map.points >= 256 ? 16 : 8;
  return true;
}

}  // namespace

Mapping mapPoints(Plan& plan, const GpuTarget& target, bool aligned, const LaunchShape& shape) {
  const Kernel& k = plan.kernel;
  Mapping map;
  map.points = times(kPointThreads, shape.threads, 32, 512);
  const int fast = bestOuter(k).first;
  plan.outerOrder = orderWithLast(k.outer.size(), fast);
  if (fast < 0) return map;
  plan.vectorAxis = fast;
  const bool hasScratch = std::any_of(k.buffers.begin(), k.buffers.end(),
                                      [](const KernelBuffer& b) { return b.role == inductor::BufferRole::Scratch; });
  if (hasScratch || reducesWithoutAxes(k)) return map;
  const int limit = instanceLimit(k);
  if (addsAtomically(k)) {  // neighbouring threads at neighbouring elements: one memory transaction for a warp
    map.unroll = times(std::min(4, limit), shape.work, 1, limit);
    return map;
  }
  // Transposing access: a rectangle of threads, each with a few elements along both axes. Where that is not to be had, neighbouring
  // threads along one axis, and each thread a whole sector along the other.
  if (const int crossing = crossingAxis(k, fast); crossing >= 0) {
    if (mapTile(plan, map, crossing, aligned, shape)) return map;
    const int width = vectorWidth(k, all(k), k.outer[static_cast<size_t>(crossing)], times(kSectorBytes, shape.work, kVectorBytes, 4 * kSectorBytes), aligned);
    if (width > 1) {
      plan.vectorAxis = crossing;
      map.vector = std::min(width, limit);
      return map;
    }
  }
  map.vector = std::min(limit, vectorWidth(k, all(k), k.outer[static_cast<size_t>(fast)], kVectorBytes, aligned));
  const bool dynamic = !plan.points().isConstant();
  const double waves = dynamic ? 16
                               : pointsOf(k.outer) / map.vector /
                                     (double{kPointThreads} * target.multiprocessors * kBlocksPerMultiprocessor);
  const int most = map.vector == 1 ? 4 : 2;
  if (shape.work < 0) return map;
  if (shape.work > 0) map.unroll = times(1, shape.work, 1, std::max(1, limit / map.vector));
  while (map.unroll < most && map.unroll * 2 * map.vector <= limit && waves >= 2.0 * map.unroll) map.unroll *= 2;
  return map;
}

Mapping mapLoops(Plan& plan, const GpuTarget& target, bool aligned, const LaunchShape& shape) {
  const Kernel& k = plan.kernel;
  double inside = 0, elements = 1;
  for (const Section& s : k.sections) {
    if (s.axes.empty()) continue;
    elements = std::max(elements, pointsOf(s.axes));
    inside += pointsOf(s.axes) * bestInner(k, s).second;
  }
  const auto [outer, outside] = bestOuter(k);
  const bool columns = outer >= 0 && outside > inside * 1.001 && !accumulates(k);
  const Mapping map = columns ? mapColumns(plan, outer, elements, target, aligned, shape) : mapRows(plan, aligned, shape);
  chooseChunks(plan, map, target, shape);
  chooseUnroll(plan, map, shape);
  return map;
}

}  // namespace fusebox::codegen::gpu
