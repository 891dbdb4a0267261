#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/inductor/ir/program.h"
#include "engine/record/recorder.h"
#include "engine/runtime/gpu/gpu_kernel.h"

namespace fusebox {

/// Where timing launch shapes pays: kernels that move so many bytes.
constexpr int64_t kTunedBytes = int64_t{64} << 20;
constexpr int64_t kTunedBytesMaxAutotune = int64_t{1} << 20;

/// Times a few launch shapes of the GPU kernels that move at least `leastBytes` on memory of their own, and puts the quickest in their
/// places in `kernels` (and in the process's cache). Not those whose reads or writes depend on data, or which change what they read. `places`
/// has the user's line of every kernel, or null: what the GPU does for the timing is recorded as operator "autotune" of that line.
/// `deterministic`: not those whose results' bits depend on the launch shape; where one was tuned before, the rules' code takes its place. What was
/// chosen is recorded as a cache event ("autotune") of `compile`. Returns how many were timed: without memory for it the kernels
/// stay. Fails where a launch does, after which CUDA refuses everything to the process.
Result<int> tuneKernels(const inductor::Program& program, std::vector<std::shared_ptr<runtime::gpu::GpuKernel>>& kernels, int64_t leastBytes,
                bool deterministic, record::Id compile, const std::vector<const graph::SourceLine*>& places);

}  // namespace fusebox
