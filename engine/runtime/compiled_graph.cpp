#include "engine/runtime/compiled_graph.h"

#include <optional>

#include "engine/runtime/effect_log.h"
#include "engine/runtime/frame.h"
#include "engine/runtime/given_up_inputs.h"
#include "engine/runtime/graph_tree.h"
#include "engine/runtime/written_inputs.h"

namespace fusebox::runtime {

CompiledGraph::CompiledGraph() : plan_(std::make_unique<RuntimePlan>()) {}

CompiledGraph::~CompiledGraph() { delete spare_.load(); }

Result<std::shared_ptr<CompiledGraph>> CompiledGraph::create(
    inductor::Program program, std::vector<std::shared_ptr<codegen::cpu::CompiledKernel>> kernels,
    std::vector<at::Tensor> constants, std::vector<at::Generator> generators, std::vector<std::shared_ptr<gpu::GpuKernel>> gpuKernels) {
  std::shared_ptr<CompiledGraph> graph(new CompiledGraph);
  graph->plan_->program = std::move(program);
  graph->plan_->kernels = std::move(kernels);
  graph->plan_->gpuKernels = std::move(gpuKernels);
  graph->plan_->constants = std::move(constants);
  if (auto built = graph->plan_->build(generators); !built) return tl::unexpected(built.error());
  return graph;
}

void CompiledGraph::useGraphs(int recordLimit, bool orError) {
  tree_ = std::make_unique<GraphTree>(*plan_, GraphTree::Settings{recordLimit, orError});
}

void CompiledGraph::setGraphListener(GraphListener* listener) {
  graphListener_.store(listener, std::memory_order_release);
  if (tree_ && listener) tree_->describe(listener);
}

std::vector<at::Tensor> CompiledGraph::run(c10::ArrayRef<at::Tensor> inputs) {
  if (tree_)
    if (auto results = tree_->run(inputs, sink_.load(std::memory_order_acquire), graphListener_.load(std::memory_order_acquire)))
      return std::move(*results);
  std::optional<EffectReplay> seen;
  if (tree_) seen.emplace();  // of a recording that failed half-way
  if (isProven_.load(std::memory_order_relaxed) || plan_->program.firstUnrepeatable < 0 || !mayMispredict(*plan_)) return runPlainly(inputs);
  // What an operator gives is compared with what was predicted for the first time: inputs can be put back as long as that may fail.
  const WrittenInputs before(*plan_, inputs);
  try {
    return runPlainly(inputs);
  } catch (const ChangedInputs& changed) {
    before.restore(inputs);
    std::rethrow_exception(changed.error);
  }
}

std::vector<at::Tensor> CompiledGraph::runPlainly(c10::ArrayRef<at::Tensor> inputs) {
  struct Return {
    CompiledGraph* graph;
    std::unique_ptr<Frame> frame;
    ~Return() { graph->returnFrame(std::move(frame)); }
  } lease{this, takeFrame()};
  auto* givenUp = isProven_.load(std::memory_order_relaxed) && !plan_->predictsIntegers ? GivenUpInputs::of(inputs) : nullptr;
  auto results = lease.frame->run(inputs, sink_.load(std::memory_order_acquire), givenUp);
  isProven_.store(true, std::memory_order_relaxed);
  return results;
}

const inductor::Program& CompiledGraph::program() const { return plan_->program; }

const std::vector<std::shared_ptr<codegen::cpu::CompiledKernel>>& CompiledGraph::kernels() const { return plan_->kernels; }

const std::vector<std::shared_ptr<gpu::GpuKernel>>& CompiledGraph::gpuKernels() const { return plan_->gpuKernels; }

std::unique_ptr<Frame> CompiledGraph::takeFrame() {
  std::unique_ptr<Frame> frame(spare_.exchange(nullptr, std::memory_order_acq_rel));
  return frame ? std::move(frame) : std::make_unique<Frame>(*plan_);
}

void CompiledGraph::returnFrame(std::unique_ptr<Frame> frame) {
  frame->reset();
  delete spare_.exchange(frame.release(), std::memory_order_acq_rel);
}

}  // namespace fusebox::runtime
