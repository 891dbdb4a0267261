#pragma once

#include <memory>

#include "engine/runtime/graph_capture.h"

namespace fusebox::python {

/// CUDA graphs by torch.cuda.CUDAGraph, which knows torch's allocator and random numbers. Python takes part in capturing only; a
/// replay is one call of the driver, or of torch's replay() where random numbers are drawn.
std::unique_ptr<runtime::GraphCapture> torchGraphCapture();

/// For tests without a GPU: "captures" work on the CPU by keeping it and carrying it out at every launch.
std::unique_ptr<runtime::GraphCapture> simulatedGraphCapture();

}  // namespace fusebox::python
