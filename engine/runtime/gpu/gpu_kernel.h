#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "engine/codegen/gpu/ptx.h"
#include "engine/codegen/gpu/target.h"
#include "engine/runtime/gpu/cuda_driver.h"

namespace fusebox::runtime::gpu {

/// A kernel's code in a form that can be kept, and loaded in another process with a device of the same kind.
struct GpuKernelImage {
  struct Form {
    codegen::gpu::PtxKernel ptx;  ///< without its LLVM IR
    std::string cubin;            ///< empty: the driver compiles the text
  };
  std::string canonical;  ///< inductor::canonicalText() of the kernel
  codegen::gpu::GpuTarget target;
  codegen::gpu::LaunchShape shape;
  bool isTuned = false;
  int64_t compileNs = 0;
  Form aligned;
  std::optional<Form> unaligned, wide;  ///< where launches have asked for them
};

/// A kernel's code for devices of one kind, loaded on each device that it is launched on. The code relies on buffers
/// that begin at multiples of 16 bytes, as the allocator gives them, and on sizes that 32 bits count where they are symbolic; for launches on
/// others another form is made when it is first wanted. Thread-safe.
class GpuKernel {
 public:
  /// Generates the code. Nothing is loaded yet.
  static Result<std::shared_ptr<GpuKernel>> compile(const inductor::Kernel& kernel,
                                                    const codegen::gpu::GpuTarget& target, bool keepsIr,
                                                    const codegen::gpu::LaunchShape& shape = {});

  /// A kernel of code that was kept. Nothing is loaded yet. Corrupt where the code is another kernel's.
  static Result<std::shared_ptr<GpuKernel>> restore(const inductor::Kernel& kernel, GpuKernelImage image);
  GpuKernelImage image();
  /// Loads the code for aligned buffers on `device`, which is the current one; else its first launch does.
  Result<void> loadNow(int device);
  const codegen::gpu::LaunchShape& launchShape() const { return launchShape_; }

  /// The code as it is for aligned buffers.
  const codegen::gpu::PtxKernel& code() const { return aligned_.ptx; }
  /// Machine code of that; empty where the driver compiles the text.
  const std::string& cubin() const { return aligned_.cubin; }
  int64_t codeBytes() const { return static_cast<int64_t>(aligned_.cubin.size()); }
  int64_t compileNs() const { return compileNs_; }
  /// Whether launch shapes have been timed, and this one was the quickest.
  bool isTuned() const { return tuned_.load(std::memory_order_relaxed); }
  void setTuned() { tuned_.store(true, std::memory_order_relaxed); }

  /// What one sequence of launches needs for these sizes.
  struct Shape {
    std::vector<int64_t> blocks;  ///< of each launch
    int64_t workBytes = 0;
  };
  /// For aligned buffers. Errors are those of generating code for such sizes.
  Result<Shape> shapeFor(const int64_t* sizes);

  /// Launches on `stream` of `device`, whose context is current. `pointers`: the buffers, Scratch ones left out;
  /// `work`: working memory of shape.workBytes. Returns without waiting for the device. `shape` must come from this
  /// kernel's shapeFor.
  Result<void> launch(int device, CudaStream stream, std::span<void* const> pointers, std::span<const int64_t> sizes,
                      const Shape& shape, void* work);
  /// What one entry of a batched kernel's launch works on: its buffers, then its sizes.
  struct BatchEntry {
    std::vector<void*> buffers;
    std::span<const int64_t> sizes;
  };
  /// Launches a batched kernel (PtxKernel::isBatch) over all entries, as many at a time as one table holds.
  Result<void> launchBatch(int device, CudaStream stream, std::span<const BatchEntry> entries);
  /// The same for buffers of any alignment the kernel allows.
  static bool isAligned(std::span<void* const> pointers);

  /// Working memory for the unaligned form may be larger: call this before shapeFor's numbers are used where
  /// !isAligned.
  Result<Shape> unalignedShapeFor(const int64_t* sizes);

 private:
  static constexpr int kMaxDevices = 64;
  struct Loaded {
    std::vector<CudaFunction> functions;
  };
  struct Form {
    codegen::gpu::PtxKernel ptx;
    std::string cubin;  ///< empty: the driver compiles the text
    std::array<std::atomic<const Loaded*>, kMaxDevices> loaded{};
  };
  GpuKernel(const inductor::Kernel& kernel, const codegen::gpu::GpuTarget& target) : kernel_(kernel), target_(target) {}
  Result<void> generate(Form& form, bool aligned, bool isWide, bool keepsIr);
  Result<Form*> form(bool isAligned, const int64_t* sizes);
  Result<const Loaded*> load(Form& form, int device);
  Result<void> launchTable(Form& form, int device, CudaStream stream, std::span<const BatchEntry> entries);
  Result<const Loaded*> loadedOn(Form& form, int device);
  Result<void> launchForm(Form& form, int device, CudaStream stream, std::span<void* const> pointers,
                          std::span<const int64_t> sizes, const Shape& shape, void* work);

  inductor::Kernel kernel_;
  codegen::gpu::GpuTarget target_;
  codegen::gpu::LaunchShape launchShape_;
  std::atomic<bool> tuned_{false};
  Form aligned_;
  std::unique_ptr<Form> unaligned_, wide_;
  std::vector<std::unique_ptr<Loaded>> owned_;
  std::mutex mutex_;  ///< of unaligned_, wide_, owned_ and loading
  int64_t compileNs_ = 0;
};

}  // namespace fusebox::runtime::gpu
