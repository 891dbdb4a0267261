#include "engine/capture/evaluation/optimizer_state.h"

#include <algorithm>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/function_modes.h"
#include "engine/capture/evaluation/torch_objects.h"

namespace fusebox::capture {
namespace {

bool isOfTorchsOptimizers(PyObject* function) {
  static PyObject* const name = internedName("_init_group");
  auto* f = reinterpret_cast<PyFunctionObject*>(function);
  const char* module = f->func_name == name && f->func_module && PyUnicode_Check(f->func_module) ? utf8Of(f->func_module) : nullptr;
  return module && std::string_view(module).starts_with("torch.optim.");
}

Py_ssize_t gradientsOf(PyObject* group) {
  PyObject* parameters = PyDict_GetItem(group, internedName("params"));
  Py_ssize_t count = 0;
  for (Py_ssize_t i = 0; parameters && PyList_CheckExact(parameters) && i < PyList_GET_SIZE(parameters); ++i)
    count += isTensorObject(PyList_GET_ITEM(parameters, i)) && tensorOf(PyList_GET_ITEM(parameters, i)).grad().defined();
  return count;
}

}  // namespace

OptimizerState::OptimizerState(Evaluation& e, PyObject* function, const CallArguments& a) : e_(e) {
  if (!isOfTorchsOptimizers(function) || a.keywords() > 0 || a.positional < 4 || e.functionModes().isActive()) return;
  if (!PyDict_CheckExact(a.args[1]) || e.isFresh(a.args[0]) || e.isFresh(a.args[1])) return;
  for (size_t i = 2; i < a.positional; ++i)
    if (!PyList_CheckExact(a.args[i])) return;
  const PyRef attributes = PyRef::steal(PyObject_GenericGetDict(a.args[0], nullptr));
  PyObject* state = attributes ? PyDict_GetItem(attributes.get(), internedName("state")) : nullptr;
  clearError();
  if (!state || !PyDict_Check(state)) return;
  if (isWritten(attributes.get()) || isWritten(state) || isWritten(a.args[1])) return;
  function_ = PyRef::borrow(function), optimizer_ = PyRef::borrow(a.args[0]), group_ = PyRef::borrow(a.args[1]);
  given_ = PyRef::borrow(a.args[2]), state_ = PyRef::borrow(state), lists_ = a.positional - 2;
}

bool OptimizerState::isWritten(PyObject* container) const {
  const auto& entries = e_.journal().entries();
  return std::any_of(entries.begin(), entries.end(), [&](const auto& entry) { return entry.container.get() == container; });
}

void OptimizerState::settle() const {
  // A parameter whose gradient the segment itself gave or took has none yet, or still one.
  if (!function_ || !isWritten(state_.get()) || PyList_GET_SIZE(given_.get()) != gradientsOf(group_.get())) return;
  CaptureBreak again{{"optimizer", std::string("a ") + Py_TYPE(optimizer_.get())->tp_name + " makes its state in this call", "", e_.place(), e_.stackPlaces()}, -1};
  again.first = [function = function_, optimizer = optimizer_, group = group_, state = state_, lists = lists_, history = at::GradMode::is_enabled()] {
    const at::AutoGradMode mode(history);
    const Py_ssize_t before = PyDict_GET_SIZE(state.get());
    PyRef args = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(lists) + 2));
    PyTuple_SET_ITEM(args.get(), 0, PyRef::borrow(optimizer.get()).release());
    PyTuple_SET_ITEM(args.get(), 1, PyRef::borrow(group.get()).release());
    for (size_t i = 0; i < lists; ++i) PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i) + 2, PyList_New(0));
    const PyRef done = PyRef::steal(PyObject_Call(function.get(), args.get(), nullptr));
    if (!done) clearError();  // the program's own call raises it
    return done && PyDict_GET_SIZE(state.get()) > before;
  };
  throw again;
}

}  // namespace fusebox::capture
