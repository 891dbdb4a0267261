#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "engine/codegen/cpu/lanes.h"

namespace fusebox::codegen::cpu {

/// An index expression seen from the vector axis: uniform + stride * v + varying(v, loaded indices).
struct IndexShape {
  inductor::SymExpr uniform;
  inductor::SymExpr stride;   ///< coefficient of the vector axis; free of anything that varies over lanes
  inductor::SymExpr varying;  ///< the rest; differs from lane to lane in no simple way
  bool isUniform() const { return stride == inductor::SymExpr(0) && varying == inductor::SymExpr(0); }
  bool isAffine() const { return varying == inductor::SymExpr(0); }
};

/// Whether lanes so many elements apart are picked from vectors that hold all between them, rather than gathered.
inline bool isPicked(int64_t stride) { return stride == -1 || (stride > 1 && stride <= 4); }

/// Whether two statements of a section store neighbours in memory: those of all lanes go there as vectors of both in turn.
inline bool storesPair(const inductor::Statement& first, const inductor::Statement& second) {
  using Kind = inductor::Statement::Kind;
  return first.kind == Kind::Store && second.kind == Kind::Store && first.buffer == second.buffer && first.mask < 0 && second.mask < 0 &&
         second.index - first.index == inductor::SymExpr(1);
}

/// Sums up terms again. The terms must come from a canonical expression.
inductor::SymExpr termExpr(const inductor::SymExpr::Term& term);
/// Whether any symbol for which `varies` holds occurs in `expr`.
bool dependsOn(const inductor::SymExpr& expr, const std::function<bool(inductor::Symbol)>& varies);
/// Splits `expr`. `vectorAxis` may be null (everything is then uniform or, by `varies`, varying).
IndexShape shapeOf(const inductor::SymExpr& expr, const inductor::Symbol* vectorAxis,
                   const std::function<bool(inductor::Symbol)>& varies);
/// Whether every intermediate result of `expr` fits in 31 bits, by the symbols' ranges.
bool fitsInt32(const inductor::SymExpr& expr);
/// Whether no term of a sum, at any depth, can be negative: with fitsInt32 no step wraps round.
bool isNatural(const inductor::SymExpr& expr);

/// Emits integer arithmetic for expressions at the builder's insertion point.
class IndexEmitter {
 public:
  /// `symbol` gives a symbol's value: i64, a scalar, or a vector of `lanes` where the lanes differ.
  using SymbolValue = std::function<llvm::Value*(inductor::Symbol)>;
  /// `isNatural`: every symbol's value is within its bounds, and isNatural(expr) holds for what is emitted.
  IndexEmitter(const Lanes& lanes, SymbolValue symbol, bool isNatural = false) : lanes_(lanes), symbol_(std::move(symbol)), isNatural_(isNatural) {}

  /// i64; all symbols scalar.
  llvm::Value* scalar(const inductor::SymExpr& expr) const;
  /// Vector of `lanes` integers, i32 if `narrow`, else i64.
  llvm::Value* vector(const inductor::SymExpr& expr, int lanes, bool narrow) const;

 private:
  llvm::Value* atom(const graph::SymAtom& a, int lanes, llvm::Type* type) const;
  llvm::Value* emit(const inductor::SymExpr& expr, int lanes, llvm::Type* type) const;
  llvm::Value* floorDiv(const graph::SymAtom& a, int lanes, llvm::Type* type) const;
  llvm::Value* widen(llvm::Value* v, int lanes) const { return lanes_.splat(v, lanes); }
  const Lanes& lanes_;
  SymbolValue symbol_;
  bool isNatural_;  ///< sums and products cannot wrap round
};

}  // namespace fusebox::codegen::cpu
