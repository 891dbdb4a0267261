#include "engine/capture/evaluation/function_modes.h"

#include <ATen/PythonTorchFunctionTLS.h>

#include <algorithm>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"

namespace fusebox::capture {

using at::impl::PythonTorchFunctionTLS;

namespace {

struct SentinelObject {
  PyObject_HEAD
  FunctionModes* modes;
};

PyObject* marker() {
  static PyObject* const object = PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
  return object;
}

}  // namespace

/// `__torch_function__` of the evaluator's mode.
PyObject* noteAsked(PyObject* self, PyObject* args) {
  FunctionModes& modes = *reinterpret_cast<SentinelObject*>(self)->modes;
  if (++modes.asked_ == 1) modes.arguments_ = PyRef::borrow(args);
  return Py_NewRef(marker());
}

namespace {

PyMethodDef kMethods[] = {{"__torch_function__", noteAsked, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};

PyTypeObject* sentinelType() {
  static PyType_Slot slots[] = {{Py_tp_methods, kMethods}, {0, nullptr}};
  static PyType_Spec spec = {"fusebox._engine.FunctionModes", sizeof(SentinelObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  static auto* const type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return type;
}

bool isDeviceMode(PyObject* mode) {
  static PyObject* const type = torchObject("torch.utils._device.DeviceContext");
  return reinterpret_cast<PyObject*>(Py_TYPE(mode)) == type;
}

}  // namespace

ProgramModesAside::ProgramModesAside() {
  int64_t below = 0;
  const int64_t all = PythonTorchFunctionTLS::stack_len();
  while (below < all && isDeviceMode(functionModeAt(below))) ++below;
  for (int64_t i = below; i < all; ++i) modes_.emplace_back(PythonTorchFunctionTLS::pop_stack());
}

ProgramModesAside::~ProgramModesAside() {
  for (; !modes_.empty(); modes_.pop_back()) PythonTorchFunctionTLS::push_onto_stack(std::static_pointer_cast<c10::SafePyObject>(modes_.back()));
}

void FunctionModes::placeSentinel() {
  if (isPlaced_) return;
  auto* sentinel = PyObject_New(SentinelObject, sentinelType());
  sentinel->modes = this;
  pushFunctionMode(PyRef::steal(reinterpret_cast<PyObject*>(sentinel)).get());
  isPlaced_ = true;
}

void FunctionModes::removeSentinel() {
  if (std::exchange(isPlaced_, false)) (void)PythonTorchFunctionTLS::pop_stack();
}

void FunctionModes::begin() {
  const int64_t all = PythonTorchFunctionTLS::stack_len();
  while (below_ < all && isDeviceMode(functionModeAt(below_))) ++below_;
  for (int64_t i = below_; i < all; ++i) {
    PyObject* mode = functionModeAt(i);
    modes_.push_back(e_.wrap(mode, e_.sources().derived(Source::Kind::FunctionMode, nullptr, nullptr, i)));
    entry_.push_back(modes_.back().get());
  }
  for (int64_t i = below_; i < all; ++i) (void)PythonTorchFunctionTLS::pop_stack();
  if (isActive()) placeSentinel();
}

void FunctionModes::end(bool returns) {
  size_t kept = 0;
  while (kept < modes_.size() && kept < entry_.size() && modes_[kept].get() == entry_[kept]) ++kept;
  if (kept == modes_.size() && kept == entry_.size()) return removeSentinel();
  if (returns) {
    static PyObject *const pop = torchObject("torch._C._pop_torch_function_stack"), *const push = torchObject("torch._C._push_on_torch_function_stack");
    for (size_t i = kept; i < entry_.size(); ++i) e_.deferCall(pop, {nullptr, 0, nullptr}, true);
    for (size_t i = kept; i < modes_.size(); ++i) {
      PyObject* args[] = {modes_[i].get()};
      e_.deferCall(push, {args, 1, nullptr}, true);
    }
  } else {
    throw CaptureBreak{{"torch function mode", "a torch function mode is entered or left where capture stops", "", e_.place(), e_.stackPlaces()}, changedAt_};
  }
  removeSentinel();
}

Py_ssize_t FunctionModes::count() const {
  return static_cast<Py_ssize_t>(PythonTorchFunctionTLS::stack_len()) - (isPlaced_ ? 1 : 0) + static_cast<Py_ssize_t>(modes_.size());
}

void FunctionModes::push(PyObject* mode) {
  changedAt_ = e_.rootCount();
  modes_.push_back(PyRef::borrow(mode));
  placeSentinel();
}

PyRef FunctionModes::pop() {
  if (modes_.empty()) e_.breakHere("torch function mode", "a torch function mode that is not the program's own is left");
  changedAt_ = e_.rootCount();
  ++answers_;  // torch's own functions in Python ask a mode so
  PyRef mode = std::move(modes_.back());
  modes_.pop_back();
  if (modes_.empty()) removeSentinel();
  return mode;
}

PyRef FunctionModes::at(Py_ssize_t index) {
  const Py_ssize_t first = count() - static_cast<Py_ssize_t>(modes_.size());
  if (index < first || index >= count()) e_.breakHere("torch function mode", "the mode of a default device is read from the stack of modes");
  return modes_[static_cast<size_t>(index - first)];
}

void FunctionModes::refuse() {
  clearError();
  PyRef name = arguments_ ? PyRef::steal(PyObject_Repr(PyTuple_GET_ITEM(arguments_.get(), 0))) : PyRef();
  clearError();
  asked_ = 0;
  e_.breakHere("torch function mode", std::string("C code uses what a torch function mode says of ") + (name ? utf8Of(name.get()) : "a function"),
               "Leave the mode before it.");
}

PyRef FunctionModes::answer(PyRef result) {
  if (asked_ != 1 || result.get() != marker()) refuse();
  return ask();
}

bool FunctionModes::settle(bool done) {
  if (!wasAsked()) return done;
  if (asked_ != 1 || !done) refuse();
  return static_cast<bool>(ask());
}

PyRef FunctionModes::ask() {
  asked_ = 0;
  ++answers_;
  const PyRef given = std::move(arguments_);
  std::vector<PyRef> keep;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given.get()); ++i) keep.push_back(PyRef::borrow(PyTuple_GET_ITEM(given.get(), i)));
  if (!e_.origin(keep[0].get())) e_.pin(keep[0].get(), Why::Process);
  // The program's own objects, where C code was given copies of them.
  PyRef args = PyRef::steal(PyTuple_New(PyTuple_GET_SIZE(keep[2].get())));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args.get()); ++i)
    PyTuple_SET_ITEM(args.get(), i, e_.fromTorchCall(PyRef::borrow(PyTuple_GET_ITEM(keep[2].get(), i))).release());
  keep[2] = std::move(args);
  if (keep.size() > 3 && PyDict_CheckExact(keep[3].get())) {
    PyRef keywords = PyRef::steal(PyDict_New());
    PyObject *name, *value;
    for (Py_ssize_t at = 0; PyDict_Next(keep[3].get(), &at, &name, &value);) PyDict_SetItem(keywords.get(), name, e_.fromTorchCall(PyRef::borrow(value)).get());
    keep[3] = std::move(keywords);
  }
  for (size_t i = 1; i < keep.size(); ++i)
    if (keep[i].get() != Py_None) e_.adopt(keep[i].get());
  const PyRef mode = std::move(modes_.back());
  modes_.pop_back();
  if (modes_.empty()) removeSentinel();
  struct Back {
    FunctionModes& modes;
    const PyRef& mode;
    ~Back() {
      modes.modes_.push_back(PyRef::borrow(mode.get()));
      modes.placeSentinel();
    }
  } back{*this, mode};
  PyRef method = e_.getAttr(mode.get(), internedName("__torch_function__"));
  if (!method) return {};
  std::vector<PyObject*> all;
  for (const PyRef& part : keep) all.push_back(part.get());
  PyRef result = e_.call(method.get(), all.data(), all.size(), nullptr);
  if (result.get() == Py_NotImplemented) e_.breakHere("torch function mode", "a torch function mode leaves a function to others");
  return result;
}

}  // namespace fusebox::capture
