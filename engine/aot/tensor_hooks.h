#pragma once

#include <torch/csrc/autograd/function_hook.h>

#include <atomic>
#include <memory>
#include <vector>

namespace fusebox::aot {

/// The tensor hooks of a node that several results share: each is called where its result got a gradient, as if that had a node of its own.
class HooksOfResults : public torch::autograd::FunctionPreHook {
 public:
  using Hooks = std::vector<std::unique_ptr<torch::autograd::FunctionPreHook>>;
  /// Both outlive this. `passedOver` is set where a hook was not called.
  HooksOfResults(const Hooks& hooks, std::atomic<bool>& passedOver) : hooks_(hooks), passedOver_(passedOver) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& given) override;

 private:
  const Hooks& hooks_;
  std::atomic<bool>& passedOver_;
};

}  // namespace fusebox::aot
