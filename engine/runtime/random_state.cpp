#include "engine/runtime/random_state.h"

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>

#include <mutex>

namespace fusebox::runtime {

RandomState::RandomState(const std::vector<c10::Device>& devices) {
  for (const c10::Device& device : devices) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    std::lock_guard lock(generator.mutex());
    try {
      states_.emplace_back(generator, generator.get_state());
    } catch (const std::exception&) {
      // While the program captures a CUDA graph of its own, nobody may ask; nothing has been drawn for good then.
    }
  }
}

void RandomState::restore() const {
  for (auto [generator, state] : states_) {
    std::lock_guard lock(generator.mutex());
    generator.set_state(state);
  }
}

}  // namespace fusebox::runtime
