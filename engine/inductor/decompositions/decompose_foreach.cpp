#include <algorithm>
#include <optional>
#include <string>

#include "engine/inductor/passes/rewriter.h"

/// Operators over lists of tensors, element by element, so that each element's chain becomes one loop; the scheduler lays many small loops
/// side by side.
namespace fusebox::inductor {
namespace {

/// What an operator over lists is for one element.
struct ForEach {
  std::string_view list, single;
};

/// Where arguments that are lists (or a tensor of one number for each element) give their element and others go on as they are.
constexpr ForEach kForEach[] = {
    {"aten::_foreach_add.List", "aten::add.Tensor"},        {"aten::_foreach_add.Tensor", "aten::add.Tensor"},
    {"aten::_foreach_add.Scalar", "aten::add.Scalar"},      {"aten::_foreach_add.ScalarList", "aten::add.Scalar"},
    {"aten::_foreach_sub.List", "aten::sub.Tensor"},        {"aten::_foreach_sub.Scalar", "aten::sub.Scalar"},
    {"aten::_foreach_sub.ScalarList", "aten::sub.Scalar"},  {"aten::_foreach_mul.List", "aten::mul.Tensor"},
    {"aten::_foreach_mul.Tensor", "aten::mul.Tensor"},      {"aten::_foreach_mul.Scalar", "aten::mul.Scalar"},
    {"aten::_foreach_mul.ScalarList", "aten::mul.Scalar"},  {"aten::_foreach_div.List", "aten::div.Tensor"},
    {"aten::_foreach_div.Tensor", "aten::div.Tensor"},      {"aten::_foreach_div.Scalar", "aten::div.Scalar"},
    {"aten::_foreach_div.ScalarList", "aten::div.Scalar"},  {"aten::_foreach_maximum.List", "aten::maximum"},
    {"aten::_foreach_minimum.List", "aten::minimum"},       {"aten::_foreach_clamp_min.List", "aten::clamp_min.Tensor"},
    {"aten::_foreach_clamp_max.List", "aten::clamp_max.Tensor"}, {"aten::_foreach_clamp_min.Scalar", "aten::clamp_min"},
    {"aten::_foreach_clamp_max.Scalar", "aten::clamp_max"}, {"aten::_foreach_clamp_min.ScalarList", "aten::clamp_min"},
    {"aten::_foreach_clamp_max.ScalarList", "aten::clamp_max"}, {"aten::_foreach_pow.List", "aten::pow.Tensor_Tensor"},
    {"aten::_foreach_pow.Scalar", "aten::pow.Tensor_Scalar"}, {"aten::_foreach_pow.ScalarList", "aten::pow.Tensor_Scalar"},
    {"aten::_foreach_pow.ScalarAndTensor", "aten::pow.Scalar"}, {"aten::_foreach_lerp.List", "aten::lerp.Tensor"},
    {"aten::_foreach_lerp.Scalar", "aten::lerp.Scalar"},    {"aten::_foreach_lerp.ScalarList", "aten::lerp.Scalar"},
    {"aten::_foreach_addcmul.Scalar", "aten::addcmul"},     {"aten::_foreach_addcmul.ScalarList", "aten::addcmul"},
    {"aten::_foreach_addcmul.Tensor", "aten::addcmul"},     {"aten::_foreach_addcdiv.Scalar", "aten::addcdiv"},
    {"aten::_foreach_addcdiv.ScalarList", "aten::addcdiv"}, {"aten::_foreach_addcdiv.Tensor", "aten::addcdiv"},
    {"aten::_foreach_copy", "aten::copy"},
    {"aten::_foreach_abs", "aten::abs"},         {"aten::_foreach_acos", "aten::acos"},     {"aten::_foreach_asin", "aten::asin"},
    {"aten::_foreach_atan", "aten::atan"},       {"aten::_foreach_ceil", "aten::ceil"},     {"aten::_foreach_cos", "aten::cos"},
    {"aten::_foreach_cosh", "aten::cosh"},       {"aten::_foreach_erf", "aten::erf"},       {"aten::_foreach_erfc", "aten::erfc"},
    {"aten::_foreach_exp", "aten::exp"},         {"aten::_foreach_expm1", "aten::expm1"},   {"aten::_foreach_floor", "aten::floor"},
    {"aten::_foreach_frac", "aten::frac"},       {"aten::_foreach_lgamma", "aten::lgamma"}, {"aten::_foreach_log", "aten::log"},
    {"aten::_foreach_log10", "aten::log10"},     {"aten::_foreach_log1p", "aten::log1p"},   {"aten::_foreach_log2", "aten::log2"},
    {"aten::_foreach_neg", "aten::neg"},         {"aten::_foreach_reciprocal", "aten::reciprocal"}, {"aten::_foreach_round", "aten::round"},
    {"aten::_foreach_rsqrt", "aten::rsqrt"},     {"aten::_foreach_sigmoid", "aten::sigmoid"}, {"aten::_foreach_sign", "aten::sign"},
    {"aten::_foreach_sin", "aten::sin"},         {"aten::_foreach_sinh", "aten::sinh"},     {"aten::_foreach_sqrt", "aten::sqrt"},
    {"aten::_foreach_tan", "aten::tan"},         {"aten::_foreach_tanh", "aten::tanh"},     {"aten::_foreach_trunc", "aten::trunc"},
    {"aten::_foreach_max", "aten::max"},
};

/// Element `i` of a tensor of numbers.
T numberOf(Rewriter& r, T numbers, size_t i) {
  TensorMeta m = numbers.meta();
  m.storageOffset = m.storageOffset + m.strides[0] * static_cast<int64_t>(i);
  m.sizes.clear();
  m.strides.clear();
  return r.call("aten::select.int", {numbers.v, int64_t{0}, static_cast<int64_t>(i)}, m);
}

void forEach(Rewriter& r) {
  const graph::Node& node = r.node();
  const auto* entry = std::find_if(std::begin(kForEach), std::end(kForEach), [&](const ForEach& e) { return e.list == node.op; });
  const std::string single(entry->single);
  const size_t count = node.outputs.size();
  const bool takesNumbers = node.op.ends_with(".Tensor") && node.op.find("addc") != std::string::npos;
  for (size_t i = 0; i < count; ++i) {
    graph::ArgumentList args;
    for (size_t a = 0; a < node.args.size(); ++a) {
      const graph::Argument& given = node.args[a];
      if (const auto* list = given.as<graph::ArgumentList>()) {
        if (list->size() != count) throw NotLowered("lists of different lengths");
        const auto* v = (*list)[i].as<ValueRef>();
        args.push_back(v ? graph::Argument(r.mapped(*v)) : (*list)[i]);
      } else if (const auto* v = given.as<ValueRef>()) {
        const T tensor{&r, r.mapped(*v)};
        const bool perElement = takesNumbers && a == 3;
        if (perElement && (tensor.rank() != 1 || !(tensor.size(0) == SymExpr(static_cast<int64_t>(count))))) throw NotLowered("numbers of another count");
        args.push_back(perElement ? numberOf(r, tensor, i).v : tensor.v);
      } else {
        args.push_back(given);
      }
    }
    // Operators of numbers take their factor as the last argument where those of lists leave it out.
    if (single == "aten::add.Scalar" || single == "aten::sub.Scalar" || (single == "aten::add.Tensor" && args.size() == 2)) args.resize(2), args.push_back(int64_t{1});
    if (single == "aten::addcmul" || single == "aten::addcdiv") args.resize(4);
    r.output(i, r.call(single.c_str(), std::move(args), node.outputs[i].tensor));
  }
}

void forEachZero(Rewriter& r) {
  for (size_t i = 0; i < r.node().outputs.size(); ++i) {
    const TensorMeta& meta = r.outMeta(i);
    r.output(i, r.full(meta.sizes, 0, meta.dtype));
  }
}

/// (self, ord, dtype)
void forEachNorm(Rewriter& r) {
  const auto* list = r.node().args[0].as<graph::ArgumentList>();
  for (size_t i = 0; i < r.node().outputs.size(); ++i) {
    const T x{&r, r.mapped(*(*list)[i].as<ValueRef>())};
    r.output(i, r.call("aten::linalg_vector_norm", {x.v, r.args().at(1), {}, false, r.args().at(2)}, r.outMeta(i)));
  }
}

/// The lists of a fused optimiser, one tensor of each at a time. Its results are flattened: all of the first list, all of the second, …
struct Lists {
  Rewriter& r;
  size_t count = 0;

  explicit Lists(Rewriter& rewriter) : r(rewriter), count(at(0).size()) {}
  const graph::ArgumentList& at(size_t argument) const {
    const auto* list = r.node().args[argument].as<graph::ArgumentList>();
    if (!list) throw NotLowered("an optimiser without lists");
    return *list;
  }
  T in(size_t argument, size_t i) const { return {&r, r.mapped(*at(argument)[i].as<ValueRef>())}; }
  void out(size_t list, size_t i, T value) const { r.output(list * count + i, value); }
};

/// The learning rate: a number, or a tensor of one.
struct Rate {
  Rewriter& r;
  double number = 0;
  std::optional<T> tensor;

  Rate(Rewriter& rewriter, size_t argument) : r(rewriter) {
    if (r.has(argument)) tensor = r.to(scalarOf(r.in(argument)), DType::Float64);
    else number = r.args().number(argument);
  }
  static T scalarOf(T x) {
    if (x.rank() > 1 || (x.rank() == 1 && !(x.size(0) == SymExpr(1)))) throw NotLowered("a learning rate of several elements");
    return x.r->view(x, {});
  }
  /// x * rate
  T scale(T x) const { return tensor ? r.pointwise("aten::mul.Tensor", {x.v, tensor->v}, x.dtype()) : x * number; }
  /// x * (1 - rate * decay)
  T shrink(T x, double decay) const {
    return tensor ? r.pointwise("aten::mul.Tensor", {x.v, (1.0 - *tensor * decay).v}, x.dtype()) : x * (1 - number * decay);
  }
  /// rate / x, in float64.
  T over(T x) const { return tensor ? *tensor / x : r.unary("aten::reciprocal", x) * number; }
};

void refuseScaling(Rewriter& r, size_t gradScale) {
  if (r.has(gradScale) || r.has(gradScale + 1)) throw NotLowered("gradients that are unscaled");
}

/// (self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale,
/// found_inf), as eager's kernels: numbers in float64, elements in float32.
void fusedAdam(Rewriter& r, bool decoupled) {
  refuseScaling(r, 13);
  const NodeArgs args = r.args();
  const Lists lists(r);
  const Rate rate(r, 6);
  const double beta1 = args.number(7), beta2 = args.number(8), decay = args.number(9), eps = args.number(10);
  const bool amsgrad = args.boolean(11), maximize = args.boolean(12);
  for (size_t i = 0; i < lists.count; ++i) {
    const T self = lists.in(0, i), given = lists.in(1, i), step = r.to(lists.in(5, i), DType::Float64);
    if (step.rank() != 0) throw NotLowered("steps of several elements");
    T p = r.upcast(self), g = r.upcast(given), m = r.upcast(lists.in(2, i)), v = r.upcast(lists.in(3, i));
    if (maximize) g = -g;
    if (decay != 0 && decoupled) p = rate.shrink(p, decay);
    if (decay != 0 && !decoupled) g = g + p * decay;
    const auto power = [&](double base) { return r.pointwise("aten::pow.Scalar", {base, step.v}, DType::Float64); };
    const T correction1 = 1.0 - power(beta1), correction2 = r.unary("aten::sqrt", 1.0 - power(beta2));
    m = r.pointwise("aten::lerp.Scalar", {m.v, g.v, 1 - beta1}, m.dtype());
    v = v * beta2 + g * g * (1 - beta2);
    T bound = v;
    if (amsgrad) {
      bound = r.pointwise("aten::maximum", {r.upcast(lists.in(4, i)).v, v.v});
      lists.out(4, i, bound);
    }
    const T spread = r.pointwise("aten::div.Tensor", {r.unary("aten::sqrt", bound).v, correction2.v}, p.dtype()) + eps;
    p = p - r.pointwise("aten::mul.Tensor", {(m / spread).v, rate.over(correction1).v}, p.dtype());
    lists.out(0, i, p);
    lists.out(1, i, given);
    lists.out(2, i, m);
    lists.out(3, i, v);
  }
}

/// (self, grads, momentum_buffer_list, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step, grad_scale, found_inf)
void fusedSgd(Rewriter& r) {
  refuseScaling(r, 10);
  const NodeArgs args = r.args();
  const Lists lists(r);
  const Rate rate(r, 5);
  const double decay = args.number(3), momentum = args.number(4), dampening = args.number(6);
  const bool nesterov = args.boolean(7), maximize = args.boolean(8), first = args.boolean(9);
  const bool hasMomentum = !lists.at(2).empty() && momentum != 0;
  if (!lists.at(2).empty() && !hasMomentum) throw NotLowered("buffers of a momentum of zero");
  for (size_t i = 0; i < lists.count; ++i) {
    const T given = lists.in(1, i);
    T p = r.upcast(lists.in(0, i)), g = r.upcast(given);
    if (maximize) g = -g;
    if (decay != 0) g = g + p * decay;
    if (hasMomentum) {
      const T before = r.upcast(lists.in(2, i));
      const T buffer = first ? g : before * momentum + g * (1 - dampening);
      lists.out(2, i, buffer);
      g = nesterov ? g + buffer * momentum : buffer;
    }
    lists.out(0, i, p - rate.scale(g));
    lists.out(1, i, given);
  }
}

}  // namespace

void addForEachDecompositions(DecompositionTable& table) {
  for (const ForEach& entry : kForEach) table.push_back({entry.list, forEach, BeforeCut::No, true});
  table.push_back({"aten::_foreach_zero", forEachZero});
  table.push_back({"aten::_foreach_norm.Scalar", forEachNorm});
  const DecomposeFn adam = [](Rewriter& r) { fusedAdam(r, false); }, adamw = [](Rewriter& r) { fusedAdam(r, true); };
  for (const char* name : {"aten::_fused_adam", "aten::_fused_adam.tensor_lr"}) table.push_back({name, adam, BeforeCut::No, true});
  for (const char* name : {"aten::_fused_adamw", "aten::_fused_adamw.tensor_lr"}) table.push_back({name, adamw, BeforeCut::No, true});
  for (const char* name : {"aten::_fused_sgd", "aten::_fused_sgd.tensor_lr"}) table.push_back({name, fusedSgd, BeforeCut::No, true});
}

}  // namespace fusebox::inductor
