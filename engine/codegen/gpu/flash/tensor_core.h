#pragma once

#include <llvm/IR/IRBuilder.h>

#include <array>
#include <string>
#include <vector>

/// Instructions of tensor cores and of copies into shared memory (sm_80), as the text that they are in PTX. Every
/// thread of a warp must get to those of tensor cores. Addresses in shared memory are i32.
namespace fusebox::codegen::gpu {

class TensorCore {
 public:
  /// `isBf16`: of bfloat16, else of float16.
  TensorCore(llvm::IRBuilder<>& ir, bool isBf16) : ir_(ir), isBf16_(isBf16) {}

  /// Four 8x8 matrices of 16 bits: lane i names row i % 8 of matrix i / 8. Transposed: so that what lay along a column
  /// lies along a row.
  std::array<llvm::Value*, 4> loadMatrices(llvm::Value* address, bool transposed);
  /// c + a b of 16x16 times 16x8, in float32. A lane has of c the neighbours (lane % 4) * 2 of rows lane / 4 and,
  /// behind them, lane / 4 + 8.
  std::array<llvm::Value*, 4> multiply(const std::array<llvm::Value*, 4>& a, llvm::Value* b0, llvm::Value* b1,
                                       const std::array<llvm::Value*, 4>& c);
  /// What a warp group multiplies: where an operand lies in shared memory (i32, from a multiple of 1024 on), in blocks of 64
  /// elements a row that are `block` bytes apart, swizzled.
  llvm::Value* descriptor(llvm::Value* address, int block);
  /// c + a b of 64x16 times 16xN by the four warps of a group (PTX ISA, wgmma.mma_async, m64nNk16), of which nobody may
  /// read or write anything before finishGroup(). `c`: N / 2 floats of a lane, those of multiply() for each 8 columns; empty: 0.
  /// `a`: a descriptor, or the words that multiply() takes. `b`: rows of 16 columns each if `transposed`, else columns of them.
  std::vector<llvm::Value*> multiplyInGroup(const std::vector<llvm::Value*>& a, llvm::Value* b, bool transposed,
                                            const std::vector<llvm::Value*>& c, int columns);
  /// Before the first multiplyInGroup() that reads registers or shared memory written since.
  void beginGroup();
  void commitGroup();
  /// Until every product is done; `values`: what they made, which is theirs from here on.
  void finishGroup(std::vector<llvm::Value*>& values);
  /// So that warp groups see what this thread has written to shared memory.
  void showToGroups();
  /// Two floats rounded to 16 bits in an i32, `low` in the lower half.
  llvm::Value* pack(llvm::Value* low, llvm::Value* high);
  /// 2 to the power of x; subnormal results are 0.
  llvm::Value* exp2(llvm::Value* x);
  llvm::Value* log2(llvm::Value* x);
  /// A float or an i32 of the lane whose number differs in bit `offset`.
  llvm::Value* fromLane(llvm::Value* v, int offset);

  /// 16 bytes to shared memory, without waiting: `bytes` (i32, 0 or 16) of them from `source` (i64), the rest zeros.
  void copy(llvm::Value* to, llvm::Value* source, llvm::Value* bytes);
  /// Ends a group of copies.
  void commit();
  /// Until all groups but the last `left` have arrived, for this thread.
  void waitFor(int left);
  void barrier();
  /// 16 bytes to shared memory.
  void store(llvm::Value* to, const std::array<llvm::Value*, 4>& words);

 private:
  llvm::Value* assemble(llvm::Type* result, const std::string& text, const std::string& constraints,
                        const std::vector<llvm::Value*>& operands, bool hasEffects);
  llvm::IRBuilder<>& ir_;
  bool isBf16_;
};

}  // namespace fusebox::codegen::gpu
