#include "engine/trace/shape_rules.h"

#include <ATen/EmptyTensor.h>
#include <ATen/TensorIterator.h>

#include <array>

namespace fusebox::trace {

ShapeRule findShapeRule(const std::string& op) {
  static const ShapeTable all = [] {
    ShapeTable joined;
    for (auto* part : {&normalisationRules(), &reductionRules(), &matrixRules(), &convolutionRules(), &attentionRules(), &indexingRules(), &pointwiseRules()})
      joined.insert(part->begin(), part->end());
    return joined;
  }();
  auto it = all.find(op);
  return it == all.end() ? nullptr : it->second;
}

namespace shape {

namespace {
thread_local bool rulesForCuda = false;
}

DeviceScope::DeviceScope(bool cuda) : previous_(rulesForCuda) { rulesForCuda = cuda; }
DeviceScope::~DeviceScope() { rulesForCuda = previous_; }
bool forCuda() { return rulesForCuda; }

at::Tensor fresh(at::IntArrayRef sizes, at::ScalarType type, std::optional<at::MemoryFormat> format) {
  return at::Tensor(at::detail::empty_meta(sizes, type, std::nullopt, at::Device(at::kMeta), std::nullopt, format));
}

at::Tensor freshStrided(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type) {
  return at::Tensor(at::detail::empty_strided_meta(sizes, strides, type, std::nullopt, at::Device(at::kMeta), std::nullopt));
}

at::Tensor likeFormat(const at::Tensor& t) { return fresh(t.sizes(), t.scalar_type(), t.suggest_memory_format()); }

at::Tensor like(const at::Tensor& t) {
  if (t.is_non_overlapping_and_dense()) return freshStrided(t.sizes(), t.strides(), t.scalar_type());
  return pointwise({t}, t.scalar_type());
}

at::Tensor pointwise(at::ArrayRef<at::Tensor> inputs, at::ScalarType type) {
  at::TensorIteratorConfig config;
  config.set_check_mem_overlap(false).check_all_same_dtype(false).check_all_same_device(false);
  config.declare_static_dtype_and_device(type, at::Device(at::kMeta));
  config.add_owned_output(at::Tensor());
  for (auto& t : inputs) config.add_owned_const_input(t);
  return config.build().output(0);
}

at::ScalarType statisticsType(at::ScalarType t) { return t == at::kHalf || t == at::kBFloat16 ? at::kFloat : t; }

bool present(const c10::IValue& v) { return v.isTensor() && v.toTensor().defined(); }

c10::IValue optional(bool when, at::Tensor t) { return when ? c10::IValue(std::move(t)) : c10::IValue(at::Tensor()); }

}  // namespace shape
}  // namespace fusebox::trace
