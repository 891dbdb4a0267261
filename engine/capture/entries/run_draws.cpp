#include "engine/capture/entries/run_draws.h"

#include <ATen/ops/scalar_tensor.h>
#include <algorithm>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/entries/driver.h"
#include "engine/capture/evaluation/random_draws.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {
namespace {

PyRef tensorOfDrawn(PyObject* value, const Draw& draw) {
  using Gives = Draw::Gives;
  if (draw.gives == Gives::Float)
    return PyFloat_CheckExact(value) ? PyRef::steal(newTensorObject(at::scalar_tensor(PyFloat_AS_DOUBLE(value), at::kDouble))) : PyRef();
  if (draw.gives == Gives::Int) {
    int overflow = 0;
    const long long number = PyLong_CheckExact(value) ? PyLong_AsLongLongAndOverflow(value, &overflow) : (overflow = 1, 0);
    return overflow ? PyRef() : PyRef::steal(newTensorObject(at::scalar_tensor(static_cast<int64_t>(number), at::kLong)));
  }
  PyRef tensor = draw.gives != Gives::Tensor ? tensorOfNumpy(value) : isTensorObject(value) ? PyRef::borrow(value) : PyRef();
  if (!tensor) return {};
  const at::Tensor &found = tensorOf(tensor.get()), &known = tensorOf(draw.number->key.get());
  return found.scalar_type() == known.scalar_type() && found.sizes() == known.sizes() && found.strides() == known.strides() && found.device() == known.device() ? tensor : PyRef();
}

}  // namespace

bool RunDraws::make(const std::vector<Draw>& draws, Replay& replay, std::vector<PyRef>& sources) {
  Counted suspended(captureSuspended());
  for (const Draw& draw : draws) {
    const PyRef generator = replay.build(*draw.generator);
    const bool isKnown = std::any_of(before_.begin(), before_.end(), [&](const auto& b) { return b.first.get() == generator.get(); });
    PyRef state = isKnown || !generator ? generator : stateOfGenerator(generator.get());
    if (state && !isKnown) before_.emplace_back(generator, state);
    const PyRef value = state ? replay.build(*draw.call) : PyRef();
    const PyRef number = value && draw.number ? tensorOfDrawn(value.get(), draw) : value;
    if (!number) return putBack(), false;
    if (draw.index >= 0) sources[static_cast<size_t>(draw.index)] = number;
  }
  return true;
}

void RunDraws::putBack() {
  Counted suspended(captureSuspended());
  clearError();
  for (const auto& [generator, state] : before_) setStateOfGenerator(generator.get(), state.get());
  before_.clear();
  clearError();
}

}  // namespace fusebox::capture
