#pragma once

#include <llvm/IR/Module.h>

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/codegen/gpu/body_emitter.h"
#include "engine/codegen/gpu/flash/flash_plan.h"
#include "engine/codegen/gpu/flash/tensor_core.h"
#include "engine/codegen/gpu/flash/tile_mask.h"

namespace fusebox::codegen::gpu {

/// Emits the function of an attention kernel into `module`. Its arguments: the buffers' addresses in the order of
/// Kernel::buffers.
class FlashEmitter {
 public:
  FlashEmitter(const inductor::Kernel& kernel, const FlashPlan& plan, llvm::Module& module,
               const cpu::TargetTraits& traits, const std::string& name, bool aligned);
  void emit();

 protected:
  /// Binds nothing yet. `plan`: its types count.
  FlashEmitter(const inductor::Kernel& kernel, const FlashPlan& plan, llvm::Module& module,
               const cpu::TargetTraits& traits);
  using Value = llvm::Value*;
  using Words = std::array<llvm::Value*, 4>;
  /// An operand in memory: the element at `base` + the sum of strides times symbols.
  struct Operand {
    const BufferSlot* slot = nullptr;
    inductor::SymExpr index;
    int64_t fast = 0;       ///< stride along its width or depth
    bool inPieces = false;  ///< whole pieces of 16 bytes lie together, at such an address
  };
  /// One row of a thread, and what it has come to.
  struct Row {
    SymbolValues symbols;
    Value number = nullptr;    ///< i32, below FlashPlan::rows
    Value isInside = nullptr;  ///< null: always
  };

  void makeFunction(const std::string& name);
  void bindArguments(bool aligned);
  std::vector<inductor::Symbol> places() const;
  std::vector<inductor::Symbol> withColumn() const;
  /// The thread, and of `tiles` blocks for each place its place; which of them it is.
  Value bindPlace(int64_t tiles);
  void bindBlock();
  /// Where the symbols of `rows` rows and `columns` columns lie, from the first ones (i32) on.
  TileMask::Range rangeFrom(Value begin, int count, int64_t limit);
  TileMask::Ranges rowRanges(Value firstRow, int rows);
  TileMask::Ranges columnRanges(Value firstColumn, int columns);
  Operand operandOf(inductor::ValueId id, inductor::Symbol fast, std::vector<inductor::Symbol> slow) const;
  Value number(int64_t n) { return ir_.getInt32(static_cast<uint32_t>(n)); }
  Value wide(Value v) { return ir_.CreateZExt(v, ir_.getInt64Ty()); }
  Value real(double v) { return llvm::ConstantFP::get(ir_.getFloatTy(), v); }
  /// The symbols of a row, by its number (i32), which is taken to be inside.
  SymbolValues rowSymbols(Value row);
  /// i64: elements from the buffer's start, `fast` and others that are not in `symbols` being 0.
  Value addressOf(const inductor::SymExpr& index, const SymbolValues& symbols);
  /// Starts copying `count` rows of an operand from row `first` (i32) on to shared memory, zeros for what is beyond
  /// `limit` or the width.
  void copyTile(const Operand& operand, Value first, int64_t limit, int count, int extent, int inMemory, int pitch,
                int place, bool isQuery, Value shift = nullptr);
  /// Of copyTile(), 16 bytes.
  void copyPiece(const Operand& operand, Value first, int64_t limit, int count, int extent, int perRow, int pitch,
                 int place, bool isQuery, Value shift, Value piece);
  Value shared(int place, Value offset);
  std::vector<std::vector<Words>> products(const std::vector<std::vector<Words>>& query, Value stage);
  /// Adds to the sums what the step's 16 columns have; `weights`: as the first operand of a product, of each tile of rows.
  void accumulate(int step, const std::vector<Words>& weights, std::vector<std::vector<Words>>& sums, Value stage);
  static std::vector<Value> asValues(const std::vector<Words>& words);
  static std::vector<Words> asWords(const std::vector<Value>& values);
  std::vector<std::vector<Words>> productsInGroup(Value stage);
  /// Waits for what a warp group makes of the sums.
  void finishGroup(std::vector<std::vector<Words>>& sums);
  std::vector<std::vector<Words>> loadQuery(int step, int steps);
  /// The scores of the thread's elements in the columns from `first` on: what the kernel's section makes of the
  /// products.
  void score(std::vector<std::vector<Words>>& products, Value first);
  /// The first column from `first` on of a tile that has scores, or one beyond all columns.
  Value nextTile(Value first) {
    return nextTile(first, plan_.columnsOfTile, plan_.columns,
                    [&](Value at) { return columnRanges(at, plan_.columnsOfTile); });
  }
  /// The same of what is walked over, `count` of `limit` at a time.
  Value nextTile(Value first, int count, int64_t limit, const std::function<TileMask::Ranges(Value)>& rangesAt);
  /// Looks for the mask in a score, and at what the block owns.
  void findMask(inductor::ValueId score, TileMask::Ranges own);
  void walk();
  /// Whether a score is so far above what its row's are compared with that its weight would leave float32 (1 bit, of all lanes).
  Value isAbove(const std::vector<Value>& tops, const std::vector<Value>& references);
  void storeRows(const std::vector<std::vector<Words>>& sums, const std::vector<Value>& weights,
                 const std::vector<Value>& references);
  void when(Value condition, const std::function<void()>& work);
  Value overQuad(Value v, bool isMaximum);

  const inductor::Kernel& kernel_;
  const inductor::Attention& how_;
  const inductor::Section& section_;
  const FlashPlan& plan_;
  llvm::Module& module_;
  llvm::Function* function_ = nullptr;
  llvm::IRBuilder<> ir_;
  cpu::TargetTraits traits_;
  cpu::Lanes lanes_;
  TensorCore core_;
  Scope scope_;
  Operand query_, key_, value_;
  std::optional<TileMask> mask_;  ///< null: every tile has scores, for all that is known
  TileMask::Ranges ownRanges_;    ///< of what the block owns
  llvm::GlobalVariable* memory_ = nullptr;
  Value sharedBase_ = nullptr;                                ///< i32
  Value thread_ = nullptr, lane_ = nullptr, warp_ = nullptr;  ///< i32
  Value firstRow_ = nullptr;                                  ///< i32: of the block
  std::vector<Row> rows_;                                     ///< of the thread: two for each of FlashPlan::rowTiles
  inductor::Symbol column_;
};

}  // namespace fusebox::codegen::gpu
