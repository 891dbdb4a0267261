#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace fusebox::aot {

/// What graphs run under: gradients and autocast were already traced, so neither may act again.
struct ExecutorScope {
  c10::AutoGradMode noGrad{false};
  at::AutoDispatchBelowADInplaceOrView belowAutograd;
  c10::impl::ExcludeDispatchKeyGuard noAutocast{c10::autocast_dispatch_keyset};
};

}  // namespace fusebox::aot
