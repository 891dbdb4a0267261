#include "engine/trace/data_sizes.h"

#include <ATen/EmptyTensor.h>

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "engine/trace/convert.h"
#include "engine/trace/dispatch_state.h"
#include "engine/trace/kernel_warnings.h"
#include "engine/trace/recorder.h"
#include "engine/trace/sym_int.h"
#include "engine/trace/symbolic_call.h"
#include "engine/trace/trace_context.h"
#include "engine/trace/trace_tensor.h"

namespace fusebox::trace {

using c10::IValue;
using graph::Compare;
using graph::SymExpr;
using torch::jit::Stack;

namespace {

constexpr int64_t kLeast = 2;  ///< of hints: what holds for several is the usual case

struct Result {
  Exprs sizes, strides;
  c10::ScalarType type = at::kLong;
};

/// One call of such an operator, as a rule sees it.
struct DataCall {
  TraceContext& context;
  const OperatorFacts& facts;
  c10::ArrayRef<IValue> args;
  graph::NodeId node;  ///< that it will be

  const at::Tensor& tensor(size_t i) const { return args[i].toTensor(); }
  Exprs sizes(size_t i) const { return SymbolicCall::geometryOf(tensor(i)).sizes; }
  bool flag(size_t i) const { return args[i].toBool(); }
  SymExpr symbol(int32_t output, int32_t dim, int64_t guess, const SymExpr* atMost) const {
    return context.dataSizes().define(context, {node, output}, dim, guess, atMost, facts.name);
  }
};

Exprs rowMajor(const Exprs& sizes) { return graph::contiguousStrides(sizes); }
Result vectorOf(const SymExpr& size, c10::ScalarType type = at::kLong) { return {{size}, {1}, type}; }

/// Of `whole` elements some: neither nearly none nor nearly all.
int64_t someOf(const graph::ShapeEnv& env, const SymExpr& whole) { return env.hint(whole) / 2 + 1; }

SymExpr countOf(const DataCall& call, const at::Tensor& mask) {
  DataSizes& data = call.context.dataSizes();
  const graph::ValueRef value = asTrace(mask)->value();
  if (const SymExpr* known = data.countOf(value)) return *known;
  const SymExpr whole = graph::product(SymbolicCall::geometryOf(mask).sizes);
  const SymExpr count = call.symbol(0, 0, someOf(call.context.shapes(), whole), &whole);
  data.setCount(value, count);
  return count;
}

/// nonzero(self): positions are columns in memory.
std::vector<Result> nonzero(const DataCall& call) {
  const SymExpr count = countOf(call, call.tensor(0));
  return {{{count, static_cast<int64_t>(call.sizes(0).size())}, {1, count}}};
}

/// masked_select(self, mask)
std::optional<std::vector<Result>> maskedSelect(const DataCall& call) {
  if (call.sizes(0) != call.sizes(1) || !asTrace(call.tensor(1))) return std::nullopt;  // what is broadcast is counted otherwise
  return {{vectorOf(countOf(call, call.tensor(1)), call.tensor(0).scalar_type())}};
}

/// Whether the program says what the sizes of the results are.
bool areSizesGiven(const OperatorFacts& facts, c10::ArrayRef<IValue> args) { return facts.name == "aten::repeat_interleave.Tensor" && !args[1].isNone(); }

/// repeat_interleave.Tensor(repeats, output_size)
std::vector<Result> repeatInterleave(const DataCall& call) {
  if (areSizesGiven(call.facts, call.args)) return {vectorOf(SymbolicCall::integer(call.args[1]), call.tensor(0).scalar_type())};
  const SymExpr whole = graph::product(call.sizes(0));
  return {vectorOf(call.symbol(0, 0, 2 * call.context.shapes().hint(whole) + 1, nullptr), call.tensor(0).scalar_type())};
}

/// _unique2(self, sorted, return_inverse, return_counts)
std::vector<Result> unique(const DataCall& call) {
  const Exprs sizes = call.sizes(0);
  const SymExpr whole = graph::product(sizes), count = call.symbol(0, 0, someOf(call.context.shapes(), whole), &whole);
  return {vectorOf(count, call.tensor(0).scalar_type()), call.flag(2) ? Result{sizes, rowMajor(sizes)} : vectorOf(0),
          vectorOf(call.flag(3) ? count : SymExpr(0))};
}

/// Distinct slices along `dim`, which lie one after another.
std::vector<Result> uniqueSlices(const DataCall& call, int64_t dim) {
  Exprs sizes = call.sizes(0);
  const auto along = static_cast<size_t>(c10::maybe_wrap_dim(dim, static_cast<int64_t>(sizes.size())));
  const SymExpr whole = sizes[along], count = call.symbol(0, static_cast<int32_t>(along), someOf(call.context.shapes(), whole), &whole);
  sizes[along] = 1;
  Exprs strides = rowMajor(sizes);
  strides[along] = graph::product(sizes);
  sizes[along] = count;
  return {{sizes, strides, call.tensor(0).scalar_type()}, vectorOf(whole), vectorOf(count)};
}

/// unique_consecutive(self, return_inverse, return_counts, dim)
std::vector<Result> uniqueConsecutive(const DataCall& call) {
  if (!call.args[3].isNone()) return uniqueSlices(call, call.args[3].toInt());
  const Exprs sizes = call.sizes(0);
  const SymExpr whole = graph::product(sizes), count = call.symbol(0, 0, someOf(call.context.shapes(), whole), &whole);
  return {vectorOf(count, call.tensor(0).scalar_type()), call.flag(1) ? Result{sizes, rowMajor(sizes)} : vectorOf(0),
          vectorOf(call.flag(2) ? count : SymExpr(0))};
}

std::optional<std::vector<Result>> resultsOf(const DataCall& call, bool isCpu) {
  const std::string& name = call.facts.name;
  const bool known = !call.args.empty() && call.args[0].isTensor() && asTrace(call.tensor(0));
  if (!known || call.context.shapes().hint(graph::product(call.sizes(0))) < kLeast) return std::nullopt;
  if (name == "aten::nonzero") return nonzero(call);
  if (name == "aten::masked_select") return maskedSelect(call);
  if (name == "aten::repeat_interleave.Tensor") return repeatInterleave(call);
  if (!isCpu) return std::nullopt;  // results that nobody asks for are others there
  if (name == "aten::_unique2") return unique(call);
  if (name == "aten::unique_consecutive") return uniqueConsecutive(call);
  if (name == "aten::unique_dim" || name == "aten::unique_dim_consecutive") return uniqueSlices(call, call.args[1].toInt());
  return std::nullopt;
}

bool isMask(const at::Tensor& t) { return t.defined() && (t.scalar_type() == at::kBool || t.scalar_type() == at::kByte); }

/// Whether the sizes of masks are those of what they stand for.
bool masksFit(const Exprs& sizes, const IValue& indices, graph::ShapeEnv& env) {
  size_t d = 0;
  for (const IValue& element : indices.toListRef()) {
    const at::Tensor t = element.isTensor() ? element.toTensor() : at::Tensor();
    if (!isMask(t)) {
      ++d;
      continue;
    }
    for (const SymExpr& size : SymbolicCall::geometryOf(t).sizes)
      if (d >= sizes.size() || !env.decide(Compare::Eq, size, sizes[d++], "a mask")) return false;
  }
  return d <= sizes.size();
}

}  // namespace

std::string DataSizes::origins(const std::string& text) const {
  std::string made;
  for (const DataDefinition& known : definitions_)
    if (text.find(known.symbol.name()) != std::string::npos) made += (made.empty() ? "" : ", ") + known.symbol.name() + " is " + known.text;
  return made;
}

SymExpr DataSizes::define(TraceContext& context, graph::ValueRef value, int32_t dim, int64_t guess, const SymExpr* atMost, const std::string& who) {
  graph::ShapeEnv& env = context.shapes();
  const int64_t most = atMost ? env.hint(*atMost) : INT64_MAX;
  const size_t position = definitions_.size();
  int64_t hint = std::clamp(guess, kLeast, most);
  if (position < hints.size() && hints[position] >= kLeast && hints[position] <= most) {
    hint = hints[position];
  } else {
    // A size that happens to be another's would seem to be equal to it.
    const auto isTaken = [&](int64_t h) { return h == most || std::find(env.hints().begin(), env.hints().end(), h) != env.hints().end(); };
    int64_t free = hint;
    while (free > kLeast && isTaken(free)) --free;
    if (!isTaken(free)) hint = free;
  }
  const SymExpr made = env.dataSymbol(hint, 0, atMost && atMost->isConstant() ? atMost->constant() : INT64_MAX);
  if (atMost && !atMost->isConstant()) env.know(Compare::Le, made, *atMost);
  const graph::Provenance origin = context.recorder().origin();
  std::string text = "what " + who + " finds";
  if (origin.stack && !origin.stack->empty()) {
    const graph::SourceLine& line = origin.stack->back();
    text += " at " + line.file.substr(line.file.rfind('/') + 1) + ":" + std::to_string(line.line);
  }
  definitions_.push_back({env.dataSymbols().back(), value, dim, std::move(text)});
  return made;
}

SymExpr DataSizes::defineNumber(TraceContext& context, graph::ValueRef value, const std::string& text) {
  graph::ShapeEnv& env = context.shapes();
  const size_t position = definitions_.size();
  int64_t hint = 5;  // small: most numbers that are read say how much of something there is
  if (position < hints.size()) hint = hints[position];
  else
    while (std::find(env.hints().begin(), env.hints().end(), hint) != env.hints().end()) hint += 2;
  const SymExpr made = env.dataSymbol(hint, INT64_MIN, INT64_MAX);
  definitions_.push_back({env.dataSymbols().back(), value, -1, text});
  return made;
}

SymExpr DataSizes::defineTruth(TraceContext& context, graph::ValueRef value, bool hint, const std::string& text) {
  const SymExpr made = context.shapes().dataSymbol(hint, 0, 1);
  definitions_.push_back({context.shapes().dataSymbols().back(), value, -1, text});
  return made;
}

const SymExpr* DataSizes::countOf(graph::ValueRef mask) const {
  const auto it = counts_.find(mask);
  return it == counts_.end() ? nullptr : &it->second;
}

at::Tensor DataSizes::positionsOf(const at::Tensor& mask) {
  at::Tensor& known = positions_[asTrace(mask)->value()];
  if (!known.defined()) known = at::nonzero(mask);
  return known;
}

bool isUnused(TraceContext& context, graph::Symbol symbol) {
  const auto speaksOf = [&](const auto& self, const graph::ArgumentList& list) -> bool {
    for (const graph::Argument& argument : list) {
      if (const auto* inner = argument.as<graph::ArgumentList>(); inner && self(self, *inner)) return true;
      if (const auto* e = argument.as<SymExpr>(); e && e->contains(symbol)) return true;
    }
    return false;
  };
  for (const graph::Node& node : context.recorder().graph().nodes()) {
    if (speaksOf(speaksOf, node.args)) return false;
    for (const graph::OutputMeta& output : node.outputs)
      for (const auto* part : {&output.tensor.sizes, &output.tensor.strides})
        if (std::any_of(part->begin(), part->end(), [&](const SymExpr& e) { return e.contains(symbol); })) return false;
  }
  return true;
}

/// An index that data decide lies in its dimension of `size`. From which end it counts is no decision: it becomes index mod size.
static void settlePosition(IValue& position, const SymExpr& size, const std::string& who, TraceContext& context) {
  graph::ShapeEnv& env = context.shapes();
  const SymExpr index = SymbolicCall::integer(position);
  if (!env.isOfData(index)) return;
  const auto isFree = [&](graph::Symbol symbol) { return isUnused(context, symbol); };
  const bool isWithin = env.assume(Compare::Lt, index, size, isFree) && env.assume(Compare::Le, SymExpr(0) - size, index, isFree);
  if (!isWithin) env.specialise(index, who);
  if (!isWithin || env.provable(Compare::Le, 0, index) == true) return;
  const SymExpr fromFront = graph::mod(index, size);
  env.know(Compare::Lt, fromFront, size);
  position = toSymInt(fromFront, env);
}

void settleParts(const OperatorFacts& facts, std::vector<IValue>& args, TraceContext& context) {
  const auto sizeAt = [](const Exprs& sizes, const IValue& dim) {
    return sizes.empty() ? SymExpr(0) : sizes[static_cast<size_t>(c10::maybe_wrap_dim(dim.toInt(), static_cast<int64_t>(sizes.size())))];
  };
  const auto sizesOf = [&](size_t i) { return SymbolicCall::geometryOf(args[i].toTensor()).sizes; };
  if (facts.name == "aten::select.int") return settlePosition(args[2], sizeAt(sizesOf(0), args[1]), facts.name, context);
  if (facts.name == "aten::select_scatter") return settlePosition(args[3], sizeAt(sizesOf(0), args[2]), facts.name, context);
  if (facts.name == "aten::select_backward") return settlePosition(args[3], sizeAt(SymbolicCall::integers(args[1]), args[2]), facts.name, context);
  if (facts.name != "aten::split_with_sizes" && facts.name != "aten::unsafe_split_with_sizes") return;
  graph::ShapeEnv& env = context.shapes();
  const Exprs lengths = SymbolicCall::integers(args[1]), sizes = SymbolicCall::geometryOf(args[0].toTensor()).sizes;
  if (sizes.empty() || std::none_of(lengths.begin(), lengths.end(), [&](const SymExpr& l) { return env.isOfData(l); })) return;
  const auto isFree = [&](graph::Symbol symbol) { return isUnused(context, symbol); };
  SymExpr sum = 0;
  for (const SymExpr& length : lengths) {
    env.assume(Compare::Le, 0, length, isFree);
    sum += length;
  }
  const int64_t dim = c10::maybe_wrap_dim(env.specialise(SymbolicCall::integer(args[2]), facts.name), static_cast<int64_t>(sizes.size()));
  env.assume(Compare::Eq, sum, sizes[static_cast<size_t>(dim)], isFree);
  if (dim == 0) return;
  // The strides of what is computed from parts beside each other are others where a part is empty or single.
  for (const SymExpr& length : lengths)
    if (env.isOfData(length)) env.decide(Compare::Le, kLeast, length, facts.name);
}

bool recordDataSized(const c10::OperatorHandle& op, const OperatorFacts& facts, c10::Device device, TraceContext& context, Stack* stack) {
  if (!facts.dynamicShape) return false;
  const size_t arity = op.schema().arguments().size();
  const std::vector<IValue> args(stack->end() - static_cast<int64_t>(arity), stack->end());
  if ((!context.dataSizes().isAllowed || context.recorder().isBackward()) && !areSizesGiven(facts, args)) return false;
  const auto made = resultsOf({context, facts, args, static_cast<graph::NodeId>(context.recorder().graph().nodes().size())}, device.is_cpu());
  if (!made) return false;
  graph::ShapeEnv& env = context.shapes();
  std::vector<IValue> results;
  std::vector<Recorder::Geometry> geometries;
  for (const Result& result : *made) {
    std::vector<int64_t> sizes, strides;
    for (const SymExpr& e : result.sizes) sizes.push_back(env.hint(e));
    for (const SymExpr& e : result.strides) strides.push_back(env.hint(e));
    results.emplace_back(at::Tensor(at::detail::empty_strided_meta(sizes, strides, at::TensorOptions(result.type).device(at::kMeta))));
    SymbolicGeometry geometry{result.sizes, result.strides, 0};
    geometries.push_back(geometry.symbolic() ? std::make_shared<const SymbolicGeometry>(std::move(geometry)) : nullptr);
  }
  context.recorder().call(op, facts, args, results, device, geometries);
  torch::jit::drop(*stack, arity);
  for (IValue& result : results) stack->push_back(std::move(result));
  return true;
}

void assumeSeveral(const OperatorFacts& facts, c10::ArrayRef<IValue> args, graph::ShapeEnv& env) {
  if (env.dataSymbols().empty()) return;
  const auto several = [&](const SymExpr& e) {
    for (const graph::Symbol s : env.dataSymbols())
      if (e.contains(s)) env.decide(Compare::Le, kLeast, s, facts.name);
  };
  const auto number = [&](const IValue& v) {
    if (!v.isSymInt()) return;
    if (const auto e = exprOf(v.toSymInt())) several(*e);
  };
  const bool isPosition = facts.name == "aten::select_scatter" || facts.name == "aten::select_backward";  // it lies in its dimension, and no size comes of it
  for (const IValue& a : args) {
    if (!isPosition) number(a);
    if (a.isList() && !a.isIntList() && !a.isTensorList())
      for (const IValue& element : a.toListRef()) number(element);
    forEachTensor(a, [&](const at::Tensor& t) {
      if (auto* traced = asTrace(t); traced && traced->symbolic())
        for (const SymExpr& e : traced->symbolic()->sizes) several(e);
    });
  }
}

bool indexByPositions(const c10::OperatorHandle& op, const OperatorFacts& facts, TraceContext& context, Stack* stack) {
  const bool reads = facts.name == "aten::index.Tensor", writes = facts.name == "aten::index_put" || facts.name == "aten::_unsafe_index_put";
  if ((!reads && !writes) || !context.dataSizes().isAllowed) return false;
  const size_t arity = op.schema().arguments().size(), base = stack->size() - arity;
  const at::Tensor self = (*stack)[base].toTensor();
  bool anyMask = false, anyBytes = false, fits = asTrace(self) != nullptr;
  for (const IValue& element : (*stack)[base + 1].toListRef()) {
    const at::Tensor t = element.isTensor() ? element.toTensor() : at::Tensor();
    if (!isMask(t)) continue;
    anyMask = true;
    anyBytes = anyBytes || t.scalar_type() == at::kByte;
    const TraceTensorImpl* mask = asTrace(t);
    fits = fits && mask && t.dim() > 0 && t.device() == self.device();
    // Writing, or in backward, positions are used that are known already.
    if (fits && (writes || context.recorder().isBackward())) fits = context.dataSizes().knowsPositions(mask->value());
  }
  if (!anyMask || !fits) return false;
  if (writes) {
    const at::Tensor values = (*stack)[base + 2].toTensor();
    if (!asTrace(values) || !asTrace(values)->symbolic()) return false;
  }
  if (!masksFit(SymbolicCall::geometryOf(self).sizes, (*stack)[base + 1], context.shapes())) return false;
  if (anyBytes && !context.recorder().isBackward()) warnOfByteMasks();
  DispatchState state;
  state.neutral(c10::DispatchKeySet(kTraceKey));
  state.include(c10::DispatchKeySet(kTraceKey));
  c10::List<std::optional<at::Tensor>> indices;
  for (const IValue& element : (*stack)[base + 1].toListRef()) {
    const at::Tensor t = element.isTensor() ? element.toTensor() : at::Tensor();
    if (!isMask(t)) {
      indices.push_back(t.defined() ? std::optional(t) : std::nullopt);
      continue;
    }
    const at::Tensor positions = context.dataSizes().positionsOf(t);
    for (int64_t d = 0; d < t.dim(); ++d) indices.push_back(positions.select(1, d));
  }
  (*stack)[base + 1] = IValue(std::move(indices));
  op.callBoxed(stack);
  return true;
}

}  // namespace fusebox::trace
