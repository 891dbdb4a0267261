#pragma once

#include <vector>

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

namespace fusebox::runtime {

/// Where the default generators of `devices` stand, so that a graph that fails can be run again with the same numbers.
class RandomState {
 public:
  explicit RandomState(const std::vector<c10::Device>& devices);
  void restore() const;

 private:
  std::vector<std::pair<at::Generator, at::Tensor>> states_;
};

}  // namespace fusebox::runtime
