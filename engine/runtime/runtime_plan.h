#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include "engine/codegen/cpu/jit.h"
#include "engine/inductor/ir/program.h"
#include "engine/runtime/extern_call.h"
#include "engine/runtime/gpu/gpu_kernel.h"

namespace fusebox::runtime {

/// A buffer's metadata with everything constant worked out.
struct BufferPlan {
  inductor::ProgramBuffer::Kind kind = inductor::ProgramBuffer::Kind::Owned;
  int32_t index = -1;
  inductor::BufferId base = -1;
  int64_t poolOffset = 0;                  ///< bytes
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  c10::Device device = c10::Device(c10::kCPU);
  bool isStatic = true;                    ///< sizes, strides and offset are constants (and held here), as in every plan that is run
  bool isWritten = false;                  ///< some step writes it
  bool isTakenOver = false;                ///< written to through a view: an operator's result must be nobody else's
  bool inKernels = false;                  ///< a kernel of ours reads or writes its memory
  bool isOpaque = false;                   ///< working memory that one operator leaves for another: of any size, perhaps undefined
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;                      ///< elements, relative to the base's first one
  const graph::TensorMeta* meta = nullptr; ///< in the program
  std::vector<inductor::BufferId> views;   ///< View buffers over this one
  bool onDevicePool = false;               ///< Planned, in the pool of Program::poolDevice
};

struct LaunchPlan {
  const codegen::cpu::CompiledKernel* kernel = nullptr;  ///< on the CPU; else `gpuKernel` on `device`
  gpu::GpuKernel* gpuKernel = nullptr;
  c10::Device device = c10::Device(c10::kCPU);
  int32_t kernelIndex = -1;
  int32_t group = -1;
  std::vector<inductor::BufferId> buffers;
  std::vector<graph::SymExpr> sizes;
  bool isStatic = true;                    ///< the next ones are known, as in every plan that is run
  std::vector<int64_t> constantSizes;
  int64_t units = 0;
  std::vector<int64_t> phaseEnds;          ///< empty: a single phase
  int64_t workBytes = 0;                   ///< working memory of the launch
  int64_t grain = 1;                       ///< work units that are worth a thread of their own
  gpu::GpuKernel::Shape shape;             ///< on a GPU, instead of units and phases

  /// Works out units, phases and working memory for the kernel's size arguments.
  void resolve(const int64_t* values);
};

struct ExternPlan {
  ExternCall call;
  int32_t group = -1;
};

/// Launches that are independent: launches[first, first + count).
struct BatchPlan {
  int32_t first = 0, count = 0;
  bool isOneLoop = false;        ///< CPU: one parallel loop may run over the units of all, since they need nothing but their buffers
  std::vector<int64_t> ends;     ///< then: rough nanoseconds of the launches up to and with each
};

/// Program and code in the form that the run time walks. Immutable after build(). A program with size symbols is run by a plan for their
/// values (withValues).
struct RuntimePlan {
  enum class StepKind : uint8_t { Launch, Batch, Extern, Allocate, Free };
  struct StepPlan {
    StepKind kind;
    int32_t index;  ///< into launches, batches or externs; a buffer for Allocate and Free
    std::vector<inductor::BufferId> lastOf = {};  ///< inputs that nothing needs after this step
  };

  std::shared_ptr<const inductor::Program> source;
  const inductor::Program& program() const { return *source; }
  std::vector<std::shared_ptr<codegen::cpu::CompiledKernel>> kernels;  ///< null where the kernel runs on a GPU
  std::vector<std::shared_ptr<gpu::GpuKernel>> gpuKernels;             ///< null, or missing, where it does not
  std::vector<at::Tensor> constants;
  std::vector<BufferPlan> buffers;
  std::vector<inductor::BufferId> bound;    ///< inputs and constants
  std::vector<inductor::BufferId> planned;  ///< in the pool
  std::vector<inductor::BufferId> perCall;  ///< whose tensors do not outlive a call
  std::vector<LaunchPlan> launches;
  std::vector<BatchPlan> batches;
  std::vector<ExternPlan> externs;
  std::vector<StepPlan> steps;
  std::vector<int32_t> written;  ///< positions of graph inputs that the program changes
  c10::Device poolDevice = c10::Device(c10::kCPU);
  bool isStatic = true;  ///< no size symbol anywhere
  bool predictsIntegers = false;  ///< integers that operators return are compared with what the program was compiled for
  int64_t workBytes = 0; ///< largest working memory of a launch with constant sizes

  int64_t poolBytes = 0, devicePoolBytes = 0;

  /// `source`, `kernels` and `constants` are set; works out the rest.
  Result<void> build(c10::ArrayRef<at::Generator> generators);
  /// The same program for these values of its symbols: everything in it is static. Throws std::out_of_range for a symbol without a value.
  std::unique_ptr<RuntimePlan> withValues(const graph::SymbolValues& symbols) const;

 private:
  /// An operator may give anything for what nobody reads (attention without gradients gives no logsumexp).
  void ignoreUnreadResults();
  void buildBuffers();
  /// Says of a buffer that a step writes it, and of what it lies in.
  void noteWritten(inductor::BufferId id);
  void findLastUses();
  void placePools(const graph::SymbolValues& symbols);
  Result<void> addLaunch(const inductor::LaunchStep& step);
  void finishBatches();
  Result<void> addExtern(const inductor::ExternStep& step, c10::ArrayRef<at::Generator> generators);
};

}  // namespace fusebox::runtime
