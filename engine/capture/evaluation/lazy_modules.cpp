#include "engine/capture/evaluation/lazy_modules.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/function_modes.h"
#include "engine/capture/evaluation/namespaces.h"
#include "engine/capture/evaluation/symbolic_numbers.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/graph/operator_facts.h"
#include "engine/trace/trace_tensor.h"

extern "C" PyObject* _PyType_Lookup(PyTypeObject*, PyObject*);

namespace fusebox::capture {
namespace {

/// An argument of the call: a constant, an object from before the call, or a tensor, of which torch's lazy modules read the sizes alone.
struct Argument {
  PyRef constant;  ///< or such an object
  std::vector<int64_t> sizes, strides;
  at::ScalarType type = at::ScalarType::Undefined;

  PyRef object() const {
    if (constant) return constant;
    return PyRef::steal(newTensorObject(at::empty_strided(sizes, strides, at::TensorOptions(type).device(at::kMeta))));
  }
};

bool isMethodOfTorch(PyTypeObject* type, const char* method) {
  PyObject* found = _PyType_Lookup(type, internedName(method));
  return found && PyFunction_Check(found) && isLibraryNamespace(PyFunction_GET_GLOBALS(found), Library::Torch);
}

Py_ssize_t hookCount(PyObject* dict, const char* table) {
  PyObject* hooks = PyDict_GetItem(dict, internedName(table));
  return hooks && PyDict_Check(hooks) ? PyDict_GET_SIZE(hooks) : -1;
}

/// Whether the module may be set up before what the segment has done so far: no random numbers were drawn, nothing of the module was written,
/// and where code of the program takes part, there is nothing that it could see.
bool mayGoFirst(Evaluation& e, PyObject* module, PyObject* dict) {
  const auto& nodes = e.trace().graph().nodes();
  if (std::any_of(nodes.begin(), nodes.end(), [](const auto& node) { return graph::drawsRandom(node) || graph::isOrdered(node); })) return false;
  const auto& written = e.journal().entries();
  if (std::any_of(written.begin(), written.end(), [&](const auto& entry) { return entry.container.get() == dict; })) return false;
  if (isMethodOfTorch(Py_TYPE(module), "reset_parameters") && isMethodOfTorch(Py_TYPE(module), "initialize_parameters")) return true;
  return e.effectsSoFar() == Evaluation::Effects{} && e.journal().calls() == 0 && !e.trace().wroteInputs();
}

/// What the program gives for `given`, where nothing that the segment computes is in it; null: something is.
PyRef fromOutside(Evaluation& e, PyObject* given) {
  if (isConstantValue(given)) return PyRef::borrow(given);
  if (e.isTensor(given)) {
    const Origin* origin = e.origin(given);
    if (!origin || !origin->source || !origin->twin) return {};
    return e.isStandIn(given) ? origin->twin : PyRef::borrow(given);
  }
  if (!(PyList_CheckExact(given) || PyTuple_CheckExact(given)) || !e.isFresh(given)) return !isSymbolicNumber(given) && e.sourceOf(given) ? PyRef::borrow(given) : PyRef();
  PyRef made = PyRef::steal(PyList_New(0));
  for (Py_ssize_t i = 0; i < e.builtinLength(given); ++i) {
    const PyRef item = fromOutside(e, e.element(given, i).get());
    if (!item) return {};
    PyList_Append(made.get(), item.get());
  }
  return PyTuple_CheckExact(given) ? PyRef::steal(PyList_AsTuple(made.get())) : made;
}

bool setUp(PyObject* module, const std::vector<Argument>& arguments) {
  PyRef args = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(arguments.size())));
  for (size_t i = 0; i < arguments.size(); ++i) PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), arguments[i].object().release());
  PyRef done = PyRef::steal(PyObject_CallMethod(module, "_infer_parameters", "OO", module, args.get()));
  if (!done) clearError();  // the program's own call raises it
  return static_cast<bool>(done);
}

}  // namespace

void setUpLazyModule(Evaluation& e, PyObject* module, PyObject* dict, const CallArguments& a) {
  static PyObject* const kHook = internedName("_initialize_hook");
  if (PyDict_Contains(dict, kHook) != 1 || e.isFresh(module) || a.keywords() > 0) return;
  PyObject* globals = PyModule_GetDict(torchObject("torch.nn.modules.module"));
  const bool first = hookCount(dict, "_forward_pre_hooks") == 1 && hookCount(globals, "_global_forward_pre_hooks") == 0;
  // Code of the program gets what eager gives it, where that is there already.
  const bool torchs = isMethodOfTorch(Py_TYPE(module), "initialize_parameters");
  if (!first || !isMethodOfTorch(Py_TYPE(module), "_infer_parameters") || !mayGoFirst(e, module, dict)) return;
  const bool isAutocast = at::autocast::is_autocast_enabled(at::kCPU) || at::autocast::is_autocast_enabled(at::kCUDA);
  if (!torchs && (isAutocast || e.functionModes().isActive())) return;
  std::vector<Argument> arguments;
  for (size_t i = 0; i < a.positional; ++i) {
    const PyRef whole = e.settled(a.args[i]);
    PyObject* given = whole.get();
    Argument& argument = arguments.emplace_back();
    if (!torchs) {
      argument.constant = fromOutside(e, given);
      if (!argument.constant) return;
      continue;
    }
    const auto* traced = e.isStandIn(given) ? trace::asTraceThroughWrapper(tensorOf(given)) : nullptr;
    if (traced) {
      argument.sizes = traced->meta().sizes().vec();
      argument.strides = traced->meta().strides().vec();
      argument.type = traced->meta().scalar_type();
    } else if (isConstantValue(given)) {
      argument.constant = PyRef::borrow(given);
    } else {
      return;
    }
  }
  CaptureBreak again{{"lazy module", std::string("a ") + Py_TYPE(module)->tp_name + " gets its sizes from this call", "", e.place(), e.stackPlaces()}, -1};
  again.first = [held = PyRef::borrow(module), arguments = std::move(arguments), history = at::GradMode::is_enabled()] {
    const at::AutoGradMode mode(history);
    return setUp(held.get(), arguments);
  };
  throw again;
}

bool setsUpLazyModule(PyObject* function) {
  static PyObject* const kName = internedName("LazyModuleMixin._infer_parameters");
  if (!PyFunction_Check(function)) return false;
  PyObject* name = reinterpret_cast<PyFunctionObject*>(function)->func_qualname;
  return (name == kName || PyUnicode_Compare(name, kName) == 0) && isLibraryNamespace(PyFunction_GET_GLOBALS(function), Library::Torch);
}

}  // namespace fusebox::capture
