#pragma once

#include <ATen/ATen.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <functional>

#include "engine/graph/graph.h"
#include "engine/trace/symbolic_geometry.h"

namespace fusebox::trace {

graph::Device toDevice(c10::Device device);
c10::Device fromDevice(const graph::Device& device);
/// Geometry of `tensor`: as expressions where it is a stand-in with symbolic sizes, through functional wrappers too; else as constants. `device`
/// stands in where the tensor itself is a meta tensor, `geometry`, if given, for its own.
graph::TensorMeta toMeta(const at::Tensor& tensor, c10::Device device, const SymbolicGeometry* geometry = nullptr);
/// "aten::add.Tensor"; the default overload has no suffix.
std::string operatorName(const c10::FunctionSchema& schema);

/// Turns one operator argument into the graph's form. `tensor` maps a defined tensor to a value or to a scalar. Throws BreakError for
/// what a graph cannot hold (generators other than the default one, objects).
graph::Argument toArgument(const c10::IValue& value, const c10::Argument& schema,
                           const std::function<graph::Argument(const at::Tensor&)>& tensor);

/// Calls `fn(at::Tensor&)`-like visitors over tensors, tensor lists and optional tensor lists.
template <class F>
void forEachTensor(const c10::IValue& value, F&& fn) {
  if (value.isTensor()) {
    auto& t = value.toTensor();
    if (t.defined()) fn(t);
  } else if (value.isTensorList() || value.isOptionalTensorList()) {
    for (auto& element : value.toListRef())
      if (element.isTensor() && element.toTensor().defined()) fn(element.toTensor());
  }
}

/// Replaces every defined tensor in `value` by `fn(tensor)`; lists are rebuilt only when something changed.
template <class F>
void mapTensors(c10::IValue& value, F&& fn) {
  if (value.isTensor()) {
    auto& t = value.toTensor();
    if (t.defined()) value = c10::IValue(fn(t));
  } else if (value.isTensorList()) {
    auto list = value.toTensorVector();
    for (auto& t : list)
      if (t.defined()) t = fn(t);
    value = c10::IValue(std::move(list));
  } else if (value.isOptionalTensorList()) {
    auto old = value.toOptionalTensorList();
    c10::List<std::optional<at::Tensor>> made;
    for (size_t i = 0; i < old.size(); ++i) {
      std::optional<at::Tensor> t = old.get(i);
      if (t && t->defined()) t = fn(*t);
      made.push_back(std::move(t));
    }
    value = c10::IValue(std::move(made));
  }
}

}  // namespace fusebox::trace
