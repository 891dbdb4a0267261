#include "engine/trace/fitting_values.h"

#include <ATen/EmptyTensor.h>

#include <algorithm>

#include "engine/trace/convert.h"
#include "engine/trace/shape_runner.h"
#include "engine/trace/sym_int.h"
#include "engine/trace/symbolic_call.h"
#include "engine/trace/trace_tensor.h"

namespace fusebox::trace {

using c10::IValue;
using graph::SymExpr;

namespace {

std::optional<int64_t> numberOf(const IValue& value, const graph::ShapeEnv& shapes) {
  if (value.isInt()) return value.toInt();
  const auto e = value.isSymInt() ? exprOf(value.toSymInt()) : std::nullopt;
  return e ? std::optional(shapes.hint(*e)) : std::nullopt;
}

/// What shape functions take for an argument, with the values that `shapes` has for symbols.
IValue withValues(const IValue& value, const graph::ShapeEnv& shapes) {
  if (const auto known = numberOf(value, shapes)) return *known;
  if (value.isList() && !value.isTensorList() && isSymbolic(value)) {
    std::vector<int64_t> numbers;
    for (const IValue& element : value.toListRef())
      if (const auto known = numberOf(element, shapes)) numbers.push_back(*known);
    return numbers.size() == value.toListRef().size() ? IValue(numbers) : withHints(value);
  }
  IValue made = withHints(value);
  mapTensors(made, [&](const at::Tensor& t) -> at::Tensor {
    auto* traced = asTrace(t);
    if (traced && traced->symbolic()) {
      std::vector<int64_t> sizes, strides;
      for (const SymExpr& e : traced->symbolic()->sizes) sizes.push_back(shapes.hint(e));
      for (const SymExpr& e : traced->symbolic()->strides) strides.push_back(shapes.hint(e));
      return shape::freshStrided(sizes, strides, t.scalar_type());
    }
    if (traced) return traced->meta();
    if (t.unsafeGetTensorImpl()->is_wrapped_number()) return t;
    return at::Tensor(at::detail::empty_strided_meta(t.sizes(), t.strides(), t.options().device(at::kMeta)));
  });
  return made;
}

std::vector<SymExpr> numbersOf(c10::ArrayRef<IValue> args) {
  std::vector<SymExpr> numbers;
  const auto add = [&](const IValue& value) {
    if (value.isInt()) numbers.emplace_back(value.toInt());
    else if (value.isSymInt())
      if (const auto e = exprOf(value.toSymInt())) numbers.push_back(*e);
  };
  for (const IValue& a : args) {
    add(a);
    if (a.isList() && !a.isTensorList())
      for (const IValue& element : a.toListRef()) add(element);
    forEachTensor(a, [&](const at::Tensor& t) {
      for (const SymExpr& e : SymbolicCall::geometryOf(t).sizes) numbers.push_back(e);
    });
  }
  return numbers;
}

}  // namespace

void findFitting(const c10::OperatorHandle& op, const OperatorFacts& facts, c10::ArrayRef<IValue> args, TraceContext& context) {
  const graph::ShapeEnv& shapes = context.shapes();
  if (shapes.dataSymbols().empty() || context.recorder().isBackward()) return;
  const std::vector<SymExpr> numbers = numbersOf(args);
  const auto fits = [&](const graph::ShapeEnv& tried) {
    torch::jit::Stack stack;
    for (const IValue& a : args) stack.push_back(withValues(a, tried));
    if (facts.devicePosition >= 0) stack[static_cast<size_t>(facts.devicePosition)] = c10::Device(c10::kMeta);
    if (facts.pinPosition >= 0) stack[static_cast<size_t>(facts.pinPosition)] = IValue();
    try {
      runOnMeta(op, facts, &stack);
    } catch (const std::exception&) {
      return false;
    }
    return true;
  };
  for (const graph::Symbol symbol : shapes.dataSymbols()) {
    if (std::none_of(numbers.begin(), numbers.end(), [&](const SymExpr& e) { return e.contains(symbol); })) continue;
    for (const SymExpr& number : numbers) {
      graph::ShapeEnv tried = shapes;
      if (number.contains(symbol) || !tried.assume(graph::Compare::Eq, symbol, number, [](graph::Symbol) { return true; })) continue;
      if (tried.hints() == shapes.hints() || !fits(tried)) continue;
      std::vector<int64_t> values;
      for (const DataDefinition& known : context.dataSizes().definitions()) values.push_back(tried.hint(known.symbol));
      context.dataSizes().fitting = std::move(values);
      return;
    }
  }
}

}  // namespace fusebox::trace
