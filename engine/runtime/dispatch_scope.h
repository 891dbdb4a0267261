#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace fusebox::runtime {

/// While alive, operators of this thread go straight to the backends: autograd, autocast, functionalisation, tracing tensors
/// and Python modes have had their say when the graph was captured.
class DispatchScope {
 public:
  DispatchScope() : exclude_(excludedKeys()) {}

 private:
  static c10::DispatchKeySet excludedKeys() {
    using c10::DispatchKey;
    return c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset | c10::python_ks |
           c10::DispatchKeySet({DispatchKey::Functionalize, DispatchKey::Fake, DispatchKey::DeferredInit,
                                DispatchKey::PythonDispatcher, DispatchKey::PreDispatch});
  }
  c10::impl::ExcludeDispatchKeyGuard exclude_;
};

}  // namespace fusebox::runtime
