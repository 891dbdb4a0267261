#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/codegen/gpu/launch_shape.h"
#include "engine/inductor/ir/loop_ir.h"
#include "engine/support/result.h"

/// Kernels for NVIDIA GPUs as PTX text. Needs neither a GPU nor CUDA.
namespace fusebox::codegen::gpu {

struct GpuTarget;

/// A value that depends on the launch's sizes, in the order of Kernel::sizeSymbols.
struct SizeFunction {
  std::optional<inductor::SymExpr> expression;  ///< none: the function is empty
  std::vector<inductor::Symbol> symbols;        ///< those of the sizes, in order

  explicit operator bool() const { return expression.has_value(); }
  int64_t operator()(const int64_t* sizes) const;
};

/// One kernel function. Arguments, by value: the buffers' addresses in the order of Kernel::buffers (Scratch ones left
/// out), the address of the working memory where the kernel has some, the sizes as int64.
struct PtxLaunch {
  std::string entry;
  int threads = 0;      ///< of a block, in one dimension
  SizeFunction blocks;  ///< of the grid, in one dimension; nothing is to be launched where it is 0
  int sharedBytes = 0;  ///< of shared memory beyond what the code declares itself
};

struct PtxKernel {
  std::string text, llvmIr;         ///< llvmIr only if asked for
  std::string architecture;         ///< "sm_90"
  std::vector<PtxLaunch> launches;  ///< one after another on one stream
  bool isBatch = false;             ///< one launch, whose only argument is a BatchTable
  SizeFunction workBytes;  ///< working memory for these launches, 256-byte aligned, contents undefined; empty: none
  std::vector<int64_t> least, most;  ///< sizes that the code is for (narrow.h); empty: any
  int64_t bytesMoved = 0;  ///< rough estimate for one launch
  int64_t compileNs = 0;
};

/// Whether the device has code for `op` on values of `type`. Bounds are those of cpu::mathUlp; where these functions
/// step in, the error is at most 2 units of the last place: sin, cos and tan of large arguments, hypot of doubles (fmod
/// is exact).
bool hasDeviceCode(inductor::Op op, inductor::DType type);

/// Bound of the operation's error on the device, as cpu::mathUlp: one more for floats where the device's own exponential takes part.
double deviceUlp(inductor::Op op, inductor::DType type);

/// Writes `kernel` for `target`. `aligned`: the code may rely on every buffer beginning at a multiple of 16 bytes, else only
/// at a multiple of its elements' size. `keepIr`: the LLVM IR is kept, and `.loc 1 N 0` stands before what carries out line N of
/// inductor::Kernel::str(). `isWide`: for sizes of any number, at the cost of counting in 64 bits where sizes are symbolic; unaligned code always
/// is. Errors: Unsupported (an operation or type without code), Internal (a malformed
/// kernel).
Result<PtxKernel> compilePtx(inductor::Kernel kernel, const GpuTarget& target, bool aligned, bool keepIr,
                             const LaunchShape& shape = {}, bool isWide = false);

}  // namespace fusebox::codegen::gpu
