#pragma once

#include <ATen/ATen.h>

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/aot/aot_module.h"
#include "engine/aot/backward_stages.h"
#include "engine/support/result.h"

namespace fusebox::aot {

/// Runs a graph: one tensor for every placeholder in, one for every output out (undefined where the graph says None or an integer), for
/// the values of AotModule::symbols. Called below autograd and autocast, without the GIL being needed; must not write to its inputs.
using Executor = std::function<std::vector<at::Tensor>(c10::ArrayRef<at::Tensor> inputs, std::span<const int64_t> symbolValues)>;

/// The same for a forward graph, which sets the values of AotModule::dataSizes as it learns them. Throws DataMisfit.
using ForwardExecutor = std::function<std::vector<at::Tensor>(c10::ArrayRef<at::Tensor> inputs, std::span<int64_t> symbolValues)>;

/// A call whose data do not fit what was assumed of their numbers (AotModule::assumptions): it is the program's to carry out.
struct DataMisfit : std::runtime_error {
  DataMisfit(const std::string& what, std::vector<int64_t> found, bool isException)
      : std::runtime_error(what), values(std::move(found)), programRaises(isException) {}
  std::vector<int64_t> values;  ///< of AotModule::dataSizes; -1: it was not known yet; INT64_MAX: a truth value, which is no size
  bool programRaises;           ///< what the program does with such data is raise
};

/// Inputs share memory otherwise than while tracing, and one of them is written to.
struct SharedMemory : std::runtime_error {
  SharedMemory() : std::runtime_error("Fusebox: an input that the compiled function writes to shares memory with another input") {}
};

/// Compiles a graph that computes gradients (gradient_graph.h) when the first gradient arrives. Called once for each, on whatever thread
/// the autograd engine uses. `graph` is gone afterwards.
using BackwardCompiler = std::function<Result<Executor>(const AotModule& module, const graph::Graph& graph)>;

/// What is the program's own and must reach it: raised by a saved-tensor hook (checkpoint stops its recomputation so), or asked for.
struct HookError {
  std::exception_ptr error;
};

/// A compiled region as the caller sees it: real tensors in, real tensors out, with eager's gradients, mutations and aliasing.
/// Thread-safe; the same function may run again before its backward ran.
class AotFunction {
 public:
  /// `buckets`: gradients are handed on as these fill, while backward goes on.
  AotFunction(std::shared_ptr<const AotModule> module, ForwardExecutor forward, BackwardCompiler compileBackward, GradientBuckets buckets = {});
  ~AotFunction();

  /// `inputs` in the order of the trace's inputs; result in the order of finishTrace's outputs. `symbolValues`: of AotModule::symbols,
  /// for which every relation that was assumed of them holds; backward is computed for the same ones. Those of AotModule::dataSizes are set.
  /// Grad mode must be what it was while
  /// tracing (capture guards it). Throws SharedMemory, HookError when
  /// a saved-tensor hook raised or the program asked to be told of a refusal (triton.cudagraph_or_error). After any other exception the
  /// generators stand where they stood, and what others saw happen waits for the runtime::EffectReplay under which the program is run
  /// again.
  std::vector<at::Tensor> call(const std::vector<at::Tensor>& inputs, std::span<int64_t> symbolValues = {}) const;

  const AotModule& module() const { return *module_; }
  /// Compiles now what a backward pass through all results runs. Throws c10::Error when that fails.
  void compileBackwardNow() const;

  struct Shared;  ///< what autograd nodes keep alive

 private:
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs, std::span<int64_t> symbolValues) const;
  void refuseForBackward(const std::vector<at::Tensor>& inputs) const;

  std::shared_ptr<const AotModule> module_;
  std::shared_ptr<Shared> shared_;
  std::vector<c10::Device> drawsOn_;  ///< devices whose generators the forward graph draws from
  bool hasEffects_ = false;           ///< others see calls of the forward graph happen
};

/// Whether the program looks at the gradient of a tensor (register_hook, retain_grad of one that is no leaf).
bool hasGradientHooks(const at::Tensor& tensor);

/// Whether a write to one of `module`'s mutated inputs would be seen through another input. Capture uses it as a guard.
bool mutationsOverlap(const AotModule& module, const std::vector<at::Tensor>& inputs);

}  // namespace fusebox::aot
