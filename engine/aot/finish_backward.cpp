#include <fmt/format.h>

#include <ATen/EmptyTensor.h>
#include <ATen/FunctionalTensorWrapper.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <typeinfo>

#include "engine/aot/backward_walk.h"
#include "engine/aot/function_history.h"
#include "engine/aot/gradient_graph.h"
#include "engine/aot/kept_values.h"
#include "engine/aot/operator_kind.h"
#include "engine/aot/partition.h"
#include "engine/aot/trace_finisher.h"
#include "engine/aot/written_parts.h"
#include "engine/trace/convert.h"
#include "engine/trace/dispatch_state.h"
#include "engine/trace/input_memory.h"
#include "engine/trace/recorder.h"
#include "engine/trace/trace_tensor.h"

namespace fusebox::aot {

namespace impl = at::functionalization::impl;

namespace {

/// Where the gradient of a result lies: as the result where that is dense, else row by row. The meta tensor has the numbers at capture, the
/// geometry expressions where something is symbolic.
struct Tangent {
  at::Tensor meta;
  std::shared_ptr<const trace::SymbolicGeometry> geometry;
};

Tangent tangentOf(const at::Tensor& value) {
  auto* traced = trace::asTrace(value);
  auto& meta = traced->meta();
  auto options = meta.options().device(at::kMeta);
  const bool dense = meta.is_non_overlapping_and_dense();
  Tangent made;
  made.meta = dense ? at::Tensor(at::detail::empty_strided_meta(meta.sizes(), meta.strides(), options))
                    : at::Tensor(at::detail::empty_meta(meta.sizes(), options));
  if (!traced->symbolic()) return made;
  auto geometry = *traced->symbolic();
  geometry.offset = 0;
  if (!dense) geometry.strides = graph::contiguousStrides(geometry.sizes);
  if (geometry.symbolic()) made.geometry = std::make_shared<const trace::SymbolicGeometry>(std::move(geometry));
  return made;
}

/// Symbols that are known to equal something else are that from here on.
void simplifySymbols(graph::Graph& graph, const graph::ShapeEnv& shapes) {
  auto simple = [&](graph::SymExpr& e) { e = shapes.simplify(e); };
  std::function<void(graph::ArgumentList&)> arguments = [&](graph::ArgumentList& list) {
    for (auto& a : list) {
      if (auto* inner = std::get_if<graph::ArgumentList>(&a.value)) arguments(*inner);
      if (auto* e = std::get_if<graph::SymExpr>(&a.value)) {
        simple(*e);
        if (auto constant = e->maybeConstant()) a.value = *constant;
      }
    }
  };
  for (graph::NodeId id = 0; id < static_cast<graph::NodeId>(graph.nodes().size()); ++id) {
    auto& node = graph.node(id);
    arguments(node.args);
    for (auto& output : node.outputs) {
      simple(output.scalar);
      for (auto& e : output.tensor.sizes) simple(e);
      for (auto& e : output.tensor.strides) simple(e);
      simple(output.tensor.storageOffset);
    }
  }
}

/// A node of torch.autograd.Function (whose header needs CPython's), of Python or C++.
bool isUserFunction(const torch::autograd::Node& node) {
  const std::string_view type = typeid(node).name();
  return type.find("PyNode") != type.npos || type.find("CppNode") != type.npos;
}

graph::ValueRef valueRef(const at::Tensor& t) { return trace::asTraceThroughWrapper(t)->value(); }

graph::ArgumentList jointResults(const std::vector<graph::ValueRef>& results, const std::vector<std::optional<graph::ValueRef>>& gradients) {
  graph::ArgumentList made(results.begin(), results.end());
  for (auto& g : gradients) made.push_back(g ? graph::Argument(*g) : graph::Argument());
  return made;
}

/// Backward of batch norm in training takes the running statistics and does not look at them: they need not be kept.
void forgetRunningStatistics(graph::Graph& graph) {
  constexpr size_t kMean = 3, kVariance = 4, kTraining = 7;
  for (const graph::Node& known : graph.nodes()) {
    const bool plain = known.op == "aten::native_batch_norm_backward", always = known.op == "aten::cudnn_batch_norm_backward";
    if (!(plain || always) || known.args.size() <= kTraining) continue;
    const auto* training = known.args[kTraining].as<bool>();
    if (!always && !(training && *training)) continue;
    graph::Node& node = graph.node(known.id);
    node.args[kMean] = node.args[kVariance] = graph::Argument();
  }
}

/// From values of the joint graph to the forward graph's.
void locateDataSizes(AotModule& module) {
  std::map<graph::NodeId, graph::NodeId> forwardOf;
  for (const graph::Node& node : module.forward.nodes())
    if (!node.origin.from.empty()) forwardOf.try_emplace(node.origin.from.front(), node.id);
  for (DataSize& known : module.dataSizes) known.value.node = forwardOf.at(known.value.node);
}

/// Whether `value` is computed from a node of `from`, all nodes between them coming after the first `begun`.
bool isComputedFrom(const graph::Graph& graph, graph::ValueRef value, std::span<const graph::NodeId> from, graph::NodeId begun) {
  std::set<graph::NodeId> met;
  std::vector<graph::NodeId> open{value.node};
  while (!open.empty()) {
    const graph::NodeId id = open.back();
    open.pop_back();
    if (std::find(from.begin(), from.end(), id) != from.end()) return true;
    if (id < begun || !met.insert(id).second) continue;
    graph::Graph::forEachValue(graph.node(id).args, [&](graph::ValueRef v) { open.push_back(v.node); });
  }
  return false;
}

at::Tensor belowFunctionalisation(const at::Tensor& t) {
  if (!impl::isFunctionalTensor(t)) return t;
  impl::sync(t);
  return impl::from_functional_tensor(t);
}

}  // namespace

Result<void> TraceFinisher::recordBackward() {
  std::vector<std::shared_ptr<torch::autograd::Node>> ends;
  for (auto& input : context_.inputs())
    if (input.requiresGrad) {
      module_.gradInputs.push_back(input.index);
      ends.push_back(input.gradEdge);
    }
  std::vector<GradientSeed> seeds;
  auto& recorder = context_.recorder();
  bool any = std::any_of(results_.begin(), results_.end(), [](auto& s) { return s.tracked.defined() && s.tracked.requires_grad(); });
  if (!any || ends.empty()) {
    if (any) return fail(ErrorCode::Unsupported, "an output needs a gradient of a leaf made inside the graph", "make the leaf outside");
    module_.gradInputs.clear();
    return {};
  }
  for (auto& input : context_.inputs()) {
    if (input.memoryOf < 0) continue;
    const auto& memory = context_.inputs()[static_cast<size_t>(input.memoryOf)];
    // What is kept for backward is kept as the one whose memory it is: that must be told of the same later writes, and have the same history.
    if (trace::countsApart(input.standIn, memory.standIn) || input.requiresGrad || memory.requiresGrad)
      return fail(ErrorCode::Unsupported, "inputs '" + memory.name + "' and '" + input.name + "' share memory, one is written, and gradients are wanted",
                  "input aliasing");
  }
  recorder.startBackward();
  auto nextIndex = static_cast<int32_t>(context_.inputs().size());
  for (size_t i = 0; i < results_.size(); ++i) {
    auto& slot = results_[i];
    if (!slot.tracked.defined() || !slot.tracked.requires_grad()) continue;
    auto [meta, geometry] = tangentOf(slot.value);
    auto device = slot.value.device();
    auto tangent = recorder.placeholder(fmt::format("tangent_{}", seeds.size()), meta, device, nextIndex++, false, std::move(geometry));
    module_.tangents.push_back(static_cast<int32_t>(i));
    tangentNodes_.push_back(valueRef(tangent).node);
    seeds.push_back({slot.tracked, impl::to_functional_tensor(tangent)});
  }

  c10::impl::ExcludeDispatchKeyGuard noAutocast(c10::autocast_dispatch_keyset);
  WalkObserver observer;
  std::vector<torch::autograd::Node*> walked;
  graph::NodeId formula = 0;  // its first node
  std::optional<std::ptrdiff_t> function;  // its place among those of the context, which grow while its formula runs
  observer.before = [&](torch::autograd::Node& node) {
    formula = static_cast<graph::NodeId>(recorder.graph().nodes().size());
    walked.push_back(&node);
    recorder.setBackwardOrigin(node.sequence_nr());
    auto& functions = context_.functions();
    const auto known = std::find_if(functions.begin(), functions.end(), [&](auto& f) { return f.node.get() == &node; });
    function = known == functions.end() ? std::nullopt : std::optional(known - functions.begin());
    module_.opaqueHistory = module_.opaqueHistory || (isUserFunction(node) && !function);
  };
  // Zeros for what had no elements come of the gradient that was given, though nothing is read from it: who gets a gradient at all is read off the graph.
  // Tensors around those of the graph (distributed ones) are no values of it.
  observer.after = [&](std::span<const at::Tensor> given, std::span<at::Tensor> made) {
    std::vector<graph::NodeId> from;
    const at::Tensor* any = nullptr;
    for (auto& g : given)
      if (g.defined() && trace::isTraceTensor(g)) from.push_back(valueRef(belowFunctionalisation(*(any = &g))).node);
    for (auto& m : made)
      if (any && m.defined() && trace::isTraceTensor(m) && !isComputedFrom(recorder.graph(), valueRef(belowFunctionalisation(m)), from, formula))
        m = at::copy(any->new_empty_strided_symint(m.sym_sizes(), m.sym_strides(), m.options()), m);
    if (function) noteFunction(context_.functions()[static_cast<size_t>(*function)], given, made, formula);
  };
  observer.met = [&](size_t seed, const at::Tensor& arriving, const at::Tensor& whole) {
    module_.inner.push_back({static_cast<int32_t>(seed), valueRef(belowFunctionalisation(arriving)), valueRef(belowFunctionalisation(whole)), -1,
                             valueRef(results_[static_cast<size_t>(module_.tangents[seed])].value), {}});
  };
  std::vector<int32_t> viewed;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!module_.outputs[i].handsGradientOn()) continue;
    const auto edge = torch::autograd::impl::gradient_edge(outputs_[i]);
    const auto isSame = [&](const at::Tensor& other) { return torch::autograd::impl::gradient_edge(other) == edge; };
    if (std::any_of(observer.views.begin(), observer.views.end(), isSame)) continue;
    observer.views.push_back(outputs_[i]);
    viewed.push_back(static_cast<int32_t>(i));
  }
  // What arrives may be the gradient of something else too: the view's is a value of its own.
  observer.passing = [&](size_t view, const at::Tensor& arriving) {
    const at::Tensor known = belowFunctionalisation(arriving), own = at::alias(known);
    module_.inner.push_back({-1, valueRef(known), valueRef(own), viewed[view], valueRef(belowFunctionalisation(observer.views[view])), {}});
    return impl::to_functional_tensor(own);
  };
  std::vector<at::Tensor> gradients = walkBackward(seeds, ends, observer);
  const auto rootOf = [&](const at::Tensor& g) { return storageRoot(recorder.graph(), valueRef(g)); };
  std::vector<graph::ValueRef> seenThroughViews;
  for (auto& g : gradients) {
    if (!g.defined()) continue;
    g = belowFunctionalisation(g);
    if (const auto root = rootOf(g); root != valueRef(g)) seenThroughViews.push_back(root);
  }
  for (auto& g : gradients) {
    if (!g.defined()) {
      gradients_.push_back(std::nullopt);
      continue;
    }
    // A gradient that is a kept tensor itself would let the optimizer write into it.
    // In eager the leaf that a gradient comes to first copies it while others still hold it: one that is a view of it gets the original.
    const auto root = rootOf(g);
    const bool isSeenByOthers = root == valueRef(g) && std::find(seenThroughViews.begin(), seenThroughViews.end(), root) != seenThroughViews.end();
    if (isSeenByOthers || !recorder.graph().node(root.node).isBackward) g = at::clone(g);
    gradients_.push_back(valueRef(g));
  }
  const auto isReentrant = [&](torch::autograd::Node& node) {
    auto& all = context_.reentrantCheckpoints();
    return std::any_of(all.begin(), all.end(), [&](auto& one) { return node.sequence_nr() >= one.first && node.sequence_nr() < one.end; });
  };
  if (!context_.reentrantCheckpoints().empty()) module_.reentrant = waysThrough(seeds, ends, walked, isReentrant);
  module_.keepers = keepers(seeds, ends, walked);
  return {};
}

/// Formulas are taken down as traced: what the compiler makes of the joint graph need not keep one apart from another.
void TraceFinisher::noteFunction(const trace::TracedFunction& function, std::span<const at::Tensor> given, std::span<const at::Tensor> made, graph::NodeId begun) {
  const auto values = [](std::span<const at::Tensor> gradients) {
    std::vector<at::Tensor> below;
    for (auto& g : gradients) below.push_back(g.defined() ? belowFunctionalisation(g) : g);
    return below;
  };
  const std::vector<at::Tensor> arriving = values(given), computed = values(made);
  auto history = functionHistory(context_.recorder().graph(), {function.outputs, function.inputs, arriving, computed, begun});
  if (history && !function.callsOthers) module_.functions.push_back(std::move(*history));
  else module_.opaqueHistory = true;
}

/// The joint graph as the compiler wants it, and all references to its values with it. What was traced stays with the module.
graph::Graph TraceFinisher::rewritten(const CompilerTraits& compiler, std::vector<graph::ValueRef>& results) {
  const auto& traced = context_.recorder().graph();
  module_.traced = traced;
  module_.traced->setOutputs(jointResults(results, gradients_));
  ValueMap moved;
  graph::Graph made = compiler.rewrite(*module_.traced, moved);
  const auto move = [&](graph::ValueRef& v) { v = moved[static_cast<size_t>(v.node)][static_cast<size_t>(v.output)]; };
  for (auto& r : results) move(r);
  for (auto& g : gradients_)
    if (g) move(*g);
  for (auto& id : tangentNodes_) id = moved[static_cast<size_t>(id)].front().node;
  for (auto& known : module_.dataSizes) move(known.value);
  for (auto& inner : module_.inner) {
    move(inner.arriving);
    move(inner.whole);
    move(inner.value);
  }
  for (auto& function : module_.functions)
    for (auto* list : {&function.outputs, &function.inputs, &function.reads})
      for (auto& v : *list) {
        move(v);
        module_.opaqueHistory = module_.opaqueHistory || v.node < 0;
      }
  return made;
}

AotModule TraceFinisher::split(const CompilerTraits& compiler) {
  auto& recorder = context_.recorder();
  const graph::ShapeEnv& shapes = context_.shapes();
  if (!shapes.empty()) simplifySymbols(recorder.graph(), shapes);
  for (auto& function : module_.functions)
    if (!shapes.empty()) simplifySymbols(function.gradient, shapes);
  module_.symbols = shapes.symbols();
  module_.hints = shapes.hints();
  module_.assumptions = shapes.assumptions();
  for (auto& known : context_.dataSizes().definitions()) {
    const auto at = std::find(module_.symbols.begin(), module_.symbols.end(), known.symbol);
    module_.dataSizes.push_back({static_cast<size_t>(at - module_.symbols.begin()), known.value, known.dim, known.text});
  }
  std::vector<graph::ValueRef> slots;
  for (auto& slot : results_) slots.push_back(valueRef(slot.value));
  const bool isCut = !module_.tangents.empty();
  std::vector<graph::ValueRef> seen = slots;
  for (const auto& g : gradients_)
    if (g) seen.push_back(*g);
  for (const auto& known : module_.dataSizes) seen.push_back(known.value);
  for (const auto& inner : module_.inner) seen.insert(seen.end(), {inner.arriving, inner.whole, inner.value});
  for (const auto& function : module_.functions)
    for (auto* list : {&function.outputs, &function.inputs, &function.reads}) seen.insert(seen.end(), list->begin(), list->end());
  keepToWrittenParts(recorder.graph(), seen);
  graph::Graph graph = isCut && compiler.rewrite ? rewritten(compiler, slots) : recorder.graph();
  forgetRunningStatistics(graph);
  JointGraph joint;
  joint.isGenerated = compiler.isGenerated;
  joint.keepsWhatIsRead = compiler.keepsWhatIsRead;
  joint.shapes = &shapes;
  joint.graph = &graph;
  joint.inputs.resize(context_.inputs().size());
  for (auto id : graph.placeholders())
    if (static_cast<size_t>(graph.node(id).index) < joint.inputs.size()) joint.inputs[graph.node(id).index] = id;
  joint.inputIsWritten.resize(joint.inputs.size());
  for (auto& m : module_.mutations) joint.inputIsWritten[m.input] = joint.inputIsWritten[m.input] || m.result >= 0 || m.metadata;
  joint.results = slots;
  for (auto& known : module_.dataSizes) joint.kept.push_back(known.value.node);
  std::sort(joint.kept.begin(), joint.kept.end());
  joint.tangents = tangentNodes_;
  joint.gradients = gradients_;

  if (!isCut) {
    module_.forward = extractForward(joint);
    module_.forwardResults = static_cast<int32_t>(results_.size());
  } else {
    auto parts = partition(joint);
    module_.forward = std::move(parts.forward);
    module_.backward = std::move(parts.backward);
    module_.forwardResults = parts.forwardResults;
    std::multimap<graph::ValueRef, int32_t> resultsByRoot;
    for (size_t i = 0; i < joint.results.size(); ++i) resultsByRoot.emplace(storageRoot(graph, joint.results[i]), static_cast<int32_t>(i));
    for (auto& s : parts.saved) {
      SavedPlan plan;
      plan.kind = s.isInput ? SavedPlan::Kind::Input : SavedPlan::Kind::Result;
      plan.index = s.index;
      plan.joint = s.joint;
      const auto [first, end] = resultsByRoot.equal_range(storageRoot(graph, s.joint));
      for (auto known = first; !s.isInput && !s.isCopy && known != end; ++known)
        if (known->second != s.index) plan.aliasedResult = known->second;
      module_.saved.push_back(plan);
    }
    module_.backward->name = "backward";
  }
  module_.forward.name = "forward";
  locateDataSizes(module_);
  graph.setOutputs(jointResults(slots, gradients_));
  module_.joint = std::move(graph);
  module_.joint.name = "joint";
  finishInnerResults(module_);
  module_.constants = recorder.constants();
  return std::move(module_);
}

}  // namespace fusebox::aot
