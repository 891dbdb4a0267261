#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/trace/trace_context.h"

namespace fusebox::aot {

/// Whether two dense tensors could share a byte: their extents in memory intersect (gaps between strides count as used).
bool mayOverlap(const at::Tensor& a, const at::Tensor& b);

/// An input that was written to, and one that shares its memory without the trace's knowing (TracedInput::memoryOf); null: there are none.
std::pair<const trace::TracedInput*, const trace::TracedInput*> writtenBeside(const trace::TraceContext& context);

/// Which of them share memory, and how: for each whose extent meets another's its position, that of the first of those, the bytes from where
/// their memory begins, and a number that is the same for those whose writes are
/// counted together. Equal for inputs that share memory in the same way; empty: none do.
std::vector<int64_t> sharedMemory(const std::vector<at::Tensor>& inputs);

}  // namespace fusebox::aot
