#include "engine/trace/zero_tensors.h"

#include <ATen/FunctionalTensorWrapper.h>

#include <algorithm>

#include "engine/trace/trace_tensor.h"

namespace fusebox::trace {
namespace {

namespace functional = at::functionalization::impl;

bool isOneOf(std::string_view name, std::initializer_list<std::string_view> names) { return std::ranges::find(names, name) != names.end(); }

/// A view or copy: zeros of zeros.
bool givesWhatItTakes(const OperatorFacts& facts, const c10::OperatorHandle& op) {
  const auto& arguments = op.schema().arguments();
  const auto* alias = arguments.empty() ? nullptr : arguments[0].alias_info();
  return (alias && !alias->isWrite() && op.schema().returns().size() == 1) || isOneOf(facts.name, {"aten::clone", "aten::_to_copy", "aten::neg"});
}

}  // namespace

bool ZeroTensors::isZero(const c10::IValue& value) const {
  if (!value.isTensor() || !value.toTensor().defined()) return false;
  const at::Tensor& t = value.toTensor();
  if (functional::isFunctionalTensor(t) && !functional::unsafeGetFunctionalWrapper(t)->is_up_to_date()) return false;  // written to through an alias
  auto* traced = asTraceThroughWrapper(t);
  return traced && nodes_.count(traced->value().node) > 0;
}

void ZeroTensors::note(const c10::IValue& value) {
  if (auto* traced = value.isTensor() ? asTraceThroughWrapper(value.toTensor()) : nullptr) nodes_.insert(traced->value().node);
}

bool ZeroTensors::apply(const OperatorFacts& facts, const c10::OperatorHandle& op, torch::jit::Stack* stack, const std::function<void()>& below) {
  const size_t arity = op.schema().arguments().size();
  const auto argument = [&](size_t i) -> const c10::IValue& { return (*stack)[stack->size() - arity + i]; };
  if (facts.name == "aten::_efficientzerotensor") {
    const auto type = argument(1).toOptional<at::ScalarType>();
    const auto device = argument(3).toOptional<at::Device>();
    at::Tensor zeros = at::zeros_symint(argument(0).toSymIntVector(), at::TensorOptions().dtype(type).device(device));
    torch::jit::drop(*stack, arity);
    stack->emplace_back(std::move(zeros));
    note(stack->back());
    return true;
  }
  if (empty() || arity == 0) return false;
  const bool first = isZero(argument(0)), second = arity > 1 && isZero(argument(1));
  const bool product = isOneOf(facts.name, {"aten::mul.Tensor", "aten::mul.Scalar"}), quotient = isOneOf(facts.name, {"aten::div.Tensor", "aten::div.Scalar"});
  const bool sum = isOneOf(facts.name, {"aten::add.Tensor", "aten::sub.Tensor"});
  if (first && givesWhatItTakes(facts, op)) {
    below();
    note(stack->back());
    return true;
  }
  if (!((product && (first || second)) || (quotient && first) || (sum && first && second))) return false;
  below();  // for its size and dtype
  const at::Tensor like = stack->back().toTensor();
  stack->back() = at::zeros_symint(like.sym_sizes(), like.options());
  note(stack->back());
  return true;
}

}  // namespace fusebox::trace
