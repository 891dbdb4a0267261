#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/inductor/ir/loop_ir.h"
#include "engine/support/result.h"

namespace fusebox::codegen::cpu {

/// A compiled kernel. Carries out work units [begin, end): `buffers` are the base addresses in the order of
/// Kernel::buffers (Scratch ones left out), then, if CompiledKernel::scratchBytes is set, the launch's working memory;
/// `sizes` are the values of Kernel::sizeSymbols.
using KernelFunction = void (*)(void* const* buffers, const int64_t* sizes, int64_t begin, int64_t end);

/// Which instructions generated code may use.
struct TargetFeatures {
  std::string cpu;       ///< LLVM CPU name
  std::string features;  ///< LLVM feature string
  int vectorBits = 0;    ///< 512, 256 or 128
  /// "host" (what this machine has), "avx512", "avx2" or "baseline" (x86-64 with SSE2).
  static Result<TargetFeatures> named(const std::string& name);
};

/// One kernel's code in its best tier so far. The function pointer is replaced when a better tier is ready; callers load it
/// for every launch.
struct CompiledKernel {
  std::atomic<KernelFunction> function{nullptr};
  std::atomic<int> tier{0};
  int64_t bytesPerUnit = 0;      ///< read and written, for the record and for the grain
  double costPerUnit = 0;        ///< rough nanoseconds per work unit, for the grain of parallel loops
  /// Number of work units for these sizes; units of one phase are independent of one another unless `serial`.
  std::function<int64_t(const int64_t* sizes)> units;
  /// Large reductions with few outer points run in phases (partial results of chunks, then their combination in a fixed
  /// order). If set: ascending unit numbers, the last is units(sizes); phase k is [ends[k-1], ends[k]) with ends[-1] = 0. Every
  /// unit of a phase must be finished before the first unit of the next one starts. One call [0, units) is always right.
  /// Not set: a single phase.
  std::function<std::vector<int64_t>(const int64_t* sizes)> phaseEnds;
  /// If set: bytes of working memory for one launch, 64-byte aligned, contents undefined, the same address in every call of
  /// that launch and used by no other launch meanwhile. Passed as one more pointer after the last buffer.
  std::function<int64_t(const int64_t* sizes)> scratchBytes;
  /// If set, the address of an int32_t is passed as one more pointer after all others: a failed Check leaves its Fault there.
  bool checks = false;
  bool serial = false;           ///< must run as one call [0, units)
  int64_t compileNs = 0;         ///< of the first tier
};

/// What launches need to know of a kernel besides its code; expressions are over Kernel::sizeSymbols.
struct LaunchFacts {
  std::vector<inductor::SymExpr> phaseUnits;  ///< work units of each phase
  inductor::SymExpr scratchBytes = 0;         ///< of a kernel with several phases
  int64_t bytesPerUnit = 0;
  double costPerUnit = 0;
  bool checks = false;
};

/// A kernel's code in a form that can be kept, and linked in another process with a processor of the same kind.
struct KernelImage {
  int tier = 0;
  std::string canonical;  ///< inductor::canonicalText() of the kernel
  std::string symbol;     ///< of the function in `object`
  std::string object;     ///< ELF, relocatable
  LaunchFacts facts;
};

/// What a session keeps of a kernel's newest tier.
struct KernelText {
  int tier = 0;
  std::string target;            ///< CPU name and vector width
  std::string llvmIr, assembly;  ///< assembly: of the very bytes that run
  int64_t codeBytes = 0;
  int64_t compileNs = 0;         ///< of this tier
};

/// Of the LLVM that is linked in.
std::string llvmVersion();

/// The JIT: owns the code of every kernel compiled in the process. Thread-safe.
class Jit {
 public:
  struct Options {
    TargetFeatures target;
    bool background = true;     ///< compile the optimised tier on a background thread
    int firstTier = 0;
  };
  static Result<std::shared_ptr<Jit>> create(Options options);
  virtual ~Jit() = default;

  /// Compiles `kernel`, or returns the code of a structurally equal one. Compilation of several kernels can run at once.
  virtual Result<std::shared_ptr<CompiledKernel>> compile(const inductor::Kernel& kernel) = 0;
  /// Compiles many kernels on `threads` threads; results in order.
  virtual std::vector<Result<std::shared_ptr<CompiledKernel>>> compileAll(const std::vector<inductor::Kernel>& kernels,
                                                                          int threads) = 0;
  /// The newest tier of a kernel's code, with what launches ask of it over `sizes`, the size symbols of whichever equal kernel asks. Errors: NotFound.
  virtual Result<KernelImage> image(const CompiledKernel& kernel, const std::vector<inductor::Symbol>& sizes) = 0;
  /// Links what image() gave, for a kernel equal to that one; the code of an equal one that is there already stays. What was not
  /// optimised will be, in the background. Nothing of `image` is checked: it must be this build's own.
  virtual Result<std::shared_ptr<CompiledKernel>> load(const inductor::Kernel& kernel, KernelImage image) = 0;
  /// What code is generated for.
  virtual const TargetFeatures& target() const = 0;
  /// Runs `work` on the background thread, after all that waits there already; at once where there is none. stop() drops it.
  virtual void later(std::function<void()> work) = 0;
  /// LLVM IR and assembly of the kernel's newest tier. The IR is what was compiled if `keepsText` was set then; otherwise it is made
  /// again, which takes as long as compiling did.
  virtual Result<KernelText> text(const CompiledKernel& kernel) = 0;
  /// Assembly text of the kernel's current code.
  Result<std::string> disassemble(const CompiledKernel& kernel) {
    auto made = text(kernel);
    if (!made) return tl::unexpected(made.error());
    return std::move(made->assembly);
  }
  /// Waits until the background tier has nothing left to do.
  virtual void drain() = 0;
  /// Ends the background tier, after the kernel that it is at; kernels keep the code they have. To be called before exit() runs:
  /// LLVM's own statics must outlive it.
  virtual void stop() = 0;
  /// Whether the LLVM IR of what is compiled from now on is kept: set while a session is being recorded.
  std::atomic<bool> keepsText{false};
  /// Called on the background thread when a better tier of a kernel is in place.
  std::function<void(const CompiledKernel&, int64_t compileNs)> onTier;
};

}  // namespace fusebox::codegen::cpu
