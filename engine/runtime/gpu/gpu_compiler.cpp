#include "engine/runtime/gpu/gpu_compiler.h"

namespace fusebox::runtime::gpu {

GpuCompiler& GpuCompiler::instance() {
  // Leaked on purpose: compiled graphs held by Python objects may be destroyed after static destructors have run.
  static auto* compiler = new GpuCompiler;
  return *compiler;
}

Result<codegen::gpu::GpuTarget> GpuCompiler::targetOf(int device) {
  std::lock_guard lock(mutex_);
  if (const auto known = targets_.find(device); known != targets_.end()) return known->second;
  Result<codegen::gpu::GpuTarget> target;
  if (auto facts = deviceFacts(device); !facts)
    target = tl::unexpected(facts.error());
  else if (facts->capability < codegen::gpu::kOldestCapability)
    target = fail(ErrorCode::Unsupported, "GPUs older than compute capability 7.0 have no code",
                  std::to_string(facts->capability));
  else
    target = codegen::gpu::GpuTarget{facts->capability, facts->multiprocessors};
  targets_.emplace(device, target);
  return target;
}

GpuCompiler::Key GpuCompiler::keyOf(const codegen::gpu::GpuTarget& target, const inductor::Kernel& kernel) {
  return {target.capability, target.multiprocessors, inductor::canonicalText(kernel)};
}

Result<std::shared_ptr<GpuKernel>> GpuCompiler::compile(const inductor::Kernel& kernel) {
  auto target = targetOf(std::max<int>(0, kernel.device.index));
  if (!target) return tl::unexpected(target.error());
  const auto key = keyOf(*target, kernel);
  {
    std::lock_guard lock(mutex_);
    if (const auto known = kernels_.find(key); known != kernels_.end()) return known->second;
  }
  auto made = GpuKernel::compile(kernel, *target, keepsIr.load(std::memory_order_relaxed));
  if (!made) return made;
  std::lock_guard lock(mutex_);
  return kernels_.emplace(key, *made).first->second;  // another thread's, if that was first
}

Result<std::shared_ptr<GpuKernel>> GpuCompiler::compileShape(const inductor::Kernel& kernel, const codegen::gpu::LaunchShape& shape) {
  auto target = targetOf(std::max<int>(0, kernel.device.index));
  if (!target) return tl::unexpected(target.error());
  return GpuKernel::compile(kernel, *target, keepsIr.load(std::memory_order_relaxed), shape);
}

Result<std::shared_ptr<GpuKernel>> GpuCompiler::load(const inductor::Kernel& kernel, GpuKernelImage image) {
  auto target = targetOf(std::max<int>(0, kernel.device.index));
  if (!target) return tl::unexpected(target.error());
  const auto kind = [](const codegen::gpu::GpuTarget& t) {
    return "compute capability " + std::to_string(t.capability) + " and " + std::to_string(t.multiprocessors) + " multiprocessors";
  };
  if (!(image.target == *target))
    return fail(ErrorCode::Unsupported, "kept GPU code is for " + kind(image.target) + ", the device has " + kind(*target));
  auto made = GpuKernel::restore(kernel, std::move(image));
  if (!made) return made;
  std::lock_guard lock(mutex_);
  auto& known = kernels_[keyOf(*target, kernel)];
  if (known && known->launchShape() == (*made)->launchShape()) {
    if ((*made)->isTuned()) known->setTuned();
    return known;
  }
  // Whoever compiled this graph may have had to do without tuning, and keeps to that; others get what was timed.
  if (!known || ((*made)->isTuned() && !known->isTuned())) known = *made;
  return made;
}

void GpuCompiler::keep(const inductor::Kernel& kernel, std::shared_ptr<GpuKernel> made) {
  auto target = targetOf(std::max<int>(0, kernel.device.index));
  if (!target) return;
  std::lock_guard lock(mutex_);
  kernels_[keyOf(*target, kernel)] = std::move(made);
}

}  // namespace fusebox::runtime::gpu
