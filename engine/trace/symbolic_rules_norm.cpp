#include "engine/trace/symbolic_rules.h"

namespace fusebox::trace {
namespace {

using graph::SymExpr;
using Call = SymbolicCall;
using Shapes = std::vector<ResultShape>;

/// What the statistics of normalising the last dimensions are: those dimensions are 1.
Exprs statistics(const Exprs& sizes, size_t normalised) {
  Call::want(normalised <= sizes.size());
  auto made = sizes;
  for (size_t d = sizes.size() - normalised; d < sizes.size(); ++d) made[d] = 1;
  return made;
}

/// (input, normalized_shape, ...)
Shapes normalised(const Call& call) {
  auto x = call.sizes(0);
  auto shape = call.integers(1);
  Call::want(shape.size() <= x.size());
  for (size_t i = 0; i < shape.size(); ++i) Call::want(call.equal(shape[i], x[x.size() - shape.size() + i]));
  for (size_t position : {2, 3}) {  // weight and bias
    if (!call.isTensor(position)) continue;
    auto own = call.sizes(position);
    Call::want(own.size() == shape.size());
    for (size_t i = 0; i < shape.size(); ++i) Call::want(call.equal(own[i], shape[i]));
  }
  Shapes made{{x}};
  while (made.size() < call.results()) made.emplace_back(statistics(x, shape.size()));
  return made;
}

/// A backward whose mask says which of the arguments have a gradient.
Shapes masked(const Call& call, std::initializer_list<size_t> of, size_t maskAt) {
  auto mask = call.value(maskAt).toBoolList();
  Shapes made;
  size_t k = 0;
  for (size_t position : of)
    if (mask[k++] && call.isTensor(position)) made.emplace_back(call.sizes(position));
  return made;
}
Shapes layerNormBackward(const Call& call) { return masked(call, {1, 5, 6}, 7); }
Shapes rmsNormBackward(const Call& call) { return masked(call, {1, 4}, 5); }

/// Tensors of one number for each channel, where they are given.
void wantChannels(const Call& call, std::initializer_list<size_t> positions, const SymExpr& channels) {
  for (size_t position : positions)
    if (call.isTensor(position)) Call::want(call.equal(call.geometry(position).numel(), channels));
}

/// (input, weight, bias, N, C, HxW, group, eps)
Shapes groupNorm(const Call& call) {
  auto x = call.sizes(0);
  const Exprs groups{x[0], call.integer(6)};
  wantChannels(call, {1, 2}, x[1]);
  Call::want(call.equal(graph::mod(x[1], groups[1]), 0));
  return {{x}, {groups}, {groups}};
}
/// (grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask)
Shapes groupNormBackward(const Call& call) {
  auto mask = call.value(9).toBoolList();
  auto x = call.sizes(1);
  Shapes made;
  if (mask[0]) made.emplace_back(x);
  for (size_t k : {1, 2})
    if (mask[k]) made.emplace_back(Exprs{x[1]});
  return made;
}

/// The input's sizes, then numbers for each channel; what the kernel leaves empty is empty.
Shapes batchNorm(const Call& call) {
  auto x = call.sizes(0);
  wantChannels(call, {1, 2, 3, 4}, x[1]);  // the last two are running statistics, or no tensors
  Shapes made{{x}};
  while (made.size() < call.results()) {
    const auto& r = call.result(made.size());
    Call::want(r.dim() == 1);
    made.push_back(r.size(0) == 0 ? ResultShape(Exprs{0}) : ResultShape(Exprs{x[1]}));
  }
  return made;
}
template <size_t input>
Shapes batchNormBackward(const Call& call) {
  auto x = call.sizes(input);
  Shapes made;
  while (made.size() < call.results()) made.push_back(call.result(made.size()).dim() == 1 && x.size() != 1 ? ResultShape(Exprs{x[1]}) : ResultShape(x));
  return made;
}

}  // namespace

const SymbolicTable& symbolicNormRules() {
  static const SymbolicTable table{
      {"aten::native_layer_norm", normalised},
      {"aten::_fused_rms_norm", normalised},
      {"aten::native_layer_norm_backward", layerNormBackward},
      {"aten::_fused_rms_norm_backward", rmsNormBackward},
      {"aten::native_group_norm", groupNorm},
      {"aten::native_group_norm_backward", groupNormBackward},
      {"aten::native_batch_norm", batchNorm},
      {"aten::_native_batch_norm_legit", batchNorm},
      {"aten::_native_batch_norm_legit.no_stats", batchNorm},
      {"aten::_native_batch_norm_legit_no_training", batchNorm},
      {"aten::_native_batch_norm_legit_functional", batchNorm},
      {"aten::native_batch_norm_backward", batchNormBackward<1>},
      {"aten::cudnn_batch_norm_backward", batchNormBackward<0>},
  };
  return table;
}

}  // namespace fusebox::trace
