#include "engine/trace/transform_levels.h"

#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/functorch/TensorWrapper.h>

namespace fusebox::trace {

bool insideTransform() { return at::functorch::maybeCurrentDynamicLayer().has_value(); }

const char* currentTransform() {
  const auto layer = at::functorch::maybeCurrentDynamicLayer();
  if (!layer) return nullptr;
  switch (layer->key()) {
    case at::functorch::TransformType::Vmap: return "vmap";
    case at::functorch::TransformType::Grad: return "grad";
    case at::functorch::TransformType::Jvp: return "jvp";
    default: return nullptr;
  }
}

at::Tensor belowLevels(const at::Tensor& tensor) {
  at::Tensor inner = tensor;
  while (inner.defined()) {
    if (const auto* batched = at::functorch::maybeGetBatchedImpl(inner)) inner = at::Tensor(batched->value());
    else if (const auto* wrapper = at::functorch::maybeGetTensorWrapper(inner)) inner = at::Tensor(wrapper->value());
    else break;
  }
  return inner;
}

void leaveTransforms() {
  while (insideTransform()) at::functorch::popDynamicLayerAndDeleteMetadata();
}

}  // namespace fusebox::trace
