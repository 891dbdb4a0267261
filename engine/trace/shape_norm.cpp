#include "engine/trace/break_error.h"
#include "engine/trace/shape_rules.h"

// Argument positions are those of native_functions' schemas.
namespace fusebox::trace {
namespace {

using Values = std::vector<c10::IValue>;
using c10::IValue;
using namespace shape;

/// The CPU's kernels take parameters and statistics of the input's type, or of float32 beside an input of half its width; the first
/// that is given decides which.
void checkTypes(const IValue* a, std::initializer_list<int> positions) {
  if (forCuda()) return;
  const auto type = a[0].toTensor().scalar_type();
  std::vector<at::ScalarType> given;
  for (int i : positions)
    if (present(a[i])) given.push_back(a[i].toTensor().scalar_type());
  if (given.empty()) return;
  if (given[0] == type) {
    for (auto other : given) TORCH_CHECK(other == type, "expected scalar type ", type, " but found ", other);
    return;
  }
  for (auto other : given) TORCH_CHECK(other == at::kFloat, "mixed dtype (CPU): expect parameter to have scalar type of Float");
  TORCH_CHECK(at::isReducedFloatingType(type), "mixed dtype (CPU): all inputs must share same datatype.");
}

Values layerNorm(const IValue* a) {
  auto& x = a[0].toTensor();
  checkTypes(a, {2, 3});
  auto normalized = a[1].toListRef();
  TORCH_CHECK(!normalized.empty(), "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, "
              "but got normalized_shape = []");
  auto sizes = x.sizes().vec(), reduced = sizes;
  for (int parameter : {2, 3}) {
    if (!present(a[parameter])) continue;
    auto given = a[parameter].toTensor().sizes();
    bool same = given.size() == normalized.size();
    for (size_t i = 0; same && i < given.size(); ++i) same = given[i] == normalized[i].toInt();
    TORCH_CHECK(same, "Expected weight and bias to be of same shape as normalized_shape, but got one of shape ", given);
  }
  const size_t outer = sizes.size() - std::min(sizes.size(), normalized.size());
  bool fits = normalized.size() <= sizes.size();
  for (size_t i = 0; fits && i < normalized.size(); ++i) fits = normalized[i].toInt() == sizes[outer + i];
  TORCH_CHECK(fits, "normalized_shape does not match the last dimensions of an input of size ", x.sizes());
  for (size_t i = outer; i < sizes.size(); ++i) reduced[i] = 1;
  bool half = x.scalar_type() == at::kHalf || x.scalar_type() == at::kBFloat16;
  auto statistics = half && present(a[2]) ? a[2].toTensor().scalar_type() : x.scalar_type();
  if (half && forCuda()) statistics = at::kFloat;
  return {fresh(sizes, x.scalar_type()), fresh(reduced, statistics), fresh(reduced, statistics)};
}

Values layerNormBackward(const IValue* a) {
  auto mask = a[7].toBoolList();
  auto& x = a[1].toTensor();
  auto parameter = [&](int which, int position) {
    return mask[which] && present(a[position]) ? IValue(like(a[position].toTensor())) : IValue(at::Tensor());
  };
  return {optional(mask[0], fresh(x.sizes(), x.scalar_type())), parameter(1, 5), parameter(2, 6)};
}

/// Only CUDA has a kernel; its statistics are those of an accumulator.
Values rmsNorm(const IValue* a) {
  auto& x = a[0].toTensor();
  auto normalized = a[1].toListRef();
  auto sizes = x.sizes().vec(), reduced = sizes;
  TORCH_CHECK(!normalized.empty() && normalized.size() <= sizes.size(), "normalized_shape does not match an input of size ", x.sizes());
  for (size_t i = sizes.size() - normalized.size(); i < sizes.size(); ++i) reduced[i] = 1;
  return {fresh(sizes, x.scalar_type()), fresh(reduced, statisticsType(x.scalar_type()))};
}

Values rmsNormBackward(const IValue* a) {
  auto& x = a[1].toTensor();
  auto mask = a[5].toBoolList();
  return {optional(mask[0], fresh(x.sizes(), x.scalar_type())),
          mask[1] && present(a[4]) ? IValue(like(a[4].toTensor())) : IValue(at::Tensor())};
}

Values groupNorm(const IValue* a) {
  auto& x = a[0].toTensor();
  checkTypes(a, {1, 2});
  std::vector<int64_t> groups{x.size(0), a[6].toInt()};
  for (int i : {1, 2})
    TORCH_CHECK(!a[i].isTensor() || !a[i].toTensor().defined() || a[i].toTensor().numel() == x.size(1),
                "Expected weight and bias to be vectors of size equal to the number of channels in input, but got ", x.sizes());
  TORCH_CHECK(groups[1] > 0 && x.size(1) % groups[1] == 0, "Expected number of channels in input to be divisible by num_groups, but got input of shape ", x.sizes());
  return {likeFormat(x), fresh(groups, x.scalar_type()), fresh(groups, x.scalar_type())};
}

Values groupNormBackward(const IValue* a) {
  auto& x = a[1].toTensor();
  auto mask = a[9].toBoolList();
  auto channels = fresh({x.size(1)}, x.scalar_type());
  return {optional(mask[0], likeFormat(x)), optional(mask[1], channels),
          optional(mask[2], fresh({x.size(1)}, x.scalar_type()))};
}

/// Type of the saved statistics. CUDA's are those of an accumulator; the CPU's are float for half inputs with a float parameter, else
/// the input's.
template <int kTraining>
at::ScalarType savedType(const IValue* a) {
  auto type = a[0].toTensor().scalar_type();
  if (statisticsType(type) == type) return type;
  if (forCuda()) return at::kFloat;
  for (int i = 1; i <= (kTraining == 3 ? 2 : 4); ++i)
    if (present(a[i]) && a[i].toTensor().scalar_type() != type) return at::kFloat;
  return type;
}

/// Without training the CPU's kernel saves nothing; CUDA's saves the running mean and the inverse deviation of the running variance.
template <int kTraining>
Values batchNorm(const IValue* a) {
  auto& x = a[0].toTensor();
  if (kTraining == 3) checkTypes(a, {1, 2});
  else checkTypes(a, {1, 2, 3, 4});
  bool training = kTraining >= 0 && a[kTraining < 0 ? 0 : kTraining].toBool();
  std::vector<int64_t> saved{training || forCuda() ? x.size(1) : 0};
  auto type = savedType<kTraining>(a);
  return {forCuda() ? like(x) : likeFormat(x), fresh(saved, type), fresh(saved, type)};
}

Values batchNormFunctional(const IValue* a) {
  auto out = batchNorm<5>(a);
  out.push_back(like(a[3].toTensor()));
  out.push_back(like(a[4].toTensor()));
  return out;
}

/// (input, weight, bias, running_mean, running_var, training, momentum, eps)
Values cudnnBatchNorm(const IValue* a) {
  if (a[5].toBool())
    raiseBreak(BreakKind::UnsupportedOp, "only cuDNN knows the size of what cudnn_batch_norm keeps for its backward",
               "call torch.nn.functional.batch_norm instead");
  auto& x = a[0].toTensor();
  auto statistics = a[1].toTensor().scalar_type();
  return {likeFormat(x), fresh({0}, statistics), fresh({0}, statistics), fresh({0}, at::kByte)};
}

Values batchNormBackward(const IValue* a) {
  auto& x = a[1].toTensor();
  auto mask = a[9].toBoolList();
  auto type = present(a[2]) ? a[2].toTensor().scalar_type() : x.scalar_type();
  return {optional(mask[0], likeFormat(x)), optional(mask[1], fresh({x.size(1)}, type)),
          optional(mask[2], fresh({x.size(1)}, type))};
}

Values cudnnBatchNormBackward(const IValue* a) {
  auto& x = a[0].toTensor();
  auto type = a[2].toTensor().scalar_type();
  return {likeFormat(x), fresh({x.size(1)}, type), fresh({x.size(1)}, type)};
}

/// (input, weight0, weight1, weight2, weight3, hx, cx, …, hidden_size at 15, …): float32 whatever is given, and biases also where there are none.
Values mkldnnLstmBackward(const IValue* a) {
  const auto like = [&](int i) { return fresh(a[i].toTensor().sizes(), at::kFloat); };
  const auto bias = [&] { return fresh({4 * a[15].toInt()}, at::kFloat); };
  return {like(0), like(1), like(2), bias(), bias(), like(5), like(6)};
}

}  // namespace

const ShapeTable& normalisationRules() {
  static const ShapeTable table{
      {"aten::native_layer_norm", layerNorm},
      {"aten::native_layer_norm_backward", layerNormBackward},
      {"aten::_fused_rms_norm", rmsNorm},
      {"aten::_fused_rms_norm_backward", rmsNormBackward},
      {"aten::native_group_norm", groupNorm},
      {"aten::native_group_norm_backward", groupNormBackward},
      {"aten::native_batch_norm", batchNorm<5>},
      {"aten::_native_batch_norm_legit", batchNorm<5>},
      {"aten::_native_batch_norm_legit.no_stats", batchNorm<3>},
      {"aten::_native_batch_norm_legit_no_training", batchNorm<-1>},
      {"aten::_native_batch_norm_legit_functional", batchNormFunctional},
      {"aten::cudnn_batch_norm", cudnnBatchNorm},
      {"aten::native_batch_norm_backward", batchNormBackward},
      {"aten::cudnn_batch_norm_backward", cudnnBatchNormBackward},
      {"aten::mkldnn_rnn_layer_backward", mkldnnLstmBackward},
  };
  return table;
}

}  // namespace fusebox::trace
