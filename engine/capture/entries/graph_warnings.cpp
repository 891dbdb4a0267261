#include "engine/capture/entries/graph_warnings.h"

#include <algorithm>
#include <string_view>
#include <variant>

#include "engine/aot/aot_module.h"
#include "engine/capture/cpython/py_ref.h"
#include "engine/graph/operator_facts.h"
#include "engine/runtime/running_call.h"
#include "engine/trace/kernel_warnings.h"

namespace fusebox::capture {

namespace {

/// The globals of the module that was read from a file; null: none is loaded.
PyObject* globalsOfFile(const std::string& file) {
  PyObject *name, *module;
  for (Py_ssize_t at = 0; PyDict_Next(PyImport_GetModuleDict(), &at, &name, &module);) {
    if (!PyModule_Check(module)) continue;
    PyObject* own = PyDict_GetItemString(PyModule_GetDict(module), "__file__");
    if (own && PyUnicode_Check(own) && PyUnicode_CompareWithASCIIString(own, file.c_str()) == 0) return PyModule_GetDict(module);
  }
  return nullptr;
}

const graph::SourceLine* lineOf(const graph::Graph& graph, const std::string& op) {
  for (const graph::Node& node : graph.nodes())
    if (node.kind == graph::NodeKind::Call && std::string_view(node.op).substr(0, node.op.find('.')) == op && node.origin.stack && !node.origin.stack->empty())
      return &node.origin.stack->back();
  return nullptr;
}

/// In the words in which torch's bindings hand a warning to Python.
std::string textOf(const c10::Warning& warning) {
  const c10::SourceLocation& place = warning.source_location();
  if (!place.file || warning.verbatim()) return warning.msg();
  return warning.msg() + " (Triggered internally at " + place.file + ":" + std::to_string(place.line) + ".)";
}

}  // namespace

void GraphWarnings::process(const c10::Warning& warning) {
  const c10::OperatorHandle* running = runtime::RunningCall::current();
  kept_.push_back({warning, running ? running->operator_name().name : std::string()});
}

bool GraphWarnings::tell(const graph::Graph& graph, PyCodeObject* code, int line, PyObject* globals) const {
  for (const Kept& kept : kept_) {
    const graph::SourceLine* place = lineOf(graph, kept.op);
    if (trace::kernelWarningOf(kept.op)) continue;
    if (!place && !kept.op.empty()) continue;  // of an operator that another was written in, which eager does not call
    const bool isElsewhere = place && PyUnicode_CompareWithASCIIString(code->co_filename, place->file.c_str()) != 0;
    PyObject* names = isElsewhere ? globalsOfFile(place->file) : globals;
    PyRef registry = PyRef::steal(names ? Py_XNewRef(PyDict_GetItemString(names, "__warningregistry__")) : nullptr);
    if (names && !registry) {
      registry = PyRef::steal(PyDict_New());
      PyDict_SetItemString(names, "__warningregistry__", registry.get());
    }
    PyObject* module = names ? PyDict_GetItemString(names, "__name__") : nullptr;
    PyRef text = PyRef::steal(PyUnicode_FromString(textOf(kept.warning).c_str()));
    PyRef file = isElsewhere ? PyRef::steal(PyUnicode_FromString(place->file.c_str())) : PyRef::borrow(code->co_filename);
    PyObject* category = std::holds_alternative<c10::DeprecationWarning>(kept.warning.type()) ? PyExc_DeprecationWarning : PyExc_UserWarning;
    if (!text || !file) return false;
    if (PyErr_WarnExplicitObject(category, text.get(), file.get(), place ? place->line : line, module, registry.get()) < 0) return false;
  }
  return true;
}

bool mayRunAgain(const aot::AotModule& module) {
  const auto& nodes = module.forward.nodes();
  return module.mutations.empty() && std::none_of(nodes.begin(), nodes.end(), [](const graph::Node& node) {
    if (node.kind != graph::NodeKind::Call) return false;
    const graph::OperatorFacts& facts = graph::factsOf(node.op);
    return graph::drawsRandom(node) || facts.foreign || facts.effectful || facts.writes || facts.collective;
  });
}

bool changesFilters(const Segment& segment) {
  return std::any_of(segment.effects.begin(), segment.effects.end(), [](const SideEffect& effect) {
    PyObject* key = effect.key ? effect.key->object.get() : nullptr;
    return key && PyUnicode_Check(key) && PyUnicode_CompareWithASCIIString(key, "filters") == 0;
  });
}

}  // namespace fusebox::capture
