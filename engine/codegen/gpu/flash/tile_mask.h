#pragma once

#include <optional>
#include <unordered_map>

#include "engine/codegen/gpu/body_emitter.h"
#include "engine/codegen/gpu/flash/tensor_core.h"

namespace fusebox::codegen::gpu {

/// Which tiles of an attention kernel have no score but -inf, told from where the tile lies: interval arithmetic over
/// the condition under which the kernel's section makes a score -inf (causal masks, windows, lengths). Of numbers that
/// are read along one side of the tile, as those of documents are, the warps find the least and the greatest.
class TileMask {
 public:
  struct Range {
    llvm::Value *low = nullptr, *high = nullptr;  ///< i64, both among the values
    int count = 0;                                ///< of a symbol's range: not more numbers than this
  };
  using Ranges = std::unordered_map<uint32_t, Range>;  ///< by symbol
  /// `score` is a value of the section; `lane`, i32, of the thread in its warp. All threads of a warp must get to what
  /// is emitted.
  TileMask(const cpu::Lanes& lanes, const Scope& scope, const inductor::Section& section, inductor::ValueId score,
           TensorCore& core, llvm::Value* lane);
  /// Finds out here what will hold for all tiles whose `ranges` are these, on one of their sides.
  void prepare(const Ranges& ranges);
  /// Whether anything can be told at all.
  bool isKnown() const { return condition_ >= 0; }
  /// i1: no score of the tile is but -inf, its symbols lying in `ranges`; others are those of the scope. Null where it
  /// cannot be told.
  llvm::Value* isEmpty(const Ranges& ranges);

 private:
  /// Whether a Bool of the tile can be true and can be false; null: it can.
  struct Truth {
    llvm::Value *canHold = nullptr, *canFail = nullptr;
  };
  std::optional<Range> rangeOf(inductor::ValueId id);
  std::optional<Range> rangeOf(const inductor::SymExpr& index);
  std::optional<Range> rangeOfLoad(inductor::ValueId id);
  /// The tile's symbol that a load steps along; nullopt: several, or what is not known.
  std::optional<std::optional<inductor::Symbol>> sideOf(const inductor::Value& load) const;
  /// Of all lanes.
  llvm::Value* extreme(llvm::Value* v, llvm::Intrinsic::ID which);
  Truth truthOf(inductor::ValueId id);
  Truth compare(inductor::Op op, const Range& a, const Range& b);
  bool isMinusInfinity(inductor::ValueId id) const;
  const inductor::Value& at(inductor::ValueId id) const { return section_.values[static_cast<size_t>(id)]; }
  llvm::Value* both(llvm::Value* a, llvm::Value* b) { return !a ? b : !b ? a : l_.ir.CreateAnd(a, b); }
  llvm::Value* either(llvm::Value* a, llvm::Value* b) { return !a || !b ? nullptr : l_.ir.CreateOr(a, b); }

  const cpu::Lanes& l_;
  const Scope& scope_;
  const inductor::Section& section_;
  TensorCore& core_;
  llvm::Value* lane_;
  const Ranges* ranges_ = nullptr;
  std::unordered_map<inductor::ValueId, Range> prepared_;
  inductor::ValueId condition_ = -1;
  bool emptyWhere_ = false;  ///< what the condition is where scores are -inf
};

}  // namespace fusebox::codegen::gpu
