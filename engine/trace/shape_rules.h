#pragma once

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace fusebox::trace {

/// Computes an operator's results from its arguments without data: tensors are meta tensors, results are meta tensors whose sizes,
/// strides and dtypes are those the real kernel gives. Used where libtorch has no C++ meta kernel, or only one written in Python.
using ShapeRule = std::vector<c10::IValue> (*)(const c10::IValue* args);
using ShapeTable = std::unordered_map<std::string, ShapeRule>;

/// Rule of an operator ("aten::relu", "aten::where.self"), or null.
ShapeRule findShapeRule(const std::string& op);

/// The rule of operators that write their first argument and return it.
ShapeRule inPlaceRule();

// One table a subject; adding a rule touches one of them.
const ShapeTable& normalisationRules();
const ShapeTable& reductionRules();
const ShapeTable& matrixRules();
const ShapeTable& convolutionRules();
const ShapeTable& attentionRules();
const ShapeTable& indexingRules();
const ShapeTable& pointwiseRules();

namespace shape {
/// A new meta tensor; row-major unless a memory format is given.
at::Tensor fresh(at::IntArrayRef sizes, at::ScalarType type, std::optional<at::MemoryFormat> format = {});
at::Tensor freshStrided(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type);
/// empty_like with the suggested memory format, as convolutions and batch norm allocate.
at::Tensor likeFormat(const at::Tensor& t);
/// empty_like preserving dense strides.
at::Tensor like(const at::Tensor& t);
/// The output TensorIterator would allocate for a pointwise kernel over `inputs` (broadcast, stride order kept).
at::Tensor pointwise(at::ArrayRef<at::Tensor> inputs, at::ScalarType type);
/// The accumulation type of statistics: float for half types.
at::ScalarType statisticsType(at::ScalarType t);
bool present(const c10::IValue& v);
/// While alive, rules of this thread describe what CUDA's kernels return (`cuda`), else what the CPU's do.
class DeviceScope {
 public:
  explicit DeviceScope(bool cuda);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;

 private:
  bool previous_;
};
bool forCuda();
/// `when` ? t : undefined.
c10::IValue optional(bool when, at::Tensor t);
}  // namespace shape

}  // namespace fusebox::trace
