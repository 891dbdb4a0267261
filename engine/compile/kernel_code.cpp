#include "engine/compile/kernel_code.h"

#include <unistd.h>

#include <mutex>
#include <unordered_map>

#include "engine/compile/compile.h"
#include "engine/record/gpu_recording.h"

namespace fusebox {
namespace {

using codegen::cpu::CompiledKernel;
using codegen::cpu::Jit;
using record::Recorder;

std::mutex jitMutex;
std::shared_ptr<Jit> theJit;
pid_t jitProcess = 0;  ///< that made it

/// Whose row holds the code of a kernel, in the recording that is on.
struct Owners {
  struct Owner {
    record::Id id = 0;
    std::shared_ptr<CompiledKernel> kernel;
  };
  std::mutex mutex;
  Recorder* recorder = nullptr;
  std::unordered_map<const CompiledKernel*, Owner> rows;
  struct GpuOwner {
    record::Id id = 0;
    std::shared_ptr<runtime::gpu::GpuKernel> kernel;
  };
  std::unordered_map<const runtime::gpu::GpuKernel*, GpuOwner> gpuRows;

  /// Ids of an earlier recording mean nothing in this one.
  void enter(Recorder* now) {
    if (recorder != now) rows.clear(), gpuRows.clear();
    recorder = now;
  }
};
Owners& owners() {
  static Owners all;
  return all;
}

void postCode(Recorder* recorder, const Owners::Owner& owner) {
  recorder->kernelCode([owner, jit = startedJit()]() -> std::optional<record::KernelCodeRecord> {
    if (!jit) return std::nullopt;
    auto text = jit->text(*owner.kernel);
    if (!text) return std::nullopt;
    record::KernelCodeRecord row;
    row.kernel = owner.id;
    row.tier = text->tier;
    row.target = std::move(text->target);
    row.llvmIr = std::move(text->llvmIr);
    row.assembly = std::move(text->assembly);
    row.codeBytes = text->codeBytes;
    row.compileNs = text->compileNs;
    return row;
  });
}

void recordBetterTier(const CompiledKernel& kernel) {
  Recorder* recorder = Recorder::session();
  if (!recorder) return;
  Owners& all = owners();
  std::lock_guard lock(all.mutex);
  if (all.recorder != recorder) return;
  if (const auto owner = all.rows.find(&kernel); owner != all.rows.end()) postCode(recorder, owner->second);
}

}  // namespace

Result<std::shared_ptr<Jit>> processJit() {
  std::lock_guard lock(jitMutex);
  if (theJit) return theJit;
  Jit::Options options;
  auto target = codegen::cpu::TargetFeatures::named(compilerConfig().target);
  if (!target) return tl::unexpected(target.error());
  options.target = *target;
  options.background = compilerConfig().background;
  auto made = Jit::create(options);
  if (!made) return made;
  theJit = *made;
  jitProcess = ::getpid();
  theJit->onTier = [](const CompiledKernel& kernel, int64_t) { recordBetterTier(kernel); };
  return made;
}

std::shared_ptr<Jit> startedJit() {
  std::lock_guard lock(jitMutex);
  return theJit;
}

bool backgroundLives() {
  std::lock_guard lock(jitMutex);
  return theJit && jitProcess == ::getpid();
}

record::Id codeOwner(Recorder* recorder, const CompiledKernel& kernel) {
  Owners& all = owners();
  std::lock_guard lock(all.mutex);
  all.enter(recorder);
  const auto owner = all.rows.find(&kernel);
  return owner == all.rows.end() ? 0 : owner->second.id;
}

void recordCode(Recorder* recorder, record::Id id, std::shared_ptr<CompiledKernel> kernel) {
  Owners& all = owners();
  std::lock_guard lock(all.mutex);
  all.enter(recorder);
  const CompiledKernel* key = kernel.get();
  const Owners::Owner owner{id, std::move(kernel)};
  all.rows[key] = owner;
  postCode(recorder, owner);
}

record::Id codeOwner(Recorder* recorder, const runtime::gpu::GpuKernel& kernel) {
  Owners& all = owners();
  std::lock_guard lock(all.mutex);
  all.enter(recorder);
  const auto owner = all.gpuRows.find(&kernel);
  return owner == all.gpuRows.end() ? 0 : owner->second.id;
}

void recordGpuCode(Recorder* recorder, record::Id id, std::shared_ptr<runtime::gpu::GpuKernel> kernel) {
  {
    Owners& all = owners();
    std::lock_guard lock(all.mutex);
    all.enter(recorder);
    all.gpuRows.try_emplace(kernel.get(), Owners::GpuOwner{id, kernel});
  }
  // Whether or not its times are recorded: machine code can be looked at without them.
  if (auto* gpu = record::GpuRecording::active()) gpu->kernelBinary(id, kernel->cubin());
  recorder->kernelCode([id, kernel = std::move(kernel)]() -> std::optional<record::KernelCodeRecord> {
    record::KernelCodeRecord row;
    row.kernel = id;
    row.target = kernel->code().architecture;
    row.llvmIr = kernel->code().llvmIr;
    row.assembly = kernel->code().text;
    row.codeBytes = kernel->codeBytes();
    row.compileNs = kernel->compileNs();
    return row;
  });
}

}  // namespace fusebox
