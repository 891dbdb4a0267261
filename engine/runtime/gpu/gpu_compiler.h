#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "engine/runtime/gpu/gpu_kernel.h"

namespace fusebox::runtime::gpu {

/// Code of every GPU kernel of the process, one for structurally equal kernels on devices of one kind. Thread-safe.
class GpuCompiler {
 public:
  static GpuCompiler& instance();

  /// What code is generated for on a device; Unsupported or NotFound (with the reason) where there can be none.
  Result<codegen::gpu::GpuTarget> targetOf(int device);
  Result<std::shared_ptr<GpuKernel>> compile(const inductor::Kernel& kernel);
  /// The same with a launch shape of its own; nobody else gets it until keep().
  Result<std::shared_ptr<GpuKernel>> compileShape(const inductor::Kernel& kernel, const codegen::gpu::LaunchShape& shape);
  /// Code that was kept; Unsupported where it is for a device of another kind. compile() gives it too, unless it has code already.
  Result<std::shared_ptr<GpuKernel>> load(const inductor::Kernel& kernel, GpuKernelImage image);
  /// compile() gives `made` from now on.
  void keep(const inductor::Kernel& kernel, std::shared_ptr<GpuKernel> made);
  /// Whether the LLVM IR of what is compiled from now on is kept: set while a session is being recorded.
  std::atomic<bool> keepsIr{false};

 private:
  std::mutex mutex_;
  std::map<int, Result<codegen::gpu::GpuTarget>> targets_;
  /// Code depends on the capability and on how many multiprocessors work is divided over; the rest is the canonical text.
  using Key = std::tuple<int, int, std::string>;
  static Key keyOf(const codegen::gpu::GpuTarget& target, const inductor::Kernel& kernel);
  std::map<Key, std::shared_ptr<GpuKernel>> kernels_;
};

}  // namespace fusebox::runtime::gpu
