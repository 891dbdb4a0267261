#include "engine/trace/transform_levels.h"

#include <ATen/functorch/DynamicLayer.h>

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

void leaveTransforms() {
  while (insideTransform()) at::functorch::popDynamicLayerAndDeleteMetadata();
}

}  // namespace fusebox::trace
