#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace fusebox::runtime {

/// The inputs of a program that its caller has no use for any more: while one of these is there, a run on this thread with just these inputs
/// gives each up after its last use.
class GivenUpInputs {
 public:
  explicit GivenUpInputs(std::vector<at::Tensor>& inputs) : before_(current()) { current() = &inputs; }
  ~GivenUpInputs() { current() = before_; }
  GivenUpInputs(const GivenUpInputs&) = delete;
  GivenUpInputs& operator=(const GivenUpInputs&) = delete;
  /// `inputs` as what may be changed; null if they are the caller's.
  static std::vector<at::Tensor>* of(c10::ArrayRef<at::Tensor> inputs) {
    auto* given = current();
    return given && given->data() == inputs.data() && given->size() == inputs.size() ? given : nullptr;
  }

 private:
  static std::vector<at::Tensor>*& current();
  std::vector<at::Tensor>* before_;
};

}  // namespace fusebox::runtime
