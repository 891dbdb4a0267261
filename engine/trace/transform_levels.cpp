#include "engine/trace/transform_levels.h"

#include <ATen/functorch/DynamicLayer.h>

namespace fusebox::trace {

bool insideTransform() { return at::functorch::maybeCurrentDynamicLayer().has_value(); }

void leaveTransforms() {
  while (insideTransform()) at::functorch::popDynamicLayerAndDeleteMetadata();
}

}  // namespace fusebox::trace
