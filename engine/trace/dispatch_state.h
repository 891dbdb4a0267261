#pragma once

#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace fusebox::trace {

/// Where tracing sits in libtorch's dispatcher. DeferredInit is seen before autograd, Fake after functionalisation, TESTING_ONLY_GenericMode (which
/// libtorch leaves to whoever tests it) before the levels of torch.func's transforms.
inline constexpr c10::DispatchKey kLevelsKey = c10::DispatchKey::TESTING_ONLY_GenericMode;
inline constexpr c10::DispatchKey kFrontKey = c10::DispatchKey::DeferredInit;
inline constexpr c10::DispatchKey kTraceKey = c10::DispatchKey::Fake;
static_assert(c10::DispatchKey::Functionalize > kTraceKey && kTraceKey > c10::DispatchKey::Python,
              "Fake must be just below Functionalize: this PyTorch orders dispatch keys differently");
static_assert(kLevelsKey > c10::DispatchKey::FuncTorchDynamicLayerFrontMode,
              "TESTING_ONLY_GenericMode must be above the levels of transforms: this PyTorch orders dispatch keys differently");
static_assert(kFrontKey > c10::DispatchKey::AutogradFunctionality && kFrontKey > c10::DispatchKey::AutocastCPU,
              "DeferredInit must be above autograd and autocast: this PyTorch orders dispatch keys differently");

inline const c10::DispatchKeySet& traceKeys() {
  static const c10::DispatchKeySet keys{kLevelsKey, kFrontKey, kTraceKey, c10::DispatchKey::Functionalize};
  return keys;
}
inline const c10::DispatchKeySet& aboveTraceKeys() {
  static const c10::DispatchKeySet keys = c10::autograd_dispatch_keyset | c10::autocast_dispatch_keyset |
                                          c10::DispatchKeySet{c10::DispatchKey::ADInplaceOrView,
                                                              c10::DispatchKey::Functionalize, kFrontKey, kLevelsKey};
  return keys;
}

/// Sets this thread's dispatch keys and puts back what was there.
class DispatchState {
 public:
  DispatchState() : saved_(c10::impl::tls_local_dispatch_key_set()) {}
  ~DispatchState() { c10::impl::_force_tls_local_dispatch_key_set(saved_); }
  DispatchState(const DispatchState&) = delete;

  void include(c10::DispatchKeySet keys) {
    auto now = c10::impl::tls_local_dispatch_key_set();
    now.included_ = now.included_ | keys;
    now.excluded_ = now.excluded_ - keys;
    c10::impl::_force_tls_local_dispatch_key_set(now);
  }
  void exclude(c10::DispatchKeySet keys) {
    auto now = c10::impl::tls_local_dispatch_key_set();
    now.included_ = now.included_ - keys;
    now.excluded_ = now.excluded_ | keys;
    c10::impl::_force_tls_local_dispatch_key_set(now);
  }
  /// Neither forced on nor off.
  void neutral(c10::DispatchKeySet keys) {
    auto now = c10::impl::tls_local_dispatch_key_set();
    now.included_ = now.included_ - keys;
    now.excluded_ = now.excluded_ - keys;
    c10::impl::_force_tls_local_dispatch_key_set(now);
  }

 private:
  c10::impl::LocalDispatchKeySet saved_;
};

}  // namespace fusebox::trace
