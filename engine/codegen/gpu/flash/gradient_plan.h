#pragma once

#include <string>

#include "engine/codegen/gpu/flash/flash_plan.h"

namespace fusebox::codegen::gpu {

/// How one launch of a kernel of attention's gradients is carried out: a block owns a tile of rows (of which it gives
/// the query's gradient) or of columns (the key's and the value's) and walks over the others, whose operands lie in
/// shared memory meanwhile, two tiles at a time. Scores are computed again; sums stay in registers and are added up in
/// one order.
struct GradientPlan {
  static constexpr int kWarps = FlashPlan::kWarps, kThreads = FlashPlan::kThreads;

  FlashPlan shape;  ///< places, rows, columns, width, depth and types
  bool ownsColumns = false;
  int ownTiles = 1;  ///< of 16 rows or columns that a warp has
  int othersOfTile = 64;

  int ownOfTile() const { return 16 * ownTiles * kWarps; }
  int64_t own() const { return ownsColumns ? shape.columns : shape.rows; }
  int64_t others() const { return ownsColumns ? shape.rows : shape.columns; }
  int64_t tiles() const { return (own() + ownOfTile() - 1) / ownOfTile(); }
  /// Where operands lie in shared memory: of the width, then of the depth; own ones, then two tiles of others.
  int ownDepthAt() const { return ownOfTile() * shape.widthPitch(); }
  int othersAt() const { return ownDepthAt() + ownOfTile() * shape.depthPitch(); }
  int othersDepthAt() const { return othersAt() + othersOfTile * shape.widthPitch(); }
  int stageBytes() const { return othersOfTile * (shape.widthPitch() + shape.depthPitch()); }
  int sharedBytes() const { return othersAt() + 2 * stageBytes(); }
  std::string str() const;
};

/// Errors: Unsupported, where there is no such kernel for the device or the types.
Result<GradientPlan> makeGradientPlan(const inductor::Kernel& kernel, const GpuTarget& target, bool ownsColumns);

/// Whether the device has code for an attention kernel, or for one of its gradients.
Result<void> checkAttention(const inductor::Kernel& kernel, const GpuTarget& target);

}  // namespace fusebox::codegen::gpu
