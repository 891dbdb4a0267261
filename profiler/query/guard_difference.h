#pragma once

#include <string>
#include <utility>
#include <vector>

#include "profiler/query/advice.h"

namespace fusebox::query {

/// What a tensor guard stumbled over.
struct TensorChange {
  enum class What { None, Size, Rank, Dtype, Device, Stride, Gradient, Keys } what = What::None;
  std::vector<int> dims;  ///< Size and Stride: those that differ
  std::string from, to;   ///< of the first difference
  std::vector<std::pair<std::string, std::string>> numbers;  ///< Size and Stride: from and to of each of `dims`
};

/// From the guard's expected and found tensors as either engine prints them, or from PyTorch's words ("size mismatch at
/// index 0").
TensorChange changeOf(const GuardProblem& problem);

}  // namespace fusebox::query
