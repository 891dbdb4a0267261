#include "engine/aot/function_history.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "engine/aot/graph_extract.h"
#include "engine/graph/operator_facts.h"
#include "engine/runtime/graph_interpreter.h"
#include "engine/trace/convert.h"
#include "engine/trace/trace_tensor.h"

namespace fusebox::aot {

using graph::Graph;
using graph::NodeKind;
using graph::ValueRef;
using torch::autograd::variable_list;

namespace {

/// Values of forward that `results` are computed from by nodes from `begun` on and by `given`; none: something else is read, or drawn.
std::optional<std::set<ValueRef>> readsOf(const Graph& joint, const std::vector<std::optional<ValueRef>>& results, const std::vector<ValueRef>& given,
                                          graph::NodeId begun) {
  std::set<ValueRef> reads, met;
  std::vector<ValueRef> open;
  for (auto& r : results)
    if (r) open.push_back(*r);
  while (!open.empty()) {
    const ValueRef v = open.back();
    open.pop_back();
    if (std::find(given.begin(), given.end(), v) != given.end() || !met.insert(v).second) continue;
    const graph::Node& node = joint.node(v.node);
    if (node.kind == NodeKind::Constant) continue;
    if (!node.isBackward) {
      reads.insert(v);
      continue;
    }
    if (v.node < begun || node.kind != NodeKind::Call || graph::isOrdered(node)) return std::nullopt;
    Graph::forEachValue(node.args, [&](ValueRef from) { open.push_back(from); });
  }
  return reads;
}

/// Whether the results are linear in the placeholders from `first` on. What gradients of gradients add up may arrive in two parts, each of which is run.
bool isLinear(const Graph& graph, size_t first) {
  static const std::set<std::string> kOfAll = {"aten::add.Tensor", "aten::sub.Tensor", "aten::cat", "aten::stack"};
  static const std::set<std::string> kOfOne = {
      "aten::mul.Tensor", "aten::mul.Scalar", "aten::mm", "aten::bmm", "aten::matmul", "aten::neg", "aten::sum", "aten::sum.dim_IntList", "aten::mean", "aten::mean.dim",
      "aten::view", "aten::_unsafe_view", "aten::reshape", "aten::t", "aten::transpose.int", "aten::permute", "aten::expand", "aten::unsqueeze", "aten::squeeze",
      "aten::squeeze.dim", "aten::squeeze.dims", "aten::slice.Tensor", "aten::select.int", "aten::clone", "aten::alias", "aten::_to_copy", "aten::flip", "aten::index_select"};
  static const std::set<std::string> kOfFirst = {"aten::div.Tensor", "aten::div.Scalar"};
  static const std::set<std::string> kZeros = {"aten::zeros", "aten::zeros_like", "aten::new_zeros"};
  std::vector<bool> depends(graph.nodes().size()), isZero(graph.nodes().size());  // what a function is given in place of a missing gradient
  const auto isDependent = [&](ValueRef v) { return depends[static_cast<size_t>(v.node)]; };
  for (const graph::Node& node : graph.nodes()) {
    const auto id = static_cast<size_t>(node.id);
    if (node.kind == NodeKind::Placeholder) depends[id] = static_cast<size_t>(node.index) >= first;
    if (node.kind == NodeKind::Output)
      return std::all_of(node.args.begin(), node.args.end(), [&](auto& a) { return !a.template as<ValueRef>() || isDependent(*a.template as<ValueRef>()) || isZero[static_cast<size_t>(a.template as<ValueRef>()->node)]; });
    size_t some = 0, all = 0, zeros = 0;
    Graph::forEachValue(node.args, [&](ValueRef v) { ++all, some += isDependent(v), zeros += isZero[static_cast<size_t>(v.node)]; });
    if (node.kind != NodeKind::Call) continue;
    isZero[id] = kZeros.count(node.op) || (some == 0 && zeros > 0 && (kOfOne.count(node.op) || (kOfAll.count(node.op) && zeros == all)));
    if (some == 0) continue;
    const auto* leading = node.args[0].as<ValueRef>();
    const bool isPair = node.op == "aten::cat" || node.op == "aten::stack" || all == 2;
    const bool fits = (kOfAll.count(node.op) && isPair && some + zeros == all) || (kOfOne.count(node.op) && some == 1) ||
                      (kOfFirst.count(node.op) && some == 1 && leading && isDependent(*leading));
    if (!fits) return false;
    depends[id] = true;
  }
  return true;
}

std::optional<ValueRef> refOf(const at::Tensor& t) {
  const auto* traced = t.defined() ? trace::asTraceThroughWrapper(t) : nullptr;
  return traced ? std::optional(traced->value()) : std::nullopt;
}

}  // namespace

std::optional<FunctionHistory> functionHistory(const Graph& joint, const TracedFormula& traced) {
  FunctionHistory made;
  std::vector<ValueRef> given;
  for (size_t i = 0; i < traced.outputs.size(); ++i) {
    if (!traced.outputs[i]) continue;
    const auto position = static_cast<int32_t>(made.outputs.size());
    made.outputs.push_back(*traced.outputs[i]);
    const auto gradient = i < traced.given.size() ? refOf(traced.given[i]) : std::nullopt;
    if (!gradient) continue;
    made.given.push_back(position);
    if (std::find(given.begin(), given.end(), *gradient) != given.end()) return std::nullopt;
    given.push_back(*gradient);
  }
  std::vector<std::optional<ValueRef>> results;
  for (size_t i = 0; i < traced.made.size(); ++i) {
    const auto gradient = refOf(traced.made[i]);
    if (!gradient && traced.made[i].defined()) return std::nullopt;
    if (!gradient) continue;
    if (i >= traced.inputs.size() || !traced.inputs[i]) return std::nullopt;
    made.inputs.push_back(*traced.inputs[i]);
    results.push_back(gradient);
  }
  const auto reads = readsOf(joint, results, given, traced.begun);
  if (!reads) return std::nullopt;
  made.reads.assign(reads->begin(), reads->end());
  std::vector<Boundary> boundaries;
  for (auto& v : made.reads) boundaries.push_back({v, "read_" + joint.node(v.node).name});
  for (auto& v : given) boundaries.push_back({v, "tangent_" + std::to_string(boundaries.size() - made.reads.size())});
  made.gradient = extractGraph(joint, boundaries, results, [](const graph::Node&) { return false; });
  made.gradient.name = "backward of a function";
  if (!isLinear(made.gradient, made.reads.size())) return std::nullopt;
  return made;
}

std::vector<ValueRef> neededByFunctions(const AotModule& module, const std::vector<ValueRef>& given, const std::vector<std::optional<ValueRef>>& results) {
  std::vector<ValueRef> made, open;
  if (module.functions.empty()) return made;
  const auto& nodes = module.joint.nodes();
  const std::set<ValueRef> ends(given.begin(), given.end());
  std::set<ValueRef> needed;
  for (auto& r : results)
    if (r) open.push_back(*r);
  std::vector<bool> isNeeded(module.functions.size());
  for (bool more = true; more;) {
    while (!open.empty()) {
      const ValueRef v = open.back();
      open.pop_back();
      if (!needed.insert(v).second || ends.count(v)) continue;
      Graph::forEachValue(nodes[static_cast<size_t>(v.node)].args, [&](ValueRef from) { open.push_back(from); });
    }
    more = false;
    for (size_t f = 0; f < module.functions.size(); ++f) {
      const FunctionHistory& function = module.functions[f];
      if (isNeeded[f] || std::none_of(function.outputs.begin(), function.outputs.end(), [&](ValueRef v) { return needed.count(v) > 0; })) continue;
      isNeeded[f] = more = true;
      for (auto* list : {&function.inputs, &function.reads}) {
        made.insert(made.end(), list->begin(), list->end());
        open.insert(open.end(), list->begin(), list->end());
      }
    }
  }
  return made;
}

/// Computes the gradient of one call as it was traced, in a way that can be differentiated.
class FunctionsAgain::Formula : public torch::autograd::Node {
 public:
  Formula(std::shared_ptr<const AotModule> module, size_t function, const graph::SymbolValues& symbols, torch::autograd::edge_list next)
      : Node(std::move(next)), module_(std::move(module)), function_(function), symbols_(symbols), reads_(history().reads.size()) {}

  std::string name() const override { return "CompiledFormulaBackward"; }

  /// Gives an output its history.
  void add(size_t output, at::Tensor& value) {
    outputs_.push_back(output);
    torch::autograd::set_history(value, shared_from_this());
  }
  bool has(size_t output) const { return std::find(outputs_.begin(), outputs_.end(), output) != outputs_.end(); }
  void keep(size_t read, const at::Tensor& value) { reads_[read] = torch::autograd::SavedVariable(value, value.grad_fn().get() == this); }
  void release_variables() override {
    for (auto& read : reads_) read.reset_data();
  }

  variable_list apply(variable_list&& given) override {
    if (module_->beforeBackward) module_->beforeBackward();
    std::vector<at::Tensor> values;
    for (auto& read : reads_) values.push_back(read.unpack(shared_from_this()));
    for (size_t i = 0; i < history().outputs.size(); ++i) {
      const auto at = std::find(outputs_.begin(), outputs_.end(), i);
      const auto slot = static_cast<size_t>(at - outputs_.begin());
      const bool arrives = at != outputs_.end() && given[slot].defined();
      const bool isKnown = std::binary_search(history().given.begin(), history().given.end(), static_cast<int32_t>(i));
      TORCH_CHECK(isKnown || !arrives, "Fusebox: the backward of this compiled function cannot itself be differentiated (create_graph=True): a torch.autograd.Function "
                  "gets a gradient for a result that it got none for before. Compute this gradient outside torch.compile.");
      if (!isKnown) continue;
      values.push_back(arrives ? given[slot] : zerosFor(values.size()));
    }
    auto made = runtime::runDifferentiable(history().gradient, values, module_->constants, symbols_);
    TORCH_CHECK(made.has_value(), "Fusebox cannot differentiate the backward of a torch.autograd.Function: ", made.error().text());
    return std::move(*made);
  }

 private:
  const FunctionHistory& history() const { return module_->functions[function_]; }
  at::Tensor zerosFor(size_t placeholder) const {
    const graph::TensorMeta& meta = history().gradient.node(history().gradient.placeholders()[placeholder]).outputs[0].tensor;
    return at::zeros(symbols_(meta.sizes), at::TensorOptions(static_cast<at::ScalarType>(meta.dtype)).device(trace::fromDevice(meta.device)));
  }

  std::shared_ptr<const AotModule> module_;
  size_t function_;
  const graph::SymbolValues symbols_;
  std::vector<torch::autograd::SavedVariable> reads_;
  std::vector<size_t> outputs_;  ///< by input of this node
};

struct FunctionsAgain::Call {
  std::vector<at::Tensor> inputs, reads;
  std::shared_ptr<Formula> formula;
};

FunctionsAgain::FunctionsAgain(std::shared_ptr<const AotModule> module, const Places& places, const graph::SymbolValues& symbols)
    : module_(std::move(module)), places_(places), symbols_(symbols), calls_(module_->functions.size()) {
  for (size_t f = 0; f < calls_.size(); ++f) {
    calls_[f].inputs.resize(module_->functions[f].inputs.size());
    calls_[f].reads.resize(module_->functions[f].reads.size());
  }
}

FunctionsAgain::~FunctionsAgain() = default;

void FunctionsAgain::giveHistory(const Place& place, at::Tensor& value) {
  Call& call = calls_[place.function];
  if (call.formula && call.formula->has(place.index)) return;
  value = value.detach();
  if (!call.formula) {
    torch::autograd::edge_list next;
    for (auto& input : call.inputs) next.push_back(input.defined() && input.requires_grad() ? torch::autograd::impl::gradient_edge(input) : torch::autograd::Edge());
    if (std::none_of(next.begin(), next.end(), [](auto& edge) { return edge.is_valid(); })) return;
    call.formula = std::shared_ptr<Formula>(new Formula(module_, place.function, symbols_, std::move(next)), torch::autograd::deleteNode);
    for (size_t r = 0; r < call.reads.size(); ++r)
      if (call.reads[r].defined()) call.formula->keep(r, call.reads[r]);
    call.reads.clear();
  }
  call.formula->add(place.index, value);
}

void FunctionsAgain::met(ValueRef ref, at::Tensor& value) {
  if (!value.defined()) return;
  const auto [first, end] = places_.equal_range(ref);
  for (auto at = first; at != end; ++at)
    if (at->second.kind == Place::Kind::Output) giveHistory(at->second, value);
  for (auto at = first; at != end; ++at) {
    const Place& place = at->second;
    Call& call = calls_[place.function];
    if (place.kind == Place::Kind::Input) call.inputs[place.index] = value;
    else if (place.kind == Place::Kind::Read && call.formula) call.formula->keep(place.index, value);
    else if (place.kind == Place::Kind::Read && !call.reads.empty()) call.reads[place.index] = value;
  }
}

}  // namespace fusebox::aot
