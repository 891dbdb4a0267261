#include "engine/trace/symbolic_rules.h"

#include <cmath>

namespace fusebox::trace {
namespace {

using graph::SymExpr;
using Call = SymbolicCall;
using Shapes = std::vector<ResultShape>;
using symbolic::like;

template <size_t position>
Shapes sizesAt(const Call& call) { return symbolic::all(call, call.integers(position)); }

/// empty_strided(size, stride), new_empty_strided(self, size, stride)
template <size_t position>
Shapes strided(const Call& call) { return {{call.integers(position), call.integers(position + 1), 0}}; }

/// What arange is given: a float that says an integer counts as that.
SymExpr bound(const Call& call, size_t i) {
  constexpr double kExact = 1LL << 53;
  const c10::IValue& given = call.value(i);
  if (!given.isDouble()) return call.integer(i);
  const double value = given.toDouble();
  Call::want(std::abs(value) < kExact && value == std::trunc(value));
  return static_cast<int64_t>(value);
}

/// ceil((end - start) / step), as arange counts. Other floats are constants.
Shapes range(const Call& call, const SymExpr& start, const SymExpr& end, const SymExpr& step) {
  if (call.less(0, step)) {
    Call::want(call.lessEqual(start, end));
    return {{{graph::floorDiv(end - start + step - 1, step)}}};
  }
  Call::want(call.less(step, 0) && call.lessEqual(end, start));
  return {{{graph::floorDiv(start - end - step - 1, step * -1)}}};
}
Shapes arange(const Call& call) { return range(call, 0, bound(call, 0), 1); }
Shapes arangeStart(const Call& call) { return range(call, bound(call, 0), bound(call, 1), 1); }
/// How many steps of a half, a quarter, … are one; else 1.
int64_t stepsOfOne(const c10::IValue& step) {
  constexpr double kMost = 1 << 20;
  const double many = step.isDouble() ? 1 / step.toDouble() : 1;
  int exponent = 0;
  return many > 1 && many <= kMost && std::frexp(many, &exponent) == 0.5 ? static_cast<int64_t>(many) : 1;
}
Shapes arangeStep(const Call& call) {
  const int64_t parts = stepsOfOne(call.value(2));
  if (parts == 1) return range(call, bound(call, 0), bound(call, 1), bound(call, 2));
  return range(call, bound(call, 0) * parts, bound(call, 1) * parts, 1);
}

Shapes eye(const Call& call) { return {{{call.integer(0), call.integer(0)}}}; }
Shapes eyeM(const Call& call) { return {{{call.integer(0), call.integer(1)}}}; }
Shapes count(const Call& call) { return {{{call.integer(0)}}}; }
/// affine_grid_generator(theta, size, align_corners): the place of each element, as many numbers as there are dimensions
Shapes affineGrid(const Call& call) {
  Exprs made = call.integers(1);
  Call::want(made.size() >= 4);
  made.erase(made.begin() + 1);
  made.emplace_back(static_cast<int64_t>(made.size()) - 1);
  return {{made}};
}
Shapes steps(const Call& call) { return {{{call.integer(2)}}}; }

Shapes scalar(const Call& call) { return symbolic::all(call, {}); }

/// repeat(self, repeats)
Shapes repeat(const Call& call) {
  auto own = call.sizes(0);
  auto times = call.integers(1);
  Call::want(times.size() >= own.size());
  const size_t extra = times.size() - own.size();
  for (size_t d = extra; d < times.size(); ++d) times[d] *= own[d - extra];
  return {{times}};
}

}  // namespace

const SymbolicTable& symbolicFactoryRules() {
  static const SymbolicTable table{
      {"aten::empty.memory_format", sizesAt<0>},
      {"aten::empty_permuted", sizesAt<0>},
      {"aten::zeros", sizesAt<0>},
      {"aten::ones", sizesAt<0>},
      {"aten::full", sizesAt<0>},
      {"aten::rand", sizesAt<0>},
      {"aten::rand.generator", sizesAt<0>},
      {"aten::randn", sizesAt<0>},
      {"aten::randn.generator", sizesAt<0>},
      {"aten::randint", sizesAt<1>},
      {"aten::randint.generator", sizesAt<1>},
      {"aten::randint.low", sizesAt<2>},
      {"aten::randint.low_generator", sizesAt<2>},
      {"aten::normal.float_float", sizesAt<2>},
      {"aten::randperm", count},
      {"aten::randperm.generator", count},
      {"aten::empty_strided", strided<0>},
      {"aten::new_empty_strided", strided<1>},
      {"aten::new_empty", sizesAt<1>},
      {"aten::new_zeros", sizesAt<1>},
      {"aten::new_ones", sizesAt<1>},
      {"aten::new_full", sizesAt<1>},
      {"aten::empty_like", like<0>},
      {"aten::zeros_like", like<0>},
      {"aten::ones_like", like<0>},
      {"aten::full_like", like<0>},
      {"aten::rand_like", like<0>},
      {"aten::randn_like", like<0>},
      {"aten::randint_like", like<0>},
      {"aten::randint_like.low_dtype", like<0>},
      {"aten::rand_like.generator", like<0>},
      {"aten::randn_like.generator", like<0>},
      {"aten::randint_like.generator", like<0>},
      {"aten::randint_like.low_generator_dtype", like<0>},
      {"aten::affine_grid_generator", affineGrid},
      {"aten::arange", arange},
      {"aten::arange.start", arangeStart},
      {"aten::arange.start_step", arangeStep},
      {"aten::linspace", steps},
      {"aten::linspace.Tensor_Tensor", steps},
      {"aten::linspace.Tensor_Scalar", steps},
      {"aten::linspace.Scalar_Tensor", steps},
      {"aten::logspace", steps},
      {"aten::logspace.Tensor_Tensor", steps},
      {"aten::logspace.Tensor_Scalar", steps},
      {"aten::logspace.Scalar_Tensor", steps},
      {"aten::eye", eye},
      {"aten::eye.m", eyeM},
      {"aten::scalar_tensor", scalar},
      {"aten::repeat", repeat},
      {"aten::hann_window", count},
      {"aten::blackman_window", count},
      {"aten::hamming_window", count},
  };
  return table;
}

}  // namespace fusebox::trace
