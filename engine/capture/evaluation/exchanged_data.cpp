#include "engine/capture/evaluation/exchanged_data.h"

#include <ATen/FunctionalTensorWrapper.h>

#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/frame.h"
#include "engine/capture/evaluation/function_modes.h"
#include "engine/capture/evaluation/torch_calls.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/rules/autograd_function.h"
#include "engine/trace/trace_context.h"
#include "engine/trace/transform_levels.h"

namespace fusebox::capture {

namespace {

constexpr const char* kWhat = "assignment to data of a tensor that existed before";

}  // namespace

void ExchangedData::refuse(const char* why) { e_.breakHere("unsupported side effect", std::string(kWhat) + why); }

/// After the graph, in its place among the effects.
void ExchangedData::putOff(PyObject* callable, PyObject* args) {
  const Frame* root = e_.frame();
  while (root && !root->isRoot) root = root->caller;
  e_.journal().putOff(callable, args, PyRef::steal(PyDict_New()).get(), root ? root->instruction().offset : 0, false);
}

void ExchangedData::exchange(PyObject* tensor, PyObject* data) {
  const auto isPlain = [&](PyObject* o) { return e_.isStandIn(o) && !e_.isNumber(o) && isPlainTensorClass(Py_TYPE(o)) && !tensorOf(o).is_inference(); };
  if (!data || !isPlain(tensor) || !isPlain(data)) refuse(data ? ", by another kind of value" : "");
  if (trace::insideTransform() || e_.functions().isLate() || e_.functionModes().isActive()) refuse(" inside of a transform or mode");
  const at::Tensor &to = tensorOf(tensor), &from = tensorOf(data);
  const std::optional<int32_t> index = e_.trace().inputOf(to);
  if (!index) refuse("");
  const trace::TracedInput& input = e_.trace().inputs()[static_cast<size_t>(*index)];
  if (to.device() != from.device()) refuse(", by data of another device");
  if (input.real.is_view()) refuse(" as a view");
  if (to.requires_grad()) {
    if (!input.requiresGrad || !input.isLeaf) refuse(" and has a history");
    // Backward would ask what it holds then.
    if (input.gradEdge.use_count() > 1) refuse(", after a gradient has been asked of what was computed with it");
    if (to.scalar_type() != from.scalar_type()) refuse(" and requires a gradient, by data of another type");
  }
  if (!exchanged_.contains(tensor)) {
    Input first{PyRef::borrow(tensor), to.variable_data(), static_cast<int64_t>(to._version())};
    exchanged_.emplace(tensor, std::move(first));
  }
  // The node of autograd that takes its gradient knows the shape that it had.
  const bool changesShape = to.requires_grad() && (to.sizes() != from.sizes() || to.strides() != from.strides());
  if (int64_t& at = exchanged_.at(tensor).reshapedAt; changesShape && at < 0) at = e_.rootCount();
  static PyObject* const set = torchObject("torch.Tensor.data.__set__");
  TorchCalls* calls = e_.torchCalls();
  TorchCalls::Scope reads(calls);
  PyRef alias = e_.checked(newTensorObject(calls ? from.detach() : from.variable_data()));
  reads.done("getattr", {data, internedName("data")}, alias.get());
  to.set_data(tensorOf(alias.get()));
  PyObject* args[] = {tensor, alias.get()};
  if (calls) TorchCalls::Scope(calls).done(torchObject("fusebox._torch_calls.exchanged"), {args, 2, nullptr}, Py_None, TorchCalls::Kind::Mode);
  putOff(set, PyRef::steal(PyTuple_Pack(2, tensor, alias.get())).get());
}

void ExchangedData::takeBack() {
  static PyObject* const count = torchObject("torch._C._increment_version");
  for (auto& [object, input] : exchanged_) {
    const at::Tensor& standIn = tensorOf(object);
    const int64_t writes = static_cast<int64_t>(standIn._version()) - input.version;
    if (input.reshapedAt >= 0 && e_.trace().inputs()[static_cast<size_t>(*e_.trace().inputOf(standIn))].gradEdge.use_count() > 1)
      throw CaptureBreak{{"unsupported side effect", std::string(kWhat) + " and requires a gradient, which is asked of data of another shape", "", e_.place(), {}},
                         input.reshapedAt};
    standIn.set_data(input.before);
    if (writes == 0) continue;
    auto* wrapper = at::functionalization::impl::unsafeGetFunctionalWrapper(standIn);
    if (wrapper->has_data_mutation() || wrapper->has_metadata_mutation()) continue;  // counted with what was written there
    PyRef tensors = PyRef::steal(PyTuple_New(writes));
    for (int64_t i = 0; i < writes; ++i) PyTuple_SET_ITEM(tensors.get(), i, Py_NewRef(object));
    putOff(count, PyRef::steal(PyTuple_Pack(1, tensors.get())).get());
  }
}

}  // namespace fusebox::capture
