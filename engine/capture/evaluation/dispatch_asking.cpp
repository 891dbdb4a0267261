#include "engine/capture/evaluation/dispatch_asking.h"

#include <c10/core/impl/LocalDispatchKeySet.h>

#include <exception>
#include <utility>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/nested_tensors.h"
#include "engine/capture/evaluation/tensor_subclasses.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/trace/below_autograd.h"

namespace fusebox::capture {

namespace {

/// One call of C code. What evaluation throws must not unwind its frames: it waits in `thrown`.
struct Asking {
  Evaluation& e;
  c10::impl::LocalDispatchKeySet keys;  ///< of the program's own calls
  std::exception_ptr thrown;
  bool isNested = false;
  bool recordsGradients = at::GradMode::is_enabled();
};

struct DispatchSentinel {
  PyObject_HEAD
  Asking* asking;
};

thread_local int dispatchDepth = 0;

struct DeeperInDispatch {
  DeeperInDispatch() { ++dispatchDepth; }
  ~DeeperInDispatch() { --dispatchDepth; }
};

PyRef taken(Evaluation& e, PyObject* given) {
  if (PyTuple_CheckExact(given) || PyList_CheckExact(given)) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(given);
    PyRef made = PyRef::steal(PyTuple_CheckExact(given) ? PyTuple_New(n) : PyList_New(n));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* part = taken(e, PySequence_Fast_GET_ITEM(given, i)).release();
      if (PyTuple_CheckExact(given)) PyTuple_SET_ITEM(made.get(), i, part);
      else PyList_SET_ITEM(made.get(), i, part);
    }
    e.adopt(made.get());
    return made;
  }
  return e.fromTorchCall(PyRef::borrow(given));
}

template <class F>
bool anyTensor(PyObject* given, const F& is) {
  if (isTensorObject(given)) return is(given);
  if (PyDict_CheckExact(given)) {
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(given, &at, &key, &value);)
      if (anyTensor(value, is)) return true;
  }
  for (Py_ssize_t i = 0; (PyTuple_Check(given) || PyList_Check(given)) && i < PySequence_Fast_GET_SIZE(given); ++i)
    if (anyTensor(PySequence_Fast_GET_ITEM(given, i), is)) return true;
  return false;
}

bool hasWrapper(PyObject* given) {
  return anyTensor(given, [](PyObject* t) { return isWrapperClass(Py_TYPE(t)); });
}

bool wantsGradient(PyObject* given) {
  return anyTensor(given, [](PyObject* t) { return isWrapperClass(Py_TYPE(t)) && tensorOf(t).requires_grad(); });
}

/// What a class gives for a view operator, as eager has it there: its operators are below autograd and make no views, so that the caller's can.
PyRef withoutHistory(PyRef given) {
  if (PyTuple_CheckExact(given.get()) || PyList_CheckExact(given.get())) {
    PyRef made = PyRef::steal(PyList_New(0));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(given.get()); ++i)
      PyList_Append(made.get(), withoutHistory(PyRef::borrow(PySequence_Fast_GET_ITEM(given.get(), i))).get());
    return PyTuple_CheckExact(given.get()) ? PyRef::steal(PyList_AsTuple(made.get())) : made;
  }
  if (!isTensorObject(given.get()) || isWrapperClass(Py_TYPE(given.get()))) return given;
  const at::Tensor& t = tensorOf(given.get());
  if (!t.unsafeGetTensorImpl()->autograd_meta() || t.requires_grad()) return given;
  const at::AutoDispatchBelowADInplaceOrView below;
  return PyRef::steal(newTensorObject(at::alias(t)));
}

/// The first of the classes that does not decline.
PyRef askClasses(Evaluation& e, PyObject* function, PyObject* types, PyObject* args, PyObject* keywords) {
  const DeeperInDispatch inside;
  PyRef positional = taken(e, args), named = PyRef::steal(PyDict_New());
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Check(keywords) && PyDict_Next(keywords, &at, &key, &value);) PyDict_SetItem(named.get(), key, taken(e, value).get());
  for (PyObject* made : {types, positional.get(), named.get()}) e.adopt(made);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(types); ++i) {
    PyRef method = e.getAttr(PyTuple_GET_ITEM(types, i), internedName("__torch_dispatch__"));
    if (!method) return {};
    PyObject* given[] = {function, types, positional.get(), named.get()};
    PyRef result = e.call(method.get(), given, 4, nullptr);
    if (result.get() != Py_NotImplemented) return result;
  }
  e.breakHere("tensor subclass", "no class of the arguments answers an operator of torch");
}

PyRef answerOfNested(Asking& asking, PyObject* function, PyObject* args, PyObject* keywords);

PyObject* answer(PyObject* self, PyObject* arguments) {
  Asking& asking = *reinterpret_cast<DispatchSentinel*>(self)->asking;
  PyObject *function = nullptr, *types = nullptr, *args = nullptr, *keywords = nullptr;
  if (!PyArg_ParseTuple(arguments, "OOO|O", &function, &types, &args, &keywords)) return nullptr;
  if (asking.isNested) {
    try {
      PyRef result = answerOfNested(asking, function, args, keywords ? keywords : Py_None);
      return result ? asking.e.expose(result.get()).release() : nullptr;
    } catch (...) {
      asking.thrown = std::current_exception();
      PyErr_SetString(PyExc_RuntimeError, "fusebox: capture stopped in an operator on a nested tensor");
      return nullptr;
    }
  }
  // Operators that it consists of may be others' alone.
  if (!hasWrapper(args) && !(keywords && hasWrapper(keywords))) return PyObject_Call(function, args, keywords && PyDict_Check(keywords) ? keywords : nullptr);
  try {
    PyRef result;
    if (asking.recordsGradients && (wantsGradient(args) || (keywords && wantsGradient(keywords))))
      asking.e.breakHere("tensor subclass", "an operator is given a tensor of a class that requires a gradient");
    {
      const trace::BelowAutograd below;
      const c10::impl::ForceDispatchKeyGuard above(asking.keys);
      result = askClasses(asking.e, function, types, args, keywords ? keywords : Py_None);
      if (result) result = asking.e.expose(result.get());
    }
    if (!result) return nullptr;
    PyRef isView = PyRef::steal(PyObject_GetAttrString(function, "is_view"));
    clearError();
    return (isView.get() == Py_True ? withoutHistory(std::move(result)) : std::move(result)).release();
  } catch (...) {
    asking.thrown = std::current_exception();
    PyErr_SetString(PyExc_RuntimeError, "fusebox: capture stopped in __torch_dispatch__");
    return nullptr;
  }
}

PyMethodDef kDispatchMethods[] = {{"__torch_dispatch__", answer, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};

PyTypeObject* dispatchSentinelType() {
  static PyType_Slot slots[] = {{Py_tp_methods, kDispatchMethods}, {0, nullptr}};
  static PyType_Spec spec = {"fusebox._engine.DispatchAsking", sizeof(DispatchSentinel), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  static auto* const type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return type;
}

/// The evaluator's mode is the innermost while it lives.
class Placed {
 public:
  explicit Placed(Asking& asking) {
    auto* sentinel = PyObject_New(DispatchSentinel, dispatchSentinelType());
    sentinel->asking = &asking;
    PyRef held = PyRef::steal(reinterpret_cast<PyObject*>(sentinel));
    static PyObject* const push = torchObject("torch._C._push_on_torch_dispatch_stack");
    PyRef done = PyRef::steal(PyObject_CallOneArg(push, held.get()));
  }
  ~Placed() {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    static PyObject* const pop = torchObject("torch._C._pop_torch_dispatch_stack");
    PyRef done = PyRef::steal(PyObject_CallOneArg(pop, Py_None));
    PyErr_Restore(type, value, traceback);
  }
  Placed(const Placed&) = delete;
};

PyRef answerOfNested(Asking& asking, PyObject* function, PyObject* args, PyObject* keywords) {
  bool isConcerned = false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) isConcerned = isConcerned || holdsNested(PyTuple_GET_ITEM(args, i));
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Check(keywords) && PyDict_Next(keywords, &at, &key, &value);) isConcerned = isConcerned || holdsNested(value);
  const auto decompose = [&] {
    const Placed again(asking);
    const at::AutoDispatchBelowADInplaceOrView below;
    static PyObject* const decomposed = torchObject("fusebox._nested.decomposed");
    return PyRef::steal(PyObject_CallFunctionObjArgs(decomposed, function, args, keywords, nullptr));
  };
  const c10::impl::ForceDispatchKeyGuard above(asking.keys);
  const at::AutoGradMode mode(asking.recordsGradients);
  if (!isConcerned) return PyRef::steal(PyObject_Call(function, args, PyDict_Check(keywords) ? keywords : nullptr));
  const DeeperInDispatch inside;
  PyRef positional = taken(asking.e, args), named = PyRef::steal(PyDict_New());
  for (Py_ssize_t at = 0; PyDict_Check(keywords) && PyDict_Next(keywords, &at, &key, &value);) PyDict_SetItem(named.get(), key, taken(asking.e, value).get());
  asking.e.adopt(positional.get());
  return askNested(asking.e, function, positional.get(), named.get(), decompose);
}

}  // namespace

bool isInsideDispatch() { return dispatchDepth > 0; }

PyRef dispatched(Evaluation& e, const std::function<PyRef()>& call, bool isNested) {
  Asking asking{e, c10::impl::tls_local_dispatch_key_set(), nullptr, isNested};
  const auto rethrow = [&] {
    if (!asking.thrown) return;
    clearError();
    std::rethrow_exception(std::exchange(asking.thrown, nullptr));
  };
  try {
    const Placed placed(asking);
    PyRef result = call();
    rethrow();
    return result;
  } catch (...) {
    rethrow();
    throw;
  }
}

}  // namespace fusebox::capture
