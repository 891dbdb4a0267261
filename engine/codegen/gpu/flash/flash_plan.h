#pragma once

#include <string>

#include "engine/codegen/gpu/target.h"
#include "engine/inductor/ir/loop_ir.h"
#include "engine/support/result.h"

namespace fusebox::codegen::gpu {

/// How an attention kernel (inductor::Attention) is carried out: a block takes a tile of rows of one place and walks
/// over the columns, a tile at a time, whose keys and values lie in shared memory meanwhile, beside those of the next one.
/// Scores, what they are compared with and their sum, and the result stay in registers.
struct FlashPlan {
  static constexpr int kWarps = 4, kThreads = 32 * kWarps;
  static constexpr int kBlock = 64;  ///< elements of a row that lie together in shared memory, in groups
  static constexpr int kOldest = 80;  ///< compute capability with the instructions that are used

  int64_t places = 1, rows = 1, columns = 1;  ///< extents
  int width = 0, depth = 0;                   ///< extents of a query and of a value
  int rowTiles = 1;                           ///< of 16 rows that a warp has
  int columnsOfTile = 64;
  bool queryInRegisters = false;  ///< all of it, else it is read from shared memory again for every tile
  bool isBf16 = false;
  /// Products are a warp group's: a tile of rows is of 64, of which a warp has every fourth sixteen, and operands lie in
  /// shared memory in blocks of 64 elements a row, whose pieces of 16 bytes change places with the row (swizzled).
  bool inGroups = false;

  int rowsOfTile() const { return 16 * rowTiles * kWarps; }
  int64_t tiles() const { return (rows + rowsOfTile() - 1) / rowsOfTile(); }
  int64_t columnTiles() const { return (columns + columnsOfTile - 1) / columnsOfTile; }
  int widthInMemory() const { return (width + 15) / 16 * 16; }  ///< the products' step; beyond the width lie zeros
  int depthInMemory() const { return (depth + 15) / 16 * 16; }
  /// Bytes from row to row in shared memory: 16 more than the row has, so that eight rows lie in different banks. In groups the
  /// bytes that a row has, in all blocks.
  int widthPitch() const { return 2 * widthInMemory() + (inGroups ? 0 : 16); }
  int depthPitch() const { return 2 * depthInMemory() + (inGroups ? 0 : 16); }
  /// Of the first of two stages.
  int keysAt() const { return rowsOfTile() * widthPitch(); }
  int valuesAt() const { return keysAt() + columnsOfTile * widthPitch(); }
  int stageBytes() const { return columnsOfTile * (widthPitch() + depthPitch()); }  ///< of a tile's keys and values
  int sharedBytes() const { return keysAt() + 2 * stageBytes(); }
  std::string str() const;
};

/// Errors: Unsupported, where there is no such kernel for the device or the types.
Result<FlashPlan> makeFlashPlan(const inductor::Kernel& kernel, const GpuTarget& target);

/// The load behind a value that is one, perhaps converted.
const inductor::Value& loadBehind(const inductor::Section& section, inductor::ValueId id);

}  // namespace fusebox::codegen::gpu
