#include <cmath>
#include <limits>

#include "engine/inductor/lowering/lowering.h"
#include "engine/inductor/schedule/one_hot_sum.h"
#include "engine/inductor/lowering/realise_policy.h"
#include "engine/inductor/ir/val.h"

/// Sums, extrema, means, variances and norms.
namespace fusebox::inductor {
namespace {

using graph::Node;
using Values = std::vector<LazyTensor>;
using Map = std::function<Val(Val)>;

/// What is reduced over: `reduced[d]` for each dimension, and how many elements go into one result.
struct Reach {
  std::vector<bool> reduced;
  SymExpr count = 1;
};

Reach reachOf(const LazyTensor& x, const std::vector<int64_t>& dims, bool allWhenEmpty = true) {
  Reach r;
  r.reduced.assign(x.rank(), dims.empty() && allWhenEmpty);
  for (int64_t d : dims) {
    if (x.rank()) r.reduced[static_cast<size_t>(wrapDim(d, x.rank()))] = true;
  }
  for (size_t i = 0; i < x.rank(); i++) {
    if (r.reduced[i]) r.count *= x.sizes[i];
  }
  return r;
}

/// An operator that keeps other dimensions than its lowering does must not be stored beside its result. The result has the kept dimensions,
/// with 1 for reduced ones where its rank says so.
void requireKept(const IndexList& sizes, const std::vector<bool>& reduced, const graph::TensorMeta& meta) {
  IndexList kept;
  const bool keepDim = meta.sizes.size() == sizes.size();
  for (size_t i = 0; i < sizes.size(); i++) {
    if (!reduced[i]) kept.push_back(sizes[i]);
    else if (keepDim) kept.emplace_back(1);
  }
  if (kept != meta.sizes) throw NotLowered("a reduction whose result has not the sizes that are kept");
}

/// The dimensions of argument `at`. `emptyIsNone`: an empty list names no dimension (any, all); else it stands for all, as None does.
Reach reachOf(const NodeArgs& args, const LazyTensor& x, int at, bool emptyIsNone = false) {
  if (at < 0 || args.isNone(static_cast<size_t>(at))) return reachOf(x, {});
  return reachOf(x, args.integers(static_cast<size_t>(at)), !emptyIsNone);
}

/// For what is computed in another way where there is one element.
void requireOneOrMany(const Reach& reach) {
  if (!reach.count.isConstant() && reach.count.bounds().first < 2) throw NotLowered("a reduction that may be over a single element");
}

Val countValue(BodyBuilder& b, const SymExpr& count, DType type) { return {&b, b.cast(b.index(count), type)}; }

ValueId combine(BodyBuilder& b, ReduceKind kind, DType type, ValueId x, ValueId y) {
  switch (kind) {
    case ReduceKind::Sum: return b.emit(Op::Add, type, {x, y});
    case ReduceKind::Prod: return b.emit(Op::Mul, type, {x, y});
    case ReduceKind::Max: return b.emit(Op::Maximum, type, {y, x});  // of equal ones the second operand is taken: the earlier element
    case ReduceKind::Min: return b.emit(Op::Minimum, type, {y, x});
    case ReduceKind::Any: return b.emit(Op::BitOr, type, {x, y});
    default: return b.emit(Op::BitAnd, type, {x, y});
  }
}

/// A reduction of a few elements as arithmetic: every one of them is read in the formula.
LazyTensor unrolled(Lowering& lowering, const graph::TensorMeta& meta, const LazyTensor& x, const Reach& reach,
                    ReduceKind kind, DType type, const Map& before, const Map& after) {
  requireKept(x.sizes, reach.reduced, meta);
  const int64_t count = reach.count.constant();
  if (!x.storage->isReal() && (x.storage->heavy || x.storage->opCount * count > realise_policy::kOperations)) lowering.realise(x);
  auto compute = [=](BodyBuilder& b, const IndexList& index) {
    const bool keepDim = index.size() == x.rank();
    // A sum begins with 0, which makes 0 of -0.
    ValueId total = kind == ReduceKind::Sum && graph::isFloatingPoint(type) ? b.constant(0, type) : -1;
    for (int64_t k = 0; k < count; k++) {
      IndexList at(x.rank());
      int64_t rest = k;
      for (size_t d = x.rank(), o = index.size(); d-- > 0;) {
        if (reach.reduced[d]) {
          int64_t extent = x.sizes[d].constant();
          at[d] = rest % extent;
          rest /= extent;
          if (keepDim) o--;
        } else {
          at[d] = index[--o];
        }
      }
      ValueId v = before(Val{&b, x.load(b, at)}).to(type).id;
      total = total < 0 ? v : combine(b, kind, type, total, v);
    }
    return b.cast(after(Val{&b, total}).id, computeType(meta.dtype));
  };
  return lowering.formula(meta, compute, {x}, static_cast<int>(count) * (x.storage->opCount + 1));
}

/// One reduction with one result: after(reduce(before(x))).
LazyTensor reduceOne(Lowering& lowering, const graph::TensorMeta& meta, const LazyTensor& x, const Reach& reach,
                     ReduceKind kind, DType type, const Map& before, const Map& after) {
  auto count = reach.count.maybeConstant();
  auto results = graph::product(meta.sizes).maybeConstant();
  bool few = count && *count >= 1 && *count <= realise_policy::kUnrolledReduction && (*count == 1 || !results || *results > 1);
  if (few) return unrolled(lowering, meta, x, reach, kind, type, before, after);
  ReductionSpec spec{kind, type, [=](BodyBuilder& b, const IndexList& i) {
                       return std::array<ValueId, 3>{before(Val{&b, x.load(b, i)}).to(type).id, -1, -1};
                     }};
  ReductionResult result{meta, [=](BodyBuilder& b) { return after(Val{&b, b.reduced(0, 0, type)}).id; }};
  return lowering.reduce(x.sizes, reach.reduced, {spec}, {result}, {x}).front();
}

Val same(Val v) { return v; }

DType accumulateType(const graph::TensorMeta& meta) { return computeType(meta.dtype); }

/// Lowering of operators with the arguments (self, dims, ...): `dimsAt` is the position of the dimensions, -1 for all.
LowerFn simple(ReduceKind kind, int dimsAt) {
  return [=](Lowering& lowering, const Node& node) -> Values {
    NodeArgs args(node);
    const LazyTensor& x = lowering.tensor(args, 0);
    const graph::TensorMeta& meta = node.outputs[0].tensor;
    const bool logic = kind == ReduceKind::Any || kind == ReduceKind::All;
    Reach reach = reachOf(args, x, dimsAt, logic);
    DType type = logic ? DType::Bool : accumulateType(meta);
    if (type == DType::Bool && !logic) {
      if (kind != ReduceKind::Max && kind != ReduceKind::Min) throw NotLowered("arithmetic reduction to booleans");
      return {reduceOne(lowering, meta, x, reach, kind == ReduceKind::Max ? ReduceKind::Any : ReduceKind::All, type, same, same)};
    }
    Map before = [type](Val v) { return v.to(type); };
    return {reduceOne(lowering, meta, x, reach, kind, type, before, same)};
  };
}

Values mean(Lowering& lowering, const Node& node, int dimsAt) {
  NodeArgs args(node);
  const LazyTensor& x = lowering.tensor(args, 0);
  const graph::TensorMeta& meta = node.outputs[0].tensor;
  Reach reach = reachOf(args, x, dimsAt);
  DType type = accumulateType(meta);
  Map after = [n = reach.count, type](Val v) { return v / countValue(*v.b, n, type); };
  return {reduceOne(lowering, meta, x, reach, ReduceKind::Sum, type, [type](Val v) { return v.to(type); }, after)};
}

/// Largest (or smallest) value and where it is, along one dimension.
Values extremeWithIndex(Lowering& lowering, const Node& node, ReduceKind value, ReduceKind position) {
  NodeArgs args(node);
  const LazyTensor x = lowering.tensor(args, 0);
  DType type = computeType(x.dtype());
  if (type == DType::Bool) throw NotLowered("extremum of booleans with its index");
  if (x.rank() == 0) throw NotLowered("extremum of a scalar");
  Reach reach = reachOf(x, {args.integer(1)});
  auto input = [x](BodyBuilder& b, const IndexList& i) { return std::array<ValueId, 3>{x.load(b, i), -1, -1}; };
  std::vector<ReductionSpec> specs = {{value, type, input}, {position, type, input}};
  std::vector<ReductionResult> results = {
      {node.outputs[0].tensor, [type](BodyBuilder& b) { return b.reduced(0, 0, type); }},
      {node.outputs[1].tensor, [](BodyBuilder& b) { return b.reduced(1, 0, DType::Int64); }},
  };
  return lowering.reduce(x.sizes, reach.reduced, specs, results, {x});
}

Values position(Lowering& lowering, const Node& node, ReduceKind kind) {
  NodeArgs args(node);
  const LazyTensor x = lowering.tensor(args, 0);
  if (x.dtype() == DType::Bool) throw NotLowered("position in booleans");
  if (x.rank() == 0) throw NotLowered("position in a scalar");
  Reach reach = reachOf(args, x, 1);
  ReductionSpec spec{kind, computeType(x.dtype()), [x](BodyBuilder& b, const IndexList& i) {
                       return std::array<ValueId, 3>{x.load(b, i), -1, -1};
                     }};
  ReductionResult result{node.outputs[0].tensor, [](BodyBuilder& b) { return b.reduced(0, 0, DType::Int64); }};
  return lowering.reduce(x.sizes, reach.reduced, {spec}, {result}, {x});
}

/// Which of variance, its root and the mean an operator returns, in order.
enum class Moment : uint8_t { Variance, Deviation, Mean };

/// `wide`: float64 accumulators on a CPU, as eager's kernel of variances has. Far from 0, float32 would leave few digits.
Values moments(Lowering& lowering, const Node& node, const std::vector<Moment>& wanted, int dimsAt, double correction, bool wide) {
  NodeArgs args(node);
  const LazyTensor x = lowering.tensor(args, 0);
  Reach reach = reachOf(args, x, dimsAt);
  if (!graph::isFloatingPoint(x.dtype())) throw NotLowered("variance of integers");
  const DType narrow = computeType(x.dtype());
  const DType type = wide && node.outputs[0].tensor.device.kind == graph::DeviceKind::Cpu ? DType::Float64 : narrow;
  auto element = [x, type](BodyBuilder& b, const IndexList& i) { return std::array<ValueId, 3>{Val{&b, x.load(b, i)}.to(type).id, -1, -1}; };
  std::vector<ReductionSpec> specs = {{ReduceKind::Welford, type, element, true}};
  // The mean of one element is that element, infinite ones too, of which Welford's method makes NaN; that of none is NaN.
  const bool isOne = reach.count == SymExpr(1), mayBeOne = !isOne && reach.count.bounds().first < 2;
  if (isOne || mayBeOne) specs.push_back({ReduceKind::Max, type, element, true});
  auto variance = [n = reach.count, type, correction](BodyBuilder& b) {
    Val degrees = maximum(countValue(b, n, type) - correction, 0.0);
    return abs(Val{&b, b.reduced(0, 1, type)}) / degrees;  // where squares overflow, the sum may be negative
  };
  std::vector<ReductionResult> results;
  for (size_t i = 0; i < wanted.size(); i++) {
    std::function<ValueId(BodyBuilder&)> value;
    switch (wanted[i]) {
      case Moment::Variance: value = [variance, narrow](BodyBuilder& b) { return variance(b).to(narrow).id; }; break;
      case Moment::Deviation: value = [variance, narrow](BodyBuilder& b) { return sqrt(variance(b)).to(narrow).id; }; break;
      case Moment::Mean:
        value = [n = reach.count, type, narrow, isOne, mayBeOne](BodyBuilder& b) {
          Val mean{&b, b.reduced(isOne ? 1 : 0, 0, type)};
          if (mayBeOne) {
            const Val count{&b, b.index(n)}, of{&b, b.reduced(1, 0, type)};
            mean = where(count < 2.0, where(count < 1.0, of.num(std::numeric_limits<double>::quiet_NaN()), of), mean);
          }
          return mean.to(narrow).id;
        };
        break;
    }
    results.push_back({node.outputs[i].tensor, std::move(value)});
  }
  return lowering.reduce(x.sizes, reach.reduced, specs, results, {x});
}

/// Overloads of var and its kin: (self, dim?, correction?, keepdim), (self, unbiased), (self, dim?, unbiased, keepdim).
void addMoments(LowerTable& table, const char* const (&names)[3], std::vector<Moment> wanted) {
  table.emplace(names[0], [wanted](Lowering& l, const Node& n) {
    return moments(l, n, wanted, 1, NodeArgs(n).numberOr(2, 1), true);
  });
  table.emplace(names[1], [wanted](Lowering& l, const Node& n) {
    NodeArgs args(n);
    return moments(l, n, wanted, -1, args.isNone(1) || args.boolean(1) ? 1 : 0, true);
  });
  table.emplace(names[2], [wanted](Lowering& l, const Node& n) {
    NodeArgs args(n);
    return moments(l, n, wanted, 1, args.isNone(2) || args.boolean(2) ? 1 : 0, false);
  });
}

Values vectorNorm(Lowering& lowering, const Node& node, double order, int dimsAt) {
  NodeArgs args(node);
  const LazyTensor& x = lowering.tensor(args, 0);
  const graph::TensorMeta& meta = node.outputs[0].tensor;
  Reach reach = reachOf(args, x, dimsAt);
  DType type = accumulateType(meta);
  auto one = [&](ReduceKind kind, Map before, Map after) -> Values {
    Map converted = [type, before](Val v) { return before(v.to(type)); };
    return {reduceOne(lowering, meta, x, reach, kind, type, converted, after)};
  };
  requireOneOrMany(reach);
  Map magnitude = [](Val v) { return abs(v); };
  // Of one element every norm but that of order 0 is its magnitude, which must not overflow on the way.
  if (reach.count == SymExpr(1) && order != 0) return one(ReduceKind::Sum, magnitude, same);
  if (order == 2) return one(ReduceKind::Sum, [](Val v) { return v * v; }, [](Val v) { return sqrt(v); });
  if (order == 1) return one(ReduceKind::Sum, magnitude, same);
  if (order == 0) return one(ReduceKind::Sum, [](Val v) { return where(v == 0.0, v.num(0), v.num(1)); }, same);
  if (std::isinf(order)) return one(order > 0 ? ReduceKind::Max : ReduceKind::Min, magnitude, same);
  return one(ReduceKind::Sum, [order](Val v) { return pow(abs(v), v.num(order)); },
             [order](Val v) { return pow(v, v.num(1 / order)); });
}

/// The reductions as statements over the axes of `inner`. Sums that need no loop leave fewer axes; where none is left they are values.
void accumulate(BodyBuilder& b, const std::vector<ReductionSpec>& reductions, const IndexList& index, std::vector<Axis>& inner) {
  std::vector<std::array<ValueId, 3>> inputs;
  std::vector<ValueId> summands;
  for (const ReductionSpec& r : reductions) {
    inputs.push_back(r.inputs(b, index));
    if (r.kind == ReduceKind::Sum) summands.push_back(inputs.back()[0]);
  }
  const bool onlySums = summands.size() == reductions.size();
  if (onlySums) sumOneHots(b, summands, inner);
  for (size_t r = 0; r < reductions.size(); r++) {
    if (onlySums) inputs[r][0] = summands[r];
    if (inner.empty()) b.setReduced(static_cast<int32_t>(r), summands[r]);
    else b.reduce(reductions[r].kind, static_cast<int32_t>(r), inputs[r]);
  }
}

}  // namespace

std::vector<LazyTensor> Lowering::reduce(const IndexList& sizes, const std::vector<bool>& reducedDims,
                                         const std::vector<ReductionSpec>& reductions,
                                         const std::vector<ReductionResult>& results,
                                         const std::vector<LazyTensor>& reading) {
  if (graph::product(sizes) == SymExpr(0)) throw NotLowered("reduction over no elements");
  // Sums of nothing are 0.
  const bool mayBeOfNothing = std::all_of(reductions.begin(), reductions.end(), [](const ReductionSpec& r) { return r.kind == ReduceKind::Sum || r.mayBeOfNothing; });
  for (size_t i = 0; i < sizes.size(); i++)
    if (!mayBeOfNothing && reducedDims[i] && sizes[i].bounds().first < 1) throw NotLowered("a reduction that may be over no elements");
  for (const ReductionResult& r : results) requireKept(sizes, reducedDims, r.meta);
  IndexList index(sizes.size(), SymExpr(0));
  std::vector<Axis> outer, inner;
  for (size_t i = 0; i < sizes.size(); i++) {
    if (sizes[i] == SymExpr(1)) continue;
    auto& axes = reducedDims[i] ? inner : outer;
    Symbol symbol = graph::axisSymbol((reducedDims[i] ? "r" : "i") + std::to_string(axes.size()), sizes[i]);
    index[i] = symbol;
    axes.push_back({symbol, sizes[i]});
  }
  // A reduction over one element still has an axis, so that its section is one.
  if (inner.empty()) inner.push_back({Symbol::make("r0", 0, 0), 1});
  BodyBuilder b;
  std::vector<Section> sections;
  accumulate(b, reductions, index, inner);
  std::vector<graph::NodeId> origins = b.origins;
  if (!inner.empty()) sections.push_back(b.finish(std::move(inner), true));
  std::vector<BufferId> writes;
  std::vector<LazyTensor> values;
  for (const ReductionResult& r : results) {
    graph::TensorMeta meta = r.meta;
    meta.storageOffset = 0;
    BufferId id = newBuffer(LoweredBuffer::Kind::Computed, meta, {});
    SymExpr at = 0;
    size_t d = 0;
    const bool keepDim = meta.sizes.size() == sizes.size();
    for (size_t i = 0; i < sizes.size() && d < meta.sizes.size(); i++) {
      if (reducedDims[i]) {
        if (keepDim) d++;
        continue;
      }
      at += index[i] * meta.strides[d++];
    }
    b.store(id, at, b.cast(r.value(b), meta.dtype));
    writes.push_back(id);
    values.push_back(bufferTensor(id, meta, current_ ? current_->id : -1));
  }
  sections.push_back(b.finish({}, false));
  addLoops(results.front().meta.device, std::move(origins), std::move(outer), std::move(sections), std::move(writes));
  return values;
}

void addReductionLowerings(LowerTable& table) {
  struct Entry { const char* name; ReduceKind kind; int dimsAt; };
  static constexpr Entry kSimple[] = {
      {"aten::sum", ReduceKind::Sum, -1},     {"aten::sum.dim_IntList", ReduceKind::Sum, 1},
      {"aten::prod", ReduceKind::Prod, -1},   {"aten::prod.dim_int", ReduceKind::Prod, 1},
      {"aten::amax", ReduceKind::Max, 1},     {"aten::amin", ReduceKind::Min, 1},
      {"aten::max", ReduceKind::Max, -1},     {"aten::min", ReduceKind::Min, -1},
      {"aten::any", ReduceKind::Any, -1},     {"aten::any.dim", ReduceKind::Any, 1},
      {"aten::any.dims", ReduceKind::Any, 1}, {"aten::all", ReduceKind::All, -1},
      {"aten::all.dim", ReduceKind::All, 1},  {"aten::all.dims", ReduceKind::All, 1},
  };
  for (const Entry& e : kSimple) table.emplace(e.name, simple(e.kind, e.dimsAt));
  table.emplace("aten::mean", [](Lowering& l, const Node& n) { return mean(l, n, -1); });
  table.emplace("aten::mean.dim", [](Lowering& l, const Node& n) { return mean(l, n, 1); });
  table.emplace("aten::max.dim", [](Lowering& l, const Node& n) {
    return extremeWithIndex(l, n, ReduceKind::Max, ReduceKind::ArgMax);
  });
  table.emplace("aten::min.dim", [](Lowering& l, const Node& n) {
    return extremeWithIndex(l, n, ReduceKind::Min, ReduceKind::ArgMin);
  });
  table.emplace("aten::argmax", [](Lowering& l, const Node& n) { return position(l, n, ReduceKind::ArgMax); });
  table.emplace("aten::argmin", [](Lowering& l, const Node& n) { return position(l, n, ReduceKind::ArgMin); });
  addMoments(table, {"aten::var.correction", "aten::var", "aten::var.dim"}, {Moment::Variance});
  addMoments(table, {"aten::std.correction", "aten::std", "aten::std.dim"}, {Moment::Deviation});
  addMoments(table, {"aten::var_mean.correction", "aten::var_mean", "aten::var_mean.dim"}, {Moment::Variance, Moment::Mean});
  addMoments(table, {"aten::std_mean.correction", "aten::std_mean", "aten::std_mean.dim"}, {Moment::Deviation, Moment::Mean});
  table.emplace("aten::linalg_vector_norm", [](Lowering& l, const Node& n) {
    return vectorNorm(l, n, NodeArgs(n).numberOr(1, 2), 2);
  });
  table.emplace("aten::norm.ScalarOpt_dim", [](Lowering& l, const Node& n) {
    return vectorNorm(l, n, NodeArgs(n).numberOr(1, 2), 2);
  });
  table.emplace("aten::norm.Scalar", [](Lowering& l, const Node& n) { return vectorNorm(l, n, NodeArgs(n).numberOr(1, 2), -1); });
}

}  // namespace fusebox::inductor
