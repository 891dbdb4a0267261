#include "engine/runtime/graph_interpreter.h"

#include <c10/core/GradMode.h>

#include "engine/graph/operator_facts.h"
#include "engine/runtime/argument_binding.h"
#include "engine/runtime/compiled_graph.h"
#include "engine/runtime/differentiable_forms.h"
#include "engine/runtime/dispatch_scope.h"
#include "engine/runtime/effect_log.h"
#include "engine/runtime/running_call.h"
#include "engine/runtime/symbol_binding.h"
#include "engine/support/clock.h"

namespace fusebox::runtime {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::NodeKind;

/// State of one walk over a graph.
class Interpreter {
 public:
  Interpreter(const Graph& graph, c10::ArrayRef<at::Tensor> inputs, c10::ArrayRef<at::Tensor> constants,
              c10::ArrayRef<at::Generator> generators, const graph::SymbolValues& symbols, bool isDifferentiable,
              const NodeObserver* observer = nullptr, const ValueObserver* valueObserver = nullptr)
      : graph_(graph), inputs_(inputs), constants_(constants), generators_(generators), isDifferentiable_(isDifferentiable), symbols_(symbols), observer_(observer),
        valueObserver_(valueObserver) {
    int32_t next = 0;
    for (const Node& node : graph.nodes()) {
      firstSlot_.push_back(next);
      next += static_cast<int32_t>(node.outputs.size());
    }
    values_.resize(static_cast<size_t>(next));
    lastUse_.assign(static_cast<size_t>(next), -1);
    for (const Node& node : graph.nodes())
      Graph::forEachValue(node.args, [&](graph::ValueRef ref) { lastUse_[static_cast<size_t>(slotOf(ref))] = node.id; });
  }

  Result<std::vector<at::Tensor>> run() {
    for (const Node& node : graph_.nodes()) {
      if (node.kind == NodeKind::Output) return results(node);
      if (auto done = step(node); !done) return tl::unexpected(done.error());
      releaseDeadValues(node);
    }
    return fail(ErrorCode::InvalidArgument, "graph has no output node", graph_.name);
  }

 private:
  int32_t slotOf(graph::ValueRef ref) const { return firstSlot_[static_cast<size_t>(ref.node)] + ref.output; }

  Result<void> step(const Node& node) {
    if (node.kind == NodeKind::Call) return call(node);
    auto source = node.kind == NodeKind::Placeholder ? inputs_ : constants_;
    if (node.outputs[0].kind != graph::OutputMeta::Kind::Tensor) return {};
    if (node.index < 0 || static_cast<size_t>(node.index) >= source.size())
      return fail(ErrorCode::InvalidArgument, "too few inputs or constants", node.name);
    const at::Tensor& value = source[static_cast<size_t>(node.index)];
    values_[static_cast<size_t>(slotOf({node.id, 0}))] = value;
    if (value.defined()) bindSymbols(symbols_, node.outputs[0].tensor, value);
    return {};
  }

  Result<void> call(const Node& node) {
    auto handle = findOperator(node.op);
    if (!handle) return tl::unexpected(handle.error());
    auto arguments = bindArguments(
        handle->schema(), node.args, [this](graph::ValueRef ref) { return slotOf(ref); }, generators_);
    if (!arguments) return tl::unexpected(arguments.error());
    torch::jit::Stack stack;
    for (const BoundArgument& argument : *arguments)
      stack.push_back(materialise(
          argument, [this](int32_t slot) -> const at::Tensor& { return values_[static_cast<size_t>(slot)]; }, symbols_));
    // Below autograd the mode is what eager's kernels would see: some keep more for backward with gradients on.
    c10::AutoGradMode mode(isDifferentiable_ ? c10::GradMode::is_enabled() && !node.noGrad : !node.noGrad && !node.isBackward);
    const bool isNoted = !isDifferentiable_ && !graph::factsOf(node).repeatable;
    const int64_t startNs = observer_ ? nowNs() : 0;
    const RunningCall running(*handle);
    if (isDifferentiable_) {
      cutStatistics(handle->schema(), stack);
      lieAsTraced(node, stack);
    }
    if (isDifferentiable_ && callDifferentiableForm(node.op, stack)) return storeOutputs(node, stack);
    if (!isNoted || !answerFromReplay(*handle, &stack)) handle->callBoxed(stack);
    if (observer_) (*observer_)(node, startNs, nowNs() - startNs);
    if (isNoted) noteEffect(*handle, stack);
    return storeOutputs(node, stack);
  }

  /// Eager's norms give statistics without a history, and the derivative of their backward is one by its input alone. Here operators may have
  /// computed them. (Those of group and RMS norms have forms of their own.)
  static void cutStatistics(const c10::FunctionSchema& schema, torch::jit::Stack& stack) {
    const bool isOfRows = schema.name() == "aten::native_layer_norm_backward";
    for (size_t i = 0; i < stack.size(); ++i) {
      const std::string& name = schema.arguments()[i].name();
      const bool isStatistic = name.starts_with("save_") || (isOfRows && (name == "mean" || name == "rstd"));
      if (isStatistic && stack[i].isTensor() && stack[i].toTensor().defined()) stack[i] = stack[i].toTensor().detach();
    }
  }

  /// A view is one of memory as it was traced. What is written as other operators lies as these please.
  void lieAsTraced(const Node& node, torch::jit::Stack& stack) const {
    const auto* ref = node.args.empty() ? nullptr : node.args[0].as<graph::ValueRef>();
    const bool looksAtMemory = node.op == "aten::view" || node.op == "aten::_unsafe_view" || node.op == "aten::view.dtype" || node.op == "aten::as_strided";
    if (!ref || !looksAtMemory || stack.empty() || !stack[0].isTensor()) return;
    const at::Tensor given = stack[0].toTensor();
    std::vector<int64_t> strides;
    for (const graph::SymExpr& stride : graph_.meta(*ref).tensor.strides) {
      const auto known = symbols_.evaluate(stride);
      if (!known) return;
      strides.push_back(*known);
    }
    if (strides.size() != static_cast<size_t>(given.dim()) || given.strides() == strides) return;
    bool lies = true;  // the stride of a single element says nothing
    for (int64_t d = 0; d < given.dim(); ++d) lies = lies && (given.size(d) < 2 || given.stride(d) == strides[static_cast<size_t>(d)]);
    if (!lies && given.is_non_overlapping_and_dense()) stack[0] = given.new_empty_strided(given.sizes(), strides).copy_(given);
  }

  Result<void> storeOutputs(const Node& node, const torch::jit::Stack& stack) {
    size_t next = 0;
    auto put = [&](at::Tensor tensor) {
      if (next < node.outputs.size()) {
        checkPredicted(node, node.outputs[next], tensor);
        const graph::ValueRef ref{node.id, int32_t(next)};
        if (valueObserver_) (*valueObserver_)(ref, tensor);
        values_[static_cast<size_t>(slotOf(ref))] = std::move(tensor);
      }
      ++next;
    };
    for (const c10::IValue& value : stack) {
      if (value.isTensorList()) {
        for (const at::Tensor& tensor : value.toTensorVector()) put(tensor);
      } else {
        put(value.isTensor() ? value.toTensor() : at::Tensor());
      }
    }
    if (next != node.outputs.size())
      return fail(ErrorCode::Internal, "operator returned another number of values than the graph says", node.name);
    return {};
  }

  /// What the program was told of a value must hold, as in compiled code. Memory that one operator leaves for another is not looked at.
  void checkPredicted(const Node& node, const graph::OutputMeta& said, const at::Tensor& value) const {
    if (isDifferentiable_ || said.kind != graph::OutputMeta::Kind::Tensor || said.tensor.dtype == graph::DType::Undefined || !value.defined()) return;
    const graph::TensorMeta& meta = said.tensor;
    std::vector<int64_t> sizes;
    for (const graph::SymExpr& size : meta.sizes) {
      const auto known = symbols_.evaluate(size);
      if (!known) return;
      sizes.push_back(*known);
    }
    const bool isLeftMemory = meta.dtype == graph::DType::UInt8 && sizes == std::vector<int64_t>{0};
    const auto type = static_cast<at::ScalarType>(meta.dtype);
    if (!isLeftMemory && (value.sizes() != sizes || value.scalar_type() != type))
      throw Mispredicted(node.op, c10::str(node.op, " gave ", value.scalar_type(), value.sizes(), ", where the compiler predicted ", type, sizes));
  }

  void releaseDeadValues(const Node& node) {
    Graph::forEachValue(node.args, [&](graph::ValueRef ref) {
      const auto slot = static_cast<size_t>(slotOf(ref));
      if (lastUse_[slot] == node.id) values_[slot].reset();
    });
  }

  Result<std::vector<at::Tensor>> results(const Node& output) {
    std::vector<at::Tensor> tensors;
    for (const graph::Argument& argument : output.args) {
      auto* ref = argument.as<graph::ValueRef>();
      tensors.push_back(ref ? values_[static_cast<size_t>(slotOf(*ref))] : at::Tensor());
    }
    return tensors;
  }

  const Graph& graph_;
  c10::ArrayRef<at::Tensor> inputs_, constants_;
  c10::ArrayRef<at::Generator> generators_;
  bool isDifferentiable_;
  std::vector<int32_t> firstSlot_;  ///< slot of output 0 of each node
  std::vector<NodeId> lastUse_;
  std::vector<at::Tensor> values_;
  graph::SymbolValues symbols_;
  const NodeObserver* observer_;
  const ValueObserver* valueObserver_;
};

}  // namespace

Result<std::vector<at::Tensor>> runEager(const Graph& graph, c10::ArrayRef<at::Tensor> inputs,
                                         c10::ArrayRef<at::Tensor> constants, c10::ArrayRef<at::Generator> generators,
                                         const graph::SymbolValues& symbols, const NodeObserver& observer) {
  DispatchScope scope;
  return Interpreter(graph, inputs, constants, generators, symbols, false, observer ? &observer : nullptr).run();
}

Result<std::vector<at::Tensor>> runDifferentiable(const Graph& graph, c10::ArrayRef<at::Tensor> inputs,
                                                  c10::ArrayRef<at::Tensor> constants, const graph::SymbolValues& symbols,
                                                  const ValueObserver& observer) {
  c10::impl::ExcludeDispatchKeyGuard noAutocast(c10::autocast_dispatch_keyset);
  return Interpreter(graph, inputs, constants, {}, symbols, true, nullptr, observer ? &observer : nullptr).run();
}

}  // namespace fusebox::runtime
