#include "engine/codegen/gpu/flash/gradient_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace fusebox::codegen::gpu {
using inductor::Kernel;
using inductor::Statement;

std::string GradientPlan::str() const {
  return fmt::format(
      "gradients of attention: {} places of {} x {}, width {}, depth {}\n  a block: {} {} of a place, {} a warp, the "
      "others by {}, "
      "{} bytes of shared memory\n",
      shape.places, shape.rows, shape.columns, shape.width, shape.depth, ownOfTile(), ownsColumns ? "columns" : "rows",
      16 * ownTiles, othersOfTile, sharedBytes());
}

Result<GradientPlan> makeGradientPlan(const Kernel& kernel, const GpuTarget& target, bool ownsColumns) {
  const inductor::Attention& how = *kernel.attention;
  const auto malformed = [&](const char* what) {
    return fail(ErrorCode::Internal, std::string("malformed gradients of attention: ") + what, kernel.name);
  };
  if (target.capability < FlashPlan::kOldest)
    return fail(ErrorCode::Unsupported, "attention kernels need compute capability 8.0", kernel.name);
  if (kernel.sections.size() != 1 || kernel.sections[0].axes.size() != 1 || kernel.sections[0].body.size() < 3)
    return malformed("its section");
  const inductor::Section& section = kernel.sections[0];
  for (size_t i = 0; i < section.body.size(); ++i)
    if (section.body[i].kind != (i < 2 ? Statement::Kind::Reduce : Statement::Kind::Store))
      return malformed("its body");
  const size_t inner = static_cast<size_t>(how.sharing) + 1;
  if (kernel.outer.size() < inner) return malformed("its rows");
  if (!kernel.sizeSymbols.empty())
    return fail(ErrorCode::Unsupported, "attention of sizes that are not known when it is compiled", kernel.name);

  GradientPlan plan;
  plan.ownsColumns = ownsColumns;
  FlashPlan& shape = plan.shape;
  for (size_t i = 0; i < kernel.outer.size(); ++i)
    (i + inner < kernel.outer.size() ? shape.places : shape.rows) *= kernel.outer[i].extent.constant();
  shape.columns = section.axes[0].extent.constant();
  shape.width = static_cast<int>(how.width.extent.constant());
  shape.depth = static_cast<int>(how.depth.extent.constant());
  const auto typeOf = [&](size_t statement, size_t input) {
    return loadBehind(section, section.body[statement].inputs[input]).type;
  };
  const graph::DType type = typeOf(0, 0);
  shape.isBf16 = type == graph::DType::BFloat16;
  if ((!shape.isBf16 && type != graph::DType::Float16) || typeOf(0, 1) != type || typeOf(1, 0) != type ||
      typeOf(1, 1) != type)
    return fail(ErrorCode::Unsupported, "attention of types that tensor cores do not multiply", kernel.name);
  // Registers of a thread: what is summed, and the scores and their gradients of a tile.
  const int widest = std::max(shape.widthInMemory(), shape.depthInMemory());
  if (widest > 128)
    return fail(ErrorCode::Unsupported, "gradients of attention whose heads are wider than 128", kernel.name);
  plan.ownTiles = widest <= 64 && plan.own() > 64 ? 2 : 1;
  plan.othersOfTile = plan.ownTiles == 2 || widest > 64 ? 32 : 64;
  if (shape.places * plan.tiles() > std::numeric_limits<int32_t>::max())
    return fail(ErrorCode::Unsupported, "attention of too many blocks", kernel.name);
  return plan;
}

Result<void> checkAttention(const Kernel& kernel, const GpuTarget& target) {
  if (!kernel.attention->isGradient()) {
    if (auto plan = makeFlashPlan(kernel, target); !plan) return tl::unexpected(plan.error());
    return {};
  }
  for (const bool ownsColumns : {false, true})
    if (auto plan = makeGradientPlan(kernel, target, ownsColumns); !plan) return tl::unexpected(plan.error());
  return {};
}

}  // namespace fusebox::codegen::gpu
