#include "engine/aot/tensor_hooks.h"

#include <torch/csrc/autograd/python_hook.h>

#include <cstring>
#include <optional>
#include <typeinfo>

namespace fusebox::aot {
namespace {

/// The result whose gradient a hook is called with; none: not a hook of Python. libtorch keeps the type's identity to itself, but not its name.
std::optional<size_t> resultOf(const torch::autograd::FunctionPreHook& hook) {
  if (std::strcmp(typeid(hook).name(), "N5torch8autograd23PyFunctionTensorPreHookE") != 0) return std::nullopt;
  return static_cast<const torch::autograd::PyFunctionTensorPreHook&>(hook).value_idx;
}

}  // namespace

torch::autograd::variable_list HooksOfResults::operator()(const torch::autograd::variable_list& given) {
  auto now = given;
  for (auto& hook : hooks_) {
    const auto result = resultOf(*hook);
    if (result && *result < now.size() && !now[*result].defined()) passedOver_ = true;
    else now = (*hook)(now);
  }
  return now;
}

}  // namespace fusebox::aot
