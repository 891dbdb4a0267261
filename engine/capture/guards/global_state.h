#pragma once

#include <cstdint>
#include <string>

namespace fusebox::capture {

/// libtorch's state of this thread and process that changes what an operator does: one flat struct, compared as bytes.
/// The number of threads is not part of it.
struct GlobalState {
  uint64_t includedKeys = 0, excludedKeys = 0;  ///< dispatch keys of the thread (inference mode, functorch levels, modes)
  uint32_t flags = 0;                           ///< one bit per switch
  uint32_t float32Precisions = 0;               ///< of every backend and kind of operator, two bits each, by either interface
  int32_t defaultDevice = 0;                    ///< torch.set_default_device() or `with torch.device()`; 0: none is set
  int16_t defaultDtype = 0;                     ///< wider than it needs to be: the struct has no padding
  int8_t autocastCpuDtype = 0, autocastCudaDtype = 0;
  int32_t functionModes = 0;                    ///< other than the default device's
  int32_t dispatchModes = 0;
  int32_t functionDisabled = 0;
  int16_t savedTensorHooks = 0;                 ///< SavedTensorHooks; above: they are forbidden, a number for each reason
  int16_t cudaDevice = 0;                       ///< current device of the thread: where "cuda" is

  /// As it is now, on this thread.
  static GlobalState current();
  bool operator==(const GlobalState& o) const;
  /// What differs, as "grad_mode: True, was False"; empty if equal. `this` is what was expected.
  std::string difference(const GlobalState& found) const;
  /// This state's side of the difference: "grad_mode: False".
  std::string ownSide(const GlobalState& found) const;
  /// Why a frame that starts in this state is left to eager execution (modes of the user are active); null: it is not.
  const char* refusal() const;
};

}  // namespace fusebox::capture
