#include <algorithm>

#include "engine/codegen/gpu/access_patterns.h"
#include "engine/codegen/gpu/plan_axes.h"
#include "engine/codegen/gpu/ragged.h"

/// Kernels without loops of their own.
namespace fusebox::codegen::gpu {
using inductor::Axis;
using inductor::Kernel;
using inductor::KernelBuffer;
using inductor::Section;
using inductor::Statement;
using inductor::Symbol;
using inductor::SymExpr;

namespace {

constexpr int kSectorBytes = 32;              // what one access fetches
constexpr int kBlocksPerMultiprocessor = 8;   // that keep one busy

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
  if (hasScratch(k) || reducesWithoutAxes(k)) return map;
  const int limit = instanceLimit(k);
  if (addsAtomically(k)) {
    // One memory transaction for a warp: neighbouring threads at neighbouring elements, or at neighbouring vectors.
    const Axis& axis = k.outer[static_cast<size_t>(fast)];
    const bool singly = std::any_of(k.sections.begin(), k.sections.end(), [&](const Section& s) { return addsSingly(plan, s, axis.symbol); });
    if (!singly) map.vector = std::min(limit, vectorWidth(k, all(k), axis, kVectorBytes, aligned));
    const int most = std::max(1, limit / map.vector);
    map.unroll = times(std::min(map.vector > 1 ? 2 : 4, most), shape.work, 1, most);
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
  const Axis& axis = k.outer[static_cast<size_t>(fast)];
  map.vector = std::min(limit, vectorWidth(k, all(k), axis, kVectorBytes, aligned));
  if (const RaggedChoice rows = raggedVectors(k, all(k), axis, kVectorBytes, aligned); std::min(limit, rows.width) > map.vector) {
    map.vector = std::min(limit, rows.width);
    plan.ragged = rows.rows;
  }
  const double waves = pointsOf(k.outer) / map.vector / (double{kPointThreads} * target.multiprocessors * kBlocksPerMultiprocessor);
  const int most = map.vector == 1 ? 4 : 2;
  if (shape.work < 0) return map;
  if (shape.work > 0) map.unroll = times(1, shape.work, 1, std::max(1, limit / map.vector));
  while (map.unroll < most && map.unroll * 2 * map.vector <= limit && waves >= 2.0 * map.unroll) map.unroll *= 2;
  return map;
}

}  // namespace fusebox::codegen::gpu
