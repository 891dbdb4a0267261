#include "engine/capture/evaluation/switched_leaves.h"

#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/torch_calls.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/trace/trace_context.h"
#include "engine/trace/transform_levels.h"

namespace fusebox::capture {

namespace {

const trace::TracedInput& tracedInput(Evaluation& e, PyObject* standIn) {
  return e.trace().inputs()[static_cast<size_t>(*e.trace().inputOf(tensorOf(standIn)))];
}

}  // namespace

bool SwitchedLeaves::change(PyObject* tensor, bool wanted) {
  const at::Tensor& standIn = tensorOf(tensor);
  if (e_.torchCalls() || trace::insideTransform() || !e_.isStandIn(tensor) || e_.isNumber(tensor) || !isPlainTensorClass(Py_TYPE(tensor)) || !e_.trace().inputOf(standIn)) return false;
  const trace::TracedInput& input = tracedInput(e_, tensor);
  if (!input.isLeaf || !standIn.is_leaf() || input.real.is_inference() || input.real.is_view() || input.real.layout() != at::kStrided ||
      !torch::autograd::isDifferentiableType(standIn.scalar_type()))
    return false;
  standIn.set_requires_grad(wanted);
  changed_.emplace(tensor, PyRef::borrow(tensor));
  const Frame* root = e_.frame();
  while (root && !root->isRoot) root = root->caller;
  static PyObject* const change = torchObject("torch._C.TensorBase.requires_grad_");
  e_.pin(change, Why::Process);
  e_.journal().putOff(change, PyRef::steal(PyTuple_Pack(2, tensor, wanted ? Py_True : Py_False)).get(), PyRef::steal(PyDict_New()).get(),
                      root ? root->instruction().offset : 0, false);
  return true;
}

void SwitchedLeaves::requireUnused() const {
  for (const auto& [standIn, keep] : changed_)
    if (!tracedInput(e_, standIn).requiresGrad && torch::autograd::impl::try_get_grad_accumulator(tensorOf(standIn)))
      throw CaptureBreak{{"unsupported side effect", "a gradient is wanted of a tensor whose requires_grad was switched on since the graph began", "", e_.place(), e_.stackPlaces()},
                         e_.rootCount()};
}

void SwitchedLeaves::takeBack() const {
  for (const auto& [standIn, keep] : changed_) tensorOf(standIn).set_requires_grad(tracedInput(e_, standIn).requiresGrad);
}

void Evaluation::changeRequiresGrad(PyObject* tensor, PyObject* value) {
  const bool isPlain = isTensorObject(tensor) && (value == Py_True || value == Py_False);
  if (isPlain && tensorOf(tensor).requires_grad() == (value == Py_True)) return;
  if (!isPlain || !switchedLeaves_->change(tensor, value == Py_True)) breakHere("unsupported side effect", "requires_grad of an existing tensor is changed");
}

}  // namespace fusebox::capture
