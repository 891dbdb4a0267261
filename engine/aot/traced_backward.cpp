// Compiled autograd: how torch's tracing of a backward pass asks the nodes of a compiled region. It writes down one call for each node; what the call
// computes runs as compiled code on real tensors, and operator by operator where whoever compiles the pass traces it further.
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/dynamo/compiled_autograd.h>

#include <algorithm>

#include "engine/aot/compiled_node.h"
#include "engine/aot/executor_scope.h"
#include "engine/aot/part_node.h"
#include "engine/aot/result_node.h"
#include "engine/runtime/graph_interpreter.h"
#include "engine/runtime/strided_copy.h"
#include "engine/trace/convert.h"

namespace fusebox::aot {

using torch::autograd::variable_list;
using torch::dynamo::autograd::CompiledNodeArgs;
using torch::dynamo::autograd::PackedArgs;
using torch::dynamo::autograd::SwapSavedVariables;

namespace {

using Shared = AotFunction::Shared;

/// The gradients of one pass of one region, apart from the call whose values they are computed of.
struct TracedPass {
  std::shared_ptr<Shared> shared;
  Gradients which;
  Pass pass;
  std::vector<int64_t> symbolValues;
  graph::Graph graph;
  std::vector<bool> reads;

  /// One for every result of the gradient graph; undefined where nothing arrives.
  variable_list operator()(const variable_list& gradients, const std::vector<c10::IValue>& packed) const;
};

/// Whether somebody traces what is computed of a tensor.
bool isTraced(const at::Tensor& t) {
  constexpr c10::DispatchKeySet kTracing({c10::DispatchKey::Fake, c10::DispatchKey::Python, c10::DispatchKey::Functionalize, c10::DispatchKey::Meta});
  return t.defined() && (t.key_set().has_any(kTracing) || t.is_meta());
}

variable_list TracedPass::operator()(const variable_list& gradients, const std::vector<c10::IValue>& packed) const {
  PackedArgs arguments(packed);
  std::vector<at::Tensor> inputs = arguments.unpack<variable_list>();
  const graph::SymbolValues symbols(shared->module->symbols, symbolValues);
  const bool traced = c10::impl::dispatch_mode_enabled() || std::any_of(inputs.begin(), inputs.end(), isTraced) || std::any_of(gradients.begin(), gradients.end(), isTraced);
  auto& code = shared->interfaceOf(which);
  variable_list given = gradients;
  given.resize(code.given.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!reads[i]) inputs[i] = at::Tensor();
    else if (!traced && symbolValues.empty() && inputs[i].defined()) inputs[i] = runtime::withStrides(inputs[i], shared->savedStrides[i]);
  }
  for (auto& t : gradientsAs(code.given, symbols, given, reads, inputs.size())) inputs.push_back(std::move(t));
  variable_list results;
  if (traced) {
    const c10::AutoGradMode noGrad(false);
    auto ran = runtime::runDifferentiable(graph, inputs, shared->module->constants, symbols);
    TORCH_CHECK(ran.has_value(), "Fusebox cannot trace the backward of a compiled function: ", ran.error().text());
    results = std::move(*ran);
  } else {
    const ExecutorScope scope;
    results = (*shared->form(which, pass).executor)(inputs, symbolValues);
  }
  for (auto i : withoutGradient(code.tangentsRead, given)) results[i] = at::Tensor();
  return results;
}

}  // namespace

void CompiledNode::collectSaved(CompiledNodeArgs& args) const {
  args.collect(reinterpret_cast<uint64_t>(shared_.get()));  // alive as long as a traced pass is kept
  for (const int64_t value : symbolValues_) args.collect(value);
  args.collect(saved_, true);
}

variable_list CompiledNode::traced(SwapSavedVariables& swapped, Gradients which, const Pass& pass, const variable_list& given) {
  if (std::find(pass.given.begin(), pass.given.end(), true) == pass.given.end()) return variable_list(pass.wanted.size());
  const graph::Graph whole = which == Gradients::OfInputs ? *shared_->module->backward : gradientGraph(*shared_->module, which);
  graph::Graph graph = pass.isWhole() ? whole : graphOfPass(whole, saved_.size(), pass);
  auto reads = placeholdersUsed(graph);
  swapped.before(saved_);
  variable_list values;
  for (auto& s : saved_) values.push_back(s.unpack(shared_from_this()));
  swapped.after(saved_);
  PackedArgs packed;
  packed.pack(values);
  std::vector<at::TypePtr> schema;
  for (const c10::IValue& value : packed.vec()) schema.push_back(value.type());
  std::vector<std::optional<torch::autograd::InputMetadata>> described(pass.wanted.size());
  const auto& compiler = torch::dynamo::autograd::getPyCompilerInterface();
  const std::string name = compiler->bind_function(swapped.get_py_compiler(), "CompiledFunctionBackward",
                                                   TracedPass{shared_, which, pass, symbolValues_, std::move(graph), std::move(reads)}, std::move(schema),
                                                   /*is_custom_function=*/true, /*is_traceable=*/true);
  return compiler->call_function(swapped.get_py_compiler(), "apply_functional", name, given, packed.vec(),
                                 torch::dynamo::autograd::IValuePacker<decltype(described)>::pack(described));
}

bool CompiledNode::isCutWhereTraced() {
  return innerWatched() || std::any_of(inner_.begin(), inner_.end(), [&](auto& inner) { return shared_->module->inner[inner.position].output >= 0; });
}

void CompiledNode::compiled_args(CompiledNodeArgs& args) const { collectSaved(args); }

variable_list CompiledNode::apply_with_saved(const variable_list& given, SwapSavedVariables& swapped) {
  const auto which = isCutWhereTraced() ? Gradients::OfInputsCut : Gradients::OfInputs;
  return traced(swapped, which, passOf(which, given, shared_->module->gradInputs.size()), given);
}

void PartNode::compiled_args(CompiledNodeArgs& args) const {
  args.collect(static_cast<uint64_t>(part_));
  region_->collectSaved(args);
}

variable_list PartNode::apply_with_saved(const variable_list& given, SwapSavedVariables& swapped) { return region_->tracedPart(swapped, part_, given); }

variable_list CompiledNode::tracedPart(SwapSavedVariables& swapped, size_t index, const variable_list& given) {
  const auto which = isCutWhereTraced() ? Gradients::OfInputsCut : Gradients::OfInputs;
  auto& part = shared_->parts()[index];
  variable_list all(shared_->module->tangents.size());
  for (size_t i = 0; i < part.tangents.size(); ++i) all[static_cast<size_t>(part.tangents[i])] = given[i];
  Pass pass = passOf(which, all, shared_->module->gradInputs.size());
  for (size_t k = 0; k < pass.wanted.size(); ++k)
    pass.wanted[k] = pass.wanted[k] && std::binary_search(part.gradients.begin(), part.gradients.end(), static_cast<int32_t>(k));
  auto made = traced(swapped, which, pass, all);
  variable_list own;
  for (auto k : part.gradients) own.push_back(made[static_cast<size_t>(k)]);
  return own;
}

void ResultNode::compiled_args(CompiledNodeArgs& args) const {
  args.collect(static_cast<uint64_t>(tangent_));
  auto& region = this->region();
  const bool contributes = !inner_.empty() && region.isCutWhereTraced();
  args.collect(contributes);
  for (const size_t i : inner_) args.collect(static_cast<uint64_t>(i));
  if (contributes) region.collectSaved(args);
}

variable_list ResultNode::apply_with_saved(const variable_list& given, SwapSavedVariables& swapped) {
  variable_list made(num_outputs());
  const size_t ahead = num_outputs() - inner_.size();
  for (size_t i = 0; i < ahead; ++i) made[i] = given[0];
  if (!given[0].defined() || inner_.empty() || !region().isCutWhereTraced()) return made;
  variable_list only(tangents_);
  only[tangent_] = given[0];
  auto arriving = region().tracedInner(swapped, only);
  for (size_t i = 0; i < inner_.size(); ++i) made[ahead + i] = arriving[inner_[i]];
  return made;
}

variable_list CompiledNode::tracedInner(SwapSavedVariables& swapped, const variable_list& given) {
  const auto which = Gradients::OfInnerResults;
  return traced(swapped, which, passOf(which, given, shared_->module->inner.size()), given);
}

}  // namespace fusebox::aot
