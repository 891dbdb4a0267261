#pragma once

#include <memory>

#include "engine/codegen/cpu/jit.h"
#include "engine/record/recorder.h"
#include "engine/runtime/gpu/gpu_kernel.h"
#include "engine/support/result.h"

namespace fusebox {

/// The process's JIT, made with the first kernel for the target of compilerConfig().
Result<std::shared_ptr<codegen::cpu::Jit>> processJit();
/// The same if it has been made, else null.
std::shared_ptr<codegen::cpu::Jit> startedJit();
/// Whether its background thread is this process's: children made by fork have none.
bool backgroundLives();

/// Kernels share machine code where they are structurally equal, in one graph or in several. In a session one of them owns the code's
/// row. Returns the owner in `recorder`, 0 if there is none yet.
record::Id codeOwner(record::Recorder* recorder, const codegen::cpu::CompiledKernel& kernel);
/// Makes `id` the owner and records the code as it is, in the background; a better tier follows by itself.
void recordCode(record::Recorder* recorder, record::Id id, std::shared_ptr<codegen::cpu::CompiledKernel> kernel);

record::Id codeOwner(record::Recorder* recorder, const runtime::gpu::GpuKernel& kernel);
/// Makes `id` the owner of a GPU kernel's code and records it: PTX as its assembly, and the cubin.
void recordGpuCode(record::Recorder* recorder, record::Id id, std::shared_ptr<runtime::gpu::GpuKernel> kernel);

}  // namespace fusebox
