#include <algorithm>
#include <numeric>

#include "engine/graph/operator_facts.h"
#include "engine/inductor/lowering/lowering.h"

/// Extern calls: operands made real with the strides that the trace saw, results as buffers of their own.
namespace fusebox::inductor {
namespace {

using graph::Argument;
using graph::ArgumentList;
using graph::OutputMeta;
using graph::TensorMeta;
using graph::ValueRef;

/// Operators whose out= form computes straight into a given row-major buffer, with its arguments before `out` unchanged.
constexpr std::pair<std::string_view, std::string_view> kOutVariants[] = {
    {"aten::mm", "aten::mm.out"},       {"aten::addmm", "aten::addmm.out"},     {"aten::bmm", "aten::bmm.out"},
    {"aten::mv", "aten::mv.out"},       {"aten::baddbmm", "aten::baddbmm.out"}, {"aten::addmv", "aten::addmv.out"},
    {graph::kExactProduct, "fusebox::exact_bmm.out"},
};

/// Views that reach an extern call are made as copies: a result that shares a planned operand's memory could outlive it.
constexpr std::pair<std::string_view, std::string_view> kCopyForms[] = {
    {"aten::view_as_real", "aten::view_as_real_copy"},
    {"aten::view_as_complex", "aten::view_as_complex_copy"},
    {"aten::_conj", "aten::_conj_copy"},
    {"aten::_neg_view", "aten::_neg_view_copy"},
    {"aten::view.dtype", "aten::view_copy.dtype"},
    {"aten::view", "aten::view_copy"},
    {"aten::_unsafe_view", "aten::view_copy"},
    {"aten::_reshape_alias", "aten::_reshape_alias_copy"},
    {"aten::as_strided", "aten::as_strided_copy"},
    {"aten::expand", "aten::expand_copy"},
    {"aten::permute", "aten::permute_copy"},
    {"aten::transpose.int", "aten::transpose_copy.int"},
    {"aten::t", "aten::t_copy"},
    {"aten::slice.Tensor", "aten::slice_copy.Tensor"},
    {"aten::select.int", "aten::select_copy.int"},
    {"aten::squeeze", "aten::squeeze_copy"},
    {"aten::squeeze.dim", "aten::squeeze_copy.dim"},
    {"aten::squeeze.dims", "aten::squeeze_copy.dims"},
    {"aten::unsqueeze", "aten::unsqueeze_copy"},
    {"aten::unfold", "aten::unfold_copy"},
    {"aten::diagonal", "aten::diagonal_copy"},
    {"aten::alias", "aten::alias_copy"},
    {"aten::detach", "aten::detach_copy"},
    {"aten::split.Tensor", "aten::split_copy.Tensor"},
    {"aten::split_with_sizes", "aten::split_with_sizes_copy"},
    {"aten::unbind.int", "aten::unbind_copy.int"},
    {"aten::lift_fresh", "aten::lift_fresh_copy"},
};

/// Those that give each element, in its place, in another form. Made along the memory of what is not row-major: the parts of a spectrum lie as it does.
constexpr std::string_view kOfEachElement[] = {"aten::view_as_real", "aten::_conj", "aten::_neg_view"};

/// The operator behind which a collective's result is there.
constexpr std::string_view kWaitTensor = "_c10d_functional::wait_tensor";

template <size_t N>
std::string_view find(const std::pair<std::string_view, std::string_view> (&table)[N], std::string_view op) {
  for (const auto& [from, to] : table) {
    if (from == op) return to;
  }
  return {};
}

bool sameStrides(const TensorMeta& m, const std::vector<SymExpr>& strides) {
  for (size_t i = 0; i < m.sizes.size(); i++) {
    if (m.sizes[i] == SymExpr(0)) return true;
  }
  for (size_t i = 0; i < m.sizes.size(); i++) {
    if (!(m.sizes[i] == SymExpr(1)) && !(m.strides[i] == strides[i])) return false;
  }
  return true;
}

/// The dimensions of a dense tensor as they follow each other in memory, outermost first; empty where that is their own order, or not known.
std::vector<int64_t> orderInMemory(const TensorMeta& m) {
  if (m.isContiguous() || !graph::isDense(m)) return {};
  if (std::any_of(m.strides.begin(), m.strides.end(), [](const SymExpr& s) { return !s.isConstant(); })) return {};
  std::vector<int64_t> order(m.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return m.strides[static_cast<size_t>(a)].constant() > m.strides[static_cast<size_t>(b)].constant();
  });
  return order;
}

/// Sizes in that order, one after the other in memory.
TensorMeta inOrder(TensorMeta m, const std::vector<int64_t>& order) {
  const std::vector<SymExpr> sizes(m.sizes.begin(), m.sizes.end());
  for (size_t i = 0; i < order.size(); i++) m.sizes[i] = sizes[static_cast<size_t>(order[i])];
  m.strides = graph::contiguousStrides(m.sizes);
  return m;
}

bool allStridesEqual(const TensorMeta& a, const TensorMeta& b) {
  return a.strides == b.strides && a.sizes == b.sizes && a.dtype == b.dtype;
}

Operation::Order orderOf(const graph::Node& node) {
  const graph::OperatorFacts& facts = graph::factsOf(node);
  if (facts.effectful || facts.writes) return Operation::Order::Effect;
  return graph::drawsRandom(node) ? Operation::Order::Draws : Operation::Order::Free;
}

}  // namespace

BufferId Lowering::viewBuffer(BufferId base, const TensorMeta& meta, const SymExpr& offset) {
  const LoweredBuffer& b = out_.buffers[static_cast<size_t>(base)];
  if (offset == SymExpr(0) && allStridesEqual(b.meta, meta)) return base;
  if (b.kind == LoweredBuffer::Kind::View && b.meta.dtype == meta.dtype) return viewBuffer(b.base, meta, b.meta.storageOffset + offset);
  std::vector<BufferId>& views = views_[base];
  for (const BufferId id : views) {
    const graph::TensorMeta& v = out_.buffers[static_cast<size_t>(id)].meta;
    if (v.storageOffset == offset && allStridesEqual(v, meta)) return id;
  }
  TensorMeta m = meta;
  m.storageOffset = offset;
  BufferId id = newBuffer(LoweredBuffer::Kind::View, m, {});
  out_.buffers[static_cast<size_t>(id)].base = base;
  views.push_back(id);
  return id;
}

BufferId Lowering::bufferFor(const LazyTensor& t, const TensorMeta& wanted) {
  if (!t.storage->isReal()) {
    // Made in the wanted layout straight away: formulas address their elements by logical index.
    if (!t.reindex && isDense(wanted)) t.storage->meta.strides = wanted.strides;
    realise(t);
  }
  TensorMeta meta = wanted;
  meta.sizes = t.sizes;
  if (auto layout = stridedLayout(t); layout && sameStrides(meta, layout->strides)) {
    return viewBuffer(t.storage->buffer, meta, layout->offset);
  }
  meta.dtype = t.dtype();
  meta.device = t.storage->meta.device;
  if (!graph::hasArithmetic(meta.dtype) || !options_.refusal(meta.device).empty())
    if (auto made = copyByOperator(t, meta)) return *made;
  LazyTensor copy = formula(meta, [t](BodyBuilder& b, const IndexList& i) { return t.load(b, i); }, {t}, 0);
  copy.storage->origins = t.viewOrigins;
  if (hasOwnPlaces(meta.sizes, meta.strides)) copy.storage->meta.strides = meta.strides;
  realise(copy);
  return viewBuffer(copy.storage->buffer, copy.storage->meta, 0);
}

BufferId Lowering::resultBuffer(size_t position, ValueRef ref, const TensorMeta& layout) {
  const LazyTensor value = resultOf(position, tensor(ref));
  if (position >= options_.firstSaved || hasOwnPlaces(value.sizes, layout.strides)) return bufferFor(value, layout);
  if (auto itself = stridedLayout(value); itself && value.storage->isReal() && sameStrides(layout, itself->strides)) return bufferFor(value, layout);
  // Whether its elements have places of their own is not known for all sizes (a slice of rows of s0), or they share some. What it is a view
  // of lies as it was traced, so its view does.
  ValueRef base = ref;
  for (const graph::Node* node = &graph_.node(base.node); graph::factsOf(*node).view && !graph::factsOf(*node).reinterprets;
       node = &graph_.node(base.node)) {
    const auto* of = node->args.empty() ? nullptr : node->args[0].as<ValueRef>();
    if (!of) break;
    base = *of;
  }
  const TensorMeta& whole = meta(base);
  if (base == ref || !isDense(whole) || whole.dtype != layout.dtype) {
    const BufferId made = bufferFor(value, layout);
    const TensorMeta own = out_.buffers[static_cast<size_t>(made)].meta;
    if (sameStrides(layout, own.strides)) return made;
    // No kernel stores there; an operator does it.
    TensorMeta laid = own;
    laid.strides = layout.strides;
    const BufferId copy = newBuffer(LoweredBuffer::Kind::Computed, laid, {});
    Operation& op = newOperation(Operation::Kind::Extern);
    op.name = "laid_out_" + std::to_string(op.id);
    op.call.op = "fusebox::laid_out";
    op.call.args = {ValueRef{made, 0}, ArgumentList(layout.strides.begin(), layout.strides.end())};
    op.call.results = {copy};
    op.call.reason = "a result whose elements may share places";
    op.reads = {value.storage->buffer};
    op.writes = {copy};
    return copy;
  }
  return viewBuffer(bufferFor(tensor(base), whole), layout, layout.storageOffset - whole.storageOffset);
}

std::optional<BufferId> Lowering::copyByOperator(const LazyTensor& t, const TensorMeta& wanted) {
  const auto layout = stridedLayout(t);
  if (!layout) return std::nullopt;
  // In the order of the wanted strides, in which the copy is row by row; seen from outside it has the dimensions of the tensor again.
  std::vector<size_t> order(wanted.sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const bool dense = isDense(wanted);
  if (dense)
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return graph::hint(wanted.strides[a]) > graph::hint(wanted.strides[b]); });
  TensorMeta from = wanted;
  for (size_t i = 0; i < order.size(); i++) {
    from.sizes[i] = wanted.sizes[order[i]];
    from.strides[i] = layout->strides[order[i]];
  }
  const BufferId source = viewBuffer(t.storage->buffer, from, layout->offset);
  TensorMeta rows = from;
  rows.strides = graph::contiguousStrides(rows.sizes);
  rows.storageOffset = 0;
  const BufferId copy = newBuffer(LoweredBuffer::Kind::Computed, rows, {});
  Operation& op = newOperation(Operation::Kind::Extern);
  op.name = "copy_" + std::to_string(op.id);
  op.call.op = "aten::clone";
  op.call.args = {ValueRef{source, 0}, graph::MemoryFormat{0}};
  op.call.results = {copy};
  op.call.reason = "a copy of an element type without code";
  op.reads = {t.storage->buffer};
  op.writes = {copy};
  if (current_) op.origins = {current_->id};
  if (!dense) return copy;
  TensorMeta seen = wanted;
  return viewBuffer(copy, seen, 0);
}

namespace {

/// Batched products by the position of their first factor.
constexpr std::pair<std::string_view, size_t> kBatchedProducts[] = {{"aten::bmm", 0}, {"aten::baddbmm", 1}};

/// The layout for argument `position` of a call.
ExternLayout argumentLayout(const graph::Node& node, size_t position, ExternLayout ofCall) {
  for (const auto& [op, first] : kBatchedProducts)
    if (op == node.op && (position == first || position == first + 1)) return ExternLayout::Matrices;
  return ofCall;
}

/// Whether the matrices of a batch lie by rows or by columns. Those that do not are copied one by one for every product on a CPU.
bool liesAsMatrices(const TensorMeta& m) {
  const auto lines = [&](size_t across, size_t along) {
    return graph::hint(m.strides[along]) == 1 && (graph::hint(m.sizes[across]) == 1 || graph::hint(m.strides[across]) >= graph::hint(m.sizes[along]));
  };
  return lines(1, 2) || lines(2, 1);
}

}  // namespace

Argument Lowering::externArgument(const Argument& arg, ExternLayout layout, std::vector<BufferId>& reads) {
  if (const auto* list = arg.as<ArgumentList>()) {
    ArgumentList out;
    for (const Argument& a : *list) out.push_back(externArgument(a, layout, reads));
    return out;
  }
  const auto* v = arg.as<ValueRef>();
  if (!v) return arg;
  const OutputMeta& m = graph_.meta(*v);
  if (m.kind == OutputMeta::Kind::SymInt) return m.scalar;
  if (m.kind == OutputMeta::Kind::None) return {};
  TensorMeta wanted = m.tensor;
  const bool relay = layout == ExternLayout::ChannelsLast && wanted.sizes.size() == 4;
  if (relay) wanted.strides = channelsLastStrides(wanted.sizes);
  if (layout == ExternLayout::Matrices && wanted.device.kind == graph::DeviceKind::Cpu && !liesAsMatrices(wanted))
    wanted.strides = graph::contiguousStrides(wanted.sizes);
  BufferId id = bufferFor(tensor(*v), wanted);
  if (relay && tensor(*v).storage->buffer == id) tensor(*v).storage->relaid = true;
  reads.push_back(id);
  return ValueRef{id, 0};
}

void Lowering::realiseChecks() {
  for (; checksRealised_ < static_cast<size_t>(current_->id); checksRealised_++) {
    for (const LazyTensor& value : values_[checksRealised_]) {
      if (!value.storage || value.storage->isReal()) continue;
      BodyBuilder trial;  // the formula by itself: what it reads is looked at in its turn
      trial.readOnly();
      trial.store(0, 0, value.storage->compute(trial, freshIndex(value.storage->meta.sizes, "t")));
      const Section section = trial.finish({}, false);
      if (std::any_of(section.values.begin(), section.values.end(), [](const Value& v) { return v.op == Op::Check; })) realise(value);
    }
  }
}

std::vector<LazyTensor> Lowering::externCall(const graph::Node& node, std::string reason, ExternLayout layout) {
  if (auto changed = callInPlace(node, reason)) return std::move(*changed);
  const Operation::Order place = orderOf(node);
  if (place == Operation::Order::Effect) realiseChecks();
  std::vector<BufferId> used;
  ArgumentList args;
  std::vector<int64_t> order;
  if (std::find(std::begin(kOfEachElement), std::end(kOfEachElement), node.op) != std::end(kOfEachElement))
    order = orderInMemory(graph_.meta(*node.args[0].as<ValueRef>()).tensor);
  if (order.empty()) {
    for (size_t i = 0; i < node.args.size(); i++) args.push_back(externArgument(node.args[i], argumentLayout(node, i, layout), used));
  } else {
    const ValueRef given = *node.args[0].as<ValueRef>();
    used.push_back(bufferFor(permute(tensor(given), order), inOrder(graph_.meta(given).tensor, order)));
    args.push_back(ValueRef{used.back(), 0});
  }

  std::vector<BufferId> writes;
  // A collective writes its result, and reads its operands, until it is waited for: who reads the one comes after that, who writes to the others too.
  if (const auto* awaited = node.op == kWaitTensor ? node.args[0].as<ValueRef>() : nullptr) {
    for (BufferId id : used) writes.push_back(baseOf(id));
    if (const graph::Node& start = graph_.node(awaited->node); graph::factsOf(start).collective)
      graph::Graph::forEachValue(start.args, [&](ValueRef operand) {
        if (const LazyTensor& value = tensor(operand); value.storage && value.storage->isReal()) used.push_back(value.storage->buffer);
      });
  }

  ExternStep call;
  call.op = node.op;
  call.args = std::move(args);
  call.resultIsList = node.outputIsList;
  call.reason = std::move(reason);
  call.withGrad = !node.noGrad && !node.isBackward;
  if (auto copy = find(kCopyForms, node.op); !copy.empty()) call.op = copy;

  std::vector<LazyTensor> values(node.outputs.size());
  bool contiguous = true;
  for (size_t i = 0; i < node.outputs.size(); i++) {
    const OutputMeta& o = node.outputs[i];
    if (o.kind != OutputMeta::Kind::Tensor) {
      // An integer is known from the trace, which those who read it were given; the run checks that it still holds.
      call.integers.resize(node.outputs.size());
      if (o.kind == OutputMeta::Kind::SymInt) call.integers[i] = o.scalar.maybeConstant();
      call.results.push_back(-1);
      continue;
    }
    TensorMeta meta = o.tensor;
    meta.storageOffset = 0;
    if (call.op != node.op) meta = inOrder(std::move(meta), order);
    const bool relay = layout == ExternLayout::ChannelsLast && meta.sizes.size() == 4;
    if (relay) meta.strides = channelsLastStrides(meta.sizes);
    contiguous &= meta.isContiguous();
    BufferId id = newBuffer(LoweredBuffer::Kind::Computed, meta, {});
    call.results.push_back(id);
    writes.push_back(id);
    values[i] = bufferTensor(id, meta, node.id);
    values[i].storage->relaid = relay;
    if (!order.empty()) {
      std::vector<int64_t> back(meta.sizes.size(), static_cast<int64_t>(order.size()));
      for (size_t d = 0; d < order.size(); d++) back[static_cast<size_t>(order[d])] = static_cast<int64_t>(d);
      values[i] = permute(values[i], back);
    }
  }
  if (contiguous && node.outputs.size() == 1) call.outVariant = find(kOutVariants, node.op);

  Operation& op = newOperation(Operation::Kind::Extern);
  op.name = graph::shortName(node.op) + "_" + std::to_string(op.id);
  op.call = std::move(call);
  op.writes = std::move(writes);
  op.origins = {node.id};
  op.order = place;
  for (BufferId id : used) {
    const LoweredBuffer& b = out_.buffers[static_cast<size_t>(id)];
    BufferId base = b.kind == LoweredBuffer::Kind::View ? b.base : id;
    if (std::find(op.reads.begin(), op.reads.end(), base) == op.reads.end()) op.reads.push_back(base);
  }
  return values;
}

}  // namespace fusebox::inductor
