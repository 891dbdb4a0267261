#pragma once

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <memory>
#include <mutex>
#include <vector>

#include "engine/aot/aot_function.h"
#include "engine/aot/second_order.h"

namespace fusebox::aot {

/// Compiled code that outlives its AotFunction because autograd graphs still need it.
struct AotFunction::Shared {
  std::shared_ptr<const AotModule> module;
  Executor forward;
  BackwardCompiler compileBackward;
  std::mutex mutex;
  std::shared_ptr<const Executor> backward;  ///< guarded by mutex; set once
  std::shared_ptr<const SecondOrder> second; ///< guarded by mutex; set once
  std::vector<std::vector<int32_t>> tangentsRead; ///< guarded by mutex; set once

  /// Compiles on the first call. Throws c10::Error when compiling failed.
  std::shared_ptr<const Executor> backwardExecutor();
  /// For every entry of gradInputs, which tangents its gradient is computed from.
  const std::vector<std::vector<int32_t>>& tangentsOfGradients();
  /// For gradients that are differentiated again (create_graph=True).
  std::shared_ptr<const SecondOrder> secondOrder();
};

/// The autograd node of one call of a compiled region: inputs are the gradients of AotModule::tangents, outputs those of gradInputs.
class CompiledNode : public torch::autograd::Node {
 public:
  CompiledNode(std::shared_ptr<AotFunction::Shared> shared, torch::autograd::edge_list next);

  /// Keeps what backward reads. `results` are the forward graph's; call after the differentiable ones got this node as history.
  void save(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& results);
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;
  void release_variables() override;
  std::string name() const override { return "CompiledFunctionBackward"; }

 private:
  std::vector<size_t> gradientsNobodyAskedFor(const torch::autograd::variable_list& gradients) const;
  std::vector<at::Tensor> prepareTangents(const torch::autograd::variable_list& gradients) const;
  /// Gradients with a history of their own.
  torch::autograd::variable_list differentiableGradients(const SecondOrder& second, const torch::autograd::variable_list& gradients);
  torch::autograd::variable_list refuseDoubleBackward(torch::autograd::variable_list gradients, const torch::autograd::variable_list& tangents,
                                                      const std::string& why) const;

  std::shared_ptr<AotFunction::Shared> shared_;
  struct Input {
    at::Tensor tensor;
    uint32_t version = 0;
  };
  std::vector<torch::autograd::SavedVariable> saved_;
  bool released_ = false;
  std::vector<Input> inputs_;  ///< all that are not written to: what differentiating again starts from
  std::mutex mutex_;
};

}  // namespace fusebox::aot
