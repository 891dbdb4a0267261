#pragma once

#include <llvm/IR/IRBuilder.h>

#include <string>
#include <vector>

#include "engine/codegen/cpu/target.h"

namespace fusebox::codegen::cpu {

/// How values are kept in registers. bfloat16 and float16 values are carried as float (always exactly representable in their
/// own type), Bool as i1; everything else as itself. A value is a scalar or a fixed vector of `lanes` elements; every
/// function takes its number of lanes from its operands.
class Lanes {
 public:
  Lanes(llvm::IRBuilder<>& builder, const TargetTraits& target) : ir(builder), target(target) {}

  llvm::IRBuilder<>& ir;
  const TargetTraits& target;

  llvm::Type* carrier(inductor::DType type) const;  ///< scalar type in registers
  llvm::Type* storage(inductor::DType type) const;  ///< scalar type in memory (bf16 and f16: i16, Bool: i8)
  static llvm::Type* widened(llvm::Type* scalar, int lanes);
  static int lanesOf(const llvm::Value* v);
  llvm::Type* sameLanes(llvm::Type* scalar, const llvm::Value* like) const { return widened(scalar, lanesOf(like)); }

  llvm::Value* splat(llvm::Value* scalar, int lanes) const;
  llvm::Value* iota(llvm::Type* integer, int lanes) const;
  llvm::Value* fromStorage(llvm::Value* stored, inductor::DType type) const;
  llvm::Value* toStorage(llvm::Value* value, inductor::DType type) const;
  /// Rounds a float to the nearest number of bfloat16 or float16 (ties to even, NaN stays NaN); others unchanged.
  llvm::Value* roundTo(llvm::Value* value, inductor::DType type) const;
  /// Constant::imm and masked Load's imm as a value with `lanes` lanes.
  llvm::Value* immediate(inductor::DType type, int64_t imm, int lanes) const;

  llvm::Value* real(llvm::Value* like, double v) const;   ///< floating constant of the type of `like`
  llvm::Value* integer(llvm::Value* like, int64_t v) const;
  /// Integers of the same width and lanes as the floating `v`.
  llvm::Value* bits(llvm::Value* v) const;
  llvm::Value* asFloat(llvm::Value* bits, llvm::Type* type) const { return ir.CreateBitCast(bits, type); }
  /// a*b + c, fused where the target has FMA.
  llvm::Value* fma(llvm::Value* a, llvm::Value* b, llvm::Value* c) const;
  llvm::Value* unary(llvm::Intrinsic::ID id, llvm::Value* a) const { return ir.CreateUnaryIntrinsic(id, a); }
  llvm::Value* abs(llvm::Value* a) const { return unary(llvm::Intrinsic::fabs, a); }
  /// Calls `void symbol(out, a, b, n)` on all lanes (arrays on the stack); see batch_math.h. On a GPU `T symbol(a, b)`.
  llvm::Value* callBatch(const std::string& symbol, llvm::ArrayRef<llvm::Value*> args) const;
  /// True in an i1 if any lane is true.
  llvm::Value* any(llvm::Value* mask) const;
  /// A stack slot in the function's entry block.
  llvm::AllocaInst* slot(llvm::Type* type, const char* name, llvm::Align align = llvm::Align(64)) const;

 private:
  mutable std::vector<std::pair<std::pair<llvm::Type*, int>, llvm::AllocaInst*>> batchSlots_;
  llvm::AllocaInst* batchSlot(llvm::Type* type, int number) const;
};

}  // namespace fusebox::codegen::cpu
