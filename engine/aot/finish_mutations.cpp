#include <ATen/FunctionalTensorWrapper.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "engine/aot/input_overlap.h"
#include "engine/aot/trace_finisher.h"
#include "engine/trace/convert.h"
#include "engine/trace/input_memory.h"
#include "engine/trace/recorder.h"
#include "engine/trace/trace_tensor.h"

namespace fusebox::aot {

namespace functionalization = at::functionalization;
using functionalization::impl::unsafeGetFunctionalWrapper;

namespace {

tl::unexpected<Error> refuse(const trace::TracedInput& input, const std::string& what) {
  return fail(ErrorCode::Unsupported, "input '" + input.name + "' " + what, "do this outside compiled code");
}

functionalization::FunctionalStorageImpl* storageOf(const at::Tensor& t) {
  return static_cast<functionalization::FunctionalStorageImpl*>(t.storage().unsafeGetStorageImpl());
}

/// Where as_strided counts from the start of a storage, written data that are a tensor of their own must fill it as the input does.
bool countsOverStorage(const graph::Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const graph::Node& node) {
    return node.op.starts_with("aten::as_strided") && !node.isBackward;
  });
}

bool fillsItsStorage(const at::Tensor& t) { return t.storage_offset() == 0 && t.is_non_overlapping_and_dense(); }

}  // namespace

Result<void> TraceFinisher::readMutations() {
  for (auto& input : context_.inputs()) {
    module_.inputs.push_back(input.meta);
    if (input.memoryOf >= 0) module_.memoryOf.resize(context_.inputs().size(), -1);
    if (input.memoryOf >= 0) module_.memoryOf[static_cast<size_t>(input.index)] = input.memoryOf;
    inputOfStorage_.try_emplace(input.standIn.storage().unsafeGetStorageImpl(), input.index);
    if (auto done = readMutation(input); !done) return done;
  }
  if (const auto pair = writtenBeside(context_); pair.first)
    return fail(ErrorCode::Unsupported, "inputs '" + pair.first->name + "' and '" + pair.second->name + "' share memory and the first is written",
                "input aliasing");
  return {};
}

Result<void> TraceFinisher::readMutation(const trace::TracedInput& input) {
  auto* wrapper = unsafeGetFunctionalWrapper(input.standIn);
  bool leafNow = !input.standIn.grad_fn();
  bool replaced = input.standIn.storage().unsafeGetStorageImpl() != input.storage;
  if (replaced || wrapper->was_storage_changed() || wrapper->was_inductor_storage_resized()) return refuse(input, "gets another storage (set_, resize_ or .data)");
  if (input.standIn.requires_grad() != input.requiresGrad && leafNow) return refuse(input, "changes requires_grad");
  if (auto* leaf = dynamic_cast<torch::autograd::AccumulateGrad*>(input.gradEdge.get()))
    if (leaf->tensor_post_acc_grad_hooks()) return refuse(input, "gets a post-accumulate-grad hook");
  bool data = wrapper->has_data_mutation(), metadata = wrapper->has_metadata_mutation();
  // squeeze_() of what has nothing to squeeze counts as a write.
  const bool isCounted = !input.standIn.is_inference() && input.standIn._version() > 0;
  if (!data && !metadata && !isCounted) return {};

  functionalization::impl::sync(input.standIn);
  const bool hasNewHistory = input.standIn.requires_grad() && torch::autograd::impl::gradient_edge(input.standIn).function != input.gradEdge;
  if (sharesMemory(input) && (metadata || hasNewHistory)) return refuse(input, "shares memory with another and changes its shape or its history");
  if (input.memoryOf >= 0) {  // the other input has the data
    const auto countsIt = [&](const trace::TracedInput& other) {  // an earlier one whose plan has the count
      return other.index < input.index && (other.index == input.memoryOf || other.memoryOf == input.memoryOf) && !trace::countsApart(input.standIn, other.standIn);
    };
    if (!isCounted || std::any_of(context_.inputs().begin(), context_.inputs().end(), countsIt)) return {};
    data = false;
  }
  if (data && !fillsItsStorage(input.real) && countsOverStorage(context_.recorder().graph()))
    return refuse(input, "is a part of a larger memory, written, while as_strided is called");
  MutationPlan plan;
  plan.input = input.index;
  plan.metadata = metadata;
  plan.inference = input.standIn.is_inference() && context_.writesInInference();
  // Eager writes, and then raises or not, by how the program came to the memory.
  if (data && input.standIn.is_inference() && !plan.inference && !c10::InferenceMode::is_enabled()) return refuse(input, "was made in inference mode and is written outside of it");
  plan.versions = input.standIn.is_inference() ? 0 : static_cast<uint32_t>(input.standIn._version());
  // The wrapper does not follow the offset of a restride in place; its value does.
  plan.meta = trace::toMeta(functionalization::impl::from_functional_tensor(input.standIn), input.standIn.device());
  plan.meta.storageOffset = offsetInMemory(input.standIn, input);
  if (data) {
    auto* storage = storageOf(input.standIn);
    // Writes under no_grad or through .data leave the history as it was; then the new data has no gradient of its own.
    plan.differentiable = hasNewHistory;
    if (plan.differentiable && !torch::autograd::isDifferentiableType(input.standIn.scalar_type())) return refuse(input, "is not of floats and gets a gradient");
    if (plan.differentiable && metadata) return refuse(input, "is written and restrided while it needs a gradient");
    plan.result = addResult(plan.differentiable ? input.standIn : at::Tensor(), storage->base());
  }
  if (data && input.requiresGrad && (input.real.is_conj() || input.real.is_neg())) return refuse(input, "has a pending conjugation or negation, needs a gradient and is written");
  if (metadata && input.requiresGrad) return refuse(input, "changes its shape in place while it needs a gradient");
  module_.mutations.push_back(std::move(plan));
  return {};
}

bool TraceFinisher::sharesMemory(const trace::TracedInput& input) const {
  return input.memoryOf >= 0 || std::any_of(context_.inputs().begin(), context_.inputs().end(), [&](auto& other) { return other.memoryOf == input.index; });
}

/// Where a tensor that shares memory with an input begins in that memory. Written data are a tensor of their own.
graph::SymExpr TraceFinisher::offsetInMemory(const at::Tensor& view, const trace::TracedInput& input) const {
  const auto offsetOf = [](const at::Tensor& value) { return trace::toMeta(value, value.device()).storageOffset; };
  return offsetOf(functionalization::impl::from_functional_tensor(view)) - offsetOf(storageOf(input.standIn)->base()) + input.meta.storageOffset;
}

}  // namespace fusebox::aot
