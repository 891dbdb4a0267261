#include "engine/runtime/compiled_graph.h"

#include <algorithm>
#include <optional>

#include "engine/runtime/effect_log.h"
#include "engine/runtime/frame.h"
#include "engine/runtime/given_up_inputs.h"
#include "engine/runtime/graph_tree.h"
#include "engine/runtime/symbol_binding.h"
#include "engine/runtime/written_inputs.h"

namespace fusebox::runtime {
namespace {

constexpr size_t kSizesKept = 64;      ///< plans for values of symbols that are at hand
constexpr int kSizesRecorded = 16;     ///< of them, those with CUDA graphs: each has memory of its own

}  // namespace

struct CompiledGraph::Graphs {
  GraphTree::Settings settings;
  int sizes = 0;              ///< values of symbols that have recordings
  bool limitTold = false;
};

CompiledGraph::Sized::~Sized() { delete spare.load(); }

CompiledGraph::CompiledGraph() : plan_(std::make_shared<RuntimePlan>()) {}

CompiledGraph::~CompiledGraph() = default;

Result<std::shared_ptr<CompiledGraph>> CompiledGraph::create(
    inductor::Program program, std::vector<std::shared_ptr<codegen::cpu::CompiledKernel>> kernels,
    std::vector<at::Tensor> constants, std::vector<at::Generator> generators, std::vector<std::shared_ptr<gpu::GpuKernel>> gpuKernels) {
  std::shared_ptr<CompiledGraph> graph(new CompiledGraph);
  graph->plan_->source = std::make_shared<const inductor::Program>(std::move(program));
  graph->plan_->kernels = std::move(kernels);
  graph->plan_->gpuKernels = std::move(gpuKernels);
  graph->plan_->constants = std::move(constants);
  if (auto built = graph->plan_->build(generators); !built) return tl::unexpected(built.error());
  if (graph->plan_->isStatic) {
    graph->only_ = std::make_shared<Sized>();
    graph->only_->plan = graph->plan_;
  } else {
    graph->findSymbols();
  }
  return graph;
}

void CompiledGraph::findSymbols() {
  const auto add = [&](const graph::SymExpr& expression) {
    if (expression.isConstant()) return;
    for (graph::Symbol symbol : expression.symbols())
      if (std::find(used_.begin(), used_.end(), symbol) == used_.end()) used_.push_back(symbol);
  };
  for (const inductor::ProgramBuffer& buffer : plan_->program().buffers) {
    std::for_each(buffer.meta.sizes.begin(), buffer.meta.sizes.end(), add);
    std::for_each(buffer.meta.strides.begin(), buffer.meta.strides.end(), add);
    add(buffer.meta.storageOffset);
  }
  for (const LaunchPlan& launch : plan_->launches) std::for_each(launch.sizes.begin(), launch.sizes.end(), add);
  for (const ExternPlan& plan : plan_->externs)
    for (const BoundArgument& argument : plan.call.arguments) std::for_each(argument.integers.begin(), argument.integers.end(), add);
  for (const inductor::PoolPlace& place : plan_->program().places) add(place.bytes);
}

void CompiledGraph::setSymbols(std::vector<graph::Symbol> symbols) {
  order_ = std::move(symbols);
  places_.clear();
  for (graph::Symbol symbol : used_) {
    const auto place = std::find(order_.begin(), order_.end(), symbol);
    if (place == order_.end()) return places_.clear();
    places_.push_back(static_cast<size_t>(place - order_.begin()));
  }
}

std::vector<int64_t> CompiledGraph::valuesOf(c10::ArrayRef<at::Tensor> inputs, std::span<const int64_t> symbolValues) const {
  std::vector<int64_t> values;
  values.reserve(used_.size());
  if (!places_.empty() && symbolValues.size() == order_.size()) {
    for (const size_t place : places_) values.push_back(symbolValues[place]);
    return values;
  }
  graph::SymbolValues known;
  if (!symbolValues.empty()) {
    known = graph::SymbolValues(order_, symbolValues);
  } else {
    for (const inductor::ProgramBuffer& buffer : plan_->program().buffers)
      if (buffer.kind == inductor::ProgramBuffer::Kind::Input && static_cast<size_t>(buffer.index) < inputs.size() &&
          inputs[static_cast<size_t>(buffer.index)].defined())
        bindSymbols(known, buffer.meta, inputs[static_cast<size_t>(buffer.index)]);
  }
  for (graph::Symbol symbol : used_) values.push_back(known(symbol));
  return values;
}

std::shared_ptr<CompiledGraph::Sized> CompiledGraph::make(std::vector<int64_t> values) {
  auto made = std::make_shared<Sized>();
  made->plan = plan_->withValues(graph::SymbolValues(used_, values));
  made->values = std::move(values);
  if (!graphs_) return made;
  if (graphs_->sizes < kSizesRecorded) {
    ++graphs_->sizes;
    made->tree = std::make_unique<GraphTree>(*made->plan, graphs_->settings);
  } else if (GraphListener* listener = graphListener_.load(std::memory_order_acquire); listener && !std::exchange(graphs_->limitTold, true)) {
    GraphEvent event;
    event.kind = GraphEvent::Kind::Stopped;
    event.reason = "recorded for " + std::to_string(kSizesRecorded) + " sets of sizes; further ones are launched plainly";
    listener->event(listener, event);
  }
  return made;
}

std::shared_ptr<CompiledGraph::Sized> CompiledGraph::sizedFor(c10::ArrayRef<at::Tensor> inputs, std::span<const int64_t> symbolValues) {
  if (only_) return only_;
  std::vector<int64_t> values = valuesOf(inputs, symbolValues);
  std::lock_guard lock(mutex_);
  auto found = std::find_if(sized_.begin(), sized_.end(), [&](const auto& sized) { return sized->values == values; });
  if (found == sized_.end()) {
    if (sized_.size() >= kSizesKept) {
      const auto oldest = std::find_if(sized_.rbegin(), sized_.rend(), [](const auto& sized) { return !sized->tree; });
      if (oldest != sized_.rend()) sized_.erase(std::next(oldest).base());
    }
    sized_.push_back(make(std::move(values)));
    found = std::prev(sized_.end());
  }
  std::rotate(sized_.begin(), found, std::next(found));
  return sized_.front();
}

void CompiledGraph::useGraphs(int recordLimit, bool orError) {
  graphs_ = std::make_unique<Graphs>();
  graphs_->settings = {recordLimit, orError, std::make_shared<int32_t>(0)};
  if (only_) only_->tree = std::make_unique<GraphTree>(*only_->plan, graphs_->settings);
}

void CompiledGraph::setGraphListener(GraphListener* listener) {
  graphListener_.store(listener, std::memory_order_release);
  if (!listener) return;
  std::vector<std::shared_ptr<Sized>> all;
  {
    std::lock_guard lock(mutex_);
    all = sized_;
  }
  if (only_) all.push_back(only_);
  for (const auto& sized : all)
    if (sized->tree) sized->tree->describe(listener);
}

std::vector<at::Tensor> CompiledGraph::run(c10::ArrayRef<at::Tensor> inputs, std::span<const int64_t> symbolValues) {
  const std::shared_ptr<Sized> sized = sizedFor(inputs, symbolValues);
  if (sized->tree)
    if (auto results = sized->tree->run(inputs, sink_.load(std::memory_order_acquire), graphListener_.load(std::memory_order_acquire)))
      return std::move(*results);
  std::optional<EffectReplay> seen;
  if (sized->tree) seen.emplace();  // of a recording that failed half-way
  const RuntimePlan& plan = *sized->plan;
  if (sized->isProven.load(std::memory_order_relaxed) || plan.program().firstUnrepeatable < 0 || !mayMispredict(plan))
    return runPlainly(*sized, inputs);
  // What an operator gives is compared with what was predicted for the first time: inputs can be put back as long as that may fail.
  const WrittenInputs before(plan, inputs);
  try {
    return runPlainly(*sized, inputs);
  } catch (const ChangedInputs& changed) {
    before.restore(inputs);
    std::rethrow_exception(changed.error);
  }
}

std::vector<at::Tensor> CompiledGraph::runPlainly(Sized& sized, c10::ArrayRef<at::Tensor> inputs) {
  struct Return {
    Sized& sized;
    std::unique_ptr<Frame> frame;
    ~Return() {
      frame->reset();
      delete sized.spare.exchange(frame.release(), std::memory_order_acq_rel);
    }
  };
  std::unique_ptr<Frame> idle(sized.spare.exchange(nullptr, std::memory_order_acq_rel));
  Return lease{sized, idle ? std::move(idle) : std::make_unique<Frame>(*sized.plan)};
  auto* givenUp = sized.isProven.load(std::memory_order_relaxed) && !sized.plan->predictsIntegers ? GivenUpInputs::of(inputs) : nullptr;
  auto results = lease.frame->run(inputs, sink_.load(std::memory_order_acquire), givenUp);
  sized.isProven.store(true, std::memory_order_relaxed);
  return results;
}

const inductor::Program& CompiledGraph::program() const { return plan_->program(); }

const std::vector<std::shared_ptr<codegen::cpu::CompiledKernel>>& CompiledGraph::kernels() const { return plan_->kernels; }

const std::vector<std::shared_ptr<gpu::GpuKernel>>& CompiledGraph::gpuKernels() const { return plan_->gpuKernels; }

}  // namespace fusebox::runtime
