#pragma once

#include "tests/engine/codegen/kernel_builder.h"

/// Kernels that every shape of GPU code is tried on: without a GPU as text, with one by their results.
namespace fusebox::codegen::testing {

struct NamedKernel {
  std::string name;
  Kernel kernel;
  std::vector<int64_t> sizes;  ///< values of its size symbols
  double scale = 200;          ///< tolerance, in units of toleranceOf
  int64_t limit = 10;          ///< integers stay below
  bool tryShapes = false;      ///< run it in other launch shapes too
};

std::vector<NamedKernel> gpuKernels();

}  // namespace fusebox::codegen::testing
