#include "engine/codegen/gpu/flash/flash_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace fusebox::codegen::gpu {
using inductor::Kernel;
using inductor::Statement;

const inductor::Value& loadBehind(const inductor::Section& section, inductor::ValueId id) {
  const inductor::Value& v = section.values[static_cast<size_t>(id)];
  return v.op == inductor::Op::Cast ? section.values[static_cast<size_t>(v.args[0])] : v;
}

std::string FlashPlan::str() const {
  return fmt::format(
      "attention: {} places of {} x {}, width {}, depth {}\n  a block: {} rows of a place, {} a warp, columns by {}, "
      "{} bytes of shared memory{}{}\n",
      places, rows, columns, width, depth, rowsOfTile(), 16 * rowTiles, columnsOfTile, sharedBytes(),
      queryInRegisters ? ", the query in registers" : "", inGroups ? ", products of a warp group" : "");
}

Result<FlashPlan> makeFlashPlan(const Kernel& kernel, const GpuTarget& target) {
  const inductor::Attention& how = *kernel.attention;
  const auto malformed = [&](const char* what) {
    return fail(ErrorCode::Internal, std::string("malformed attention: ") + what, kernel.name);
  };
  if (target.capability < FlashPlan::kOldest)
    return fail(ErrorCode::Unsupported, "attention kernels need compute capability 8.0", kernel.name);
  if (kernel.sections.size() != 1 || kernel.sections[0].axes.size() != 1 ||
      (kernel.sections[0].body.size() != 3 && kernel.sections[0].body.size() != 4))
    return malformed("its section");
  const inductor::Section& section = kernel.sections[0];
  if (section.body[0].kind != Statement::Kind::Reduce || section.body[1].kind != Statement::Kind::Reduce ||
      section.body[2].kind != Statement::Kind::Store)
    return malformed("its body");
  const size_t inner = static_cast<size_t>(how.sharing) + 1;
  if (kernel.outer.size() < inner) return malformed("its rows");
  if (!kernel.sizeSymbols.empty())
    return fail(ErrorCode::Unsupported, "attention of sizes that are not known when it is compiled", kernel.name);

  FlashPlan plan;
  for (size_t i = 0; i < kernel.outer.size(); ++i)
    (i + inner < kernel.outer.size() ? plan.places : plan.rows) *= kernel.outer[i].extent.constant();
  plan.columns = section.axes[0].extent.constant();
  plan.width = static_cast<int>(how.width.extent.constant());
  plan.depth = static_cast<int>(how.depth.extent.constant());
  const auto typeOf = [&](int statement, int input) {
    return loadBehind(section, section.body[static_cast<size_t>(statement)].inputs[static_cast<size_t>(input)]).type;
  };
  const graph::DType type = typeOf(0, 0);
  plan.isBf16 = type == graph::DType::BFloat16;
  if ((!plan.isBf16 && type != graph::DType::Float16) || typeOf(0, 1) != type || typeOf(1, 1) != type)
    return fail(ErrorCode::Unsupported, "attention of types that tensor cores do not multiply", kernel.name);
  constexpr int kReserved = 1024;  // bytes of shared memory that each block takes besides, at most; two blocks find room
  // Registers of a thread: 32 rows a warp take half as many reads of keys and values from shared memory as 16.
  const int widest = std::max(plan.widthInMemory(), plan.depthInMemory());
  plan.rowTiles = widest <= 128 && plan.rows > 64 ? 2 : 1;
  const auto isOfBlocks = [](int extent) { return extent == FlashPlan::kBlock || extent == 2 * FlashPlan::kBlock; };
  plan.inGroups = target.hasWarpGroups() && plan.rowTiles == 2 && isOfBlocks(plan.width) && isOfBlocks(plan.depth);
  plan.queryInRegisters = !plan.inGroups && plan.rowTiles * plan.widthInMemory() <= 128;
  plan.columnsOfTile = widest <= 128 ? 64 : 32;
  while (plan.columnsOfTile > 16 && 2 * (plan.sharedBytes() + kReserved) > target.sharedMemory()) plan.columnsOfTile /= 2;
  // A block walks over all columns alone: a few rows of many leave most of the device idle, which products do not.
  constexpr int64_t kFewRows = 16, kManyTiles = 32;
  if (plan.rows <= kFewRows && plan.places < target.multiprocessors && plan.columnTiles() > kManyTiles)
    return fail(ErrorCode::Unsupported, "attention of so few rows over so many columns that products are quicker",
                kernel.name);
  if (plan.places * plan.tiles() > std::numeric_limits<int32_t>::max())
    return fail(ErrorCode::Unsupported, "attention of too many blocks", kernel.name);
  return plan;
}

}  // namespace fusebox::codegen::gpu
