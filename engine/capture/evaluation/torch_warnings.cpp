// What torch warns of where it is called while capturing, told as eager tells it.
#include "engine/capture/evaluation/torch_warnings.h"

#include <algorithm>

#include <c10/util/Exception.h>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/cpython/once.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/rules/call_rules.h"
#include "engine/graph/operator_facts.h"
#include "engine/trace/recorder.h"

namespace fusebox::capture {

namespace {

thread_local KeptWarnings* innermost = nullptr;

PyObject* warningsModule() {
  static Once<PyObject*> module;
  return module.get([] { return PyImport_ImportModule("warnings"); });
}

PyObject* currentFilters() {
  PyObject* filters = warningsModule() ? PyDict_GetItemString(PyModule_GetDict(warningsModule()), "filters") : nullptr;
  return filters && PyList_CheckExact(filters) ? filters : nullptr;
}

bool isSequence(PyObject* o) { return PyTuple_Check(o) || PyList_Check(o); }

/// How often the tensors among the arguments, and in sequences among them, were written to.
uint64_t versionsOf(const CallArguments& a) {
  uint64_t sum = 0;
  const auto count = [&](PyObject* o) {
    if (!isTensorObject(o)) return;
    if (const at::Tensor& t = tensorOf(o); t.defined() && !t.is_inference()) sum += static_cast<uint64_t>(t._version());
  };
  for (size_t i = 0; i < a.total(); ++i) {
    count(a.args[i]);
    for (Py_ssize_t k = 0; isSequence(a.args[i]) && k < PySequence_Fast_GET_SIZE(a.args[i]); ++k) count(PySequence_Fast_GET_ITEM(a.args[i], k));
  }
  return sum;
}

bool holds(const std::vector<KeptWarnings::Warning>& all, const KeptWarnings::Warning& one) {
  return std::any_of(all.begin(), all.end(), [&](const auto& w) { return w.category == one.category && PyUnicode_Compare(w.text.get(), one.text.get()) == 0; });
}

}  // namespace

/// Python asks for the text before it looks at the category, filter after filter until one fits: that is the last of those it asks in a row.
PyObject* KeptWarnings::keep(PyObject* category, PyObject* text) {
  if (!innermost || !PyUnicode_Check(text)) Py_RETURN_FALSE;
  auto& kept = innermost->kept_;
  if (category == categories().front() || kept.empty() || kept.back().text.get() != text) kept.push_back({PyRef::borrow(text), category});
  else kept.back().category = category;
  Py_RETURN_TRUE;
}

const std::vector<PyObject*>& KeptWarnings::categories() {
  static const std::vector<PyObject*> nearestFirst = {PyExc_DeprecationWarning, PyExc_FutureWarning, PyExc_RuntimeWarning, PyExc_UserWarning, PyExc_Warning};
  return nearestFirst;
}

/// One for each category. Python asks the attribute `match` of what stands where a pattern of the message may stand.
const std::vector<PyRef>& KeptWarnings::ownFilters() {
  static PyMethodDef match = {"match", keep, METH_O, nullptr};
  static Once<std::vector<PyRef>> filters;
  return filters.get([] {
    std::vector<PyRef> made;
    PyObject* space = torchObject("types.SimpleNamespace");
    for (PyObject* category : categories()) {
      PyRef method = PyRef::steal(PyCFunction_New(&match, category)), none = PyRef::steal(PyTuple_New(0));
      PyRef keywords = PyRef::steal(Py_BuildValue("{s:O}", "match", method.get()));
      PyRef pattern = space ? PyRef::steal(PyObject_Call(space, none.get(), keywords.get())) : PyRef();
      if (pattern) made.push_back(PyRef::steal(Py_BuildValue("(sOOOi)", "ignore", pattern.get(), category, Py_None, 0)));
    }
    clearError();
    return made;
  });
}

KeptWarnings::KeptWarnings() : filters_(PyRef::borrow(currentFilters())), outer_(std::exchange(innermost, this)) {
  Py_ssize_t at = 0;
  for (const PyRef& filter : ownFilters())
    if (filters_) PyList_Insert(filters_.get(), at++, filter.get());
}

KeptWarnings::Pass::Pass() : kept_(std::exchange(innermost, nullptr)) {}
KeptWarnings::Pass::~Pass() { innermost = kept_; }

KeptWarnings::~KeptWarnings() {
  innermost = outer_;
  for (const PyRef& filter : ownFilters()) {
    // Others may have changed the list meanwhile.
    for (Py_ssize_t i = 0; filters_ && i < PyList_GET_SIZE(filters_.get()); ++i)
      if (PyList_GET_ITEM(filters_.get(), i) == filter.get()) {
        PyList_SetSlice(filters_.get(), i, i + 1, nullptr);
        break;
      }
  }
}

/// What torch says every time is put off like a warning of the program. What it says once in a process it says no more when it is asked
/// again: that is told now, by the first capture, at the program's line.
PyObject* Evaluation::heard(const CallArguments& a, const std::function<PyObject*(const CallArguments&)>& call) {
  if (torchCalls_) return call(a);
  const auto& nodes = trace_->recorder().graph().nodes();
  const size_t before = nodes.size();
  const uint64_t versions = versionsOf(a);
  const int64_t bytecodes = bytecodes_;
  std::vector<KeptWarnings::Warning> said;
  PyRef result;
  {
    const c10::WarningUtils::WarnAlways always;  // what is said once stays to be said
    KeptWarnings kept;
    result = PyRef::steal(call(a));
    said = kept.take();
  }
  if (said.empty() || !result) return result.release();
  throwIfBreak();
  if (bytecodes_ != bytecodes) breakHere("warning", "a call warns in which Python code of the program runs");
  // What is written is written once: the call is repeated with copies.
  std::vector<PyRef> copies;
  std::vector<PyObject*> given(a.args.begin(), a.args.begin() + a.total());
  if (versionsOf(a) != versions) {
    for (PyObject*& argument : given) {
      if (!isTensorObject(argument) && !isSequence(argument)) continue;
      if (!isPlainTensorClass(Py_TYPE(argument)) || tensorOf(argument).layout() != at::kStrided) breakHere("warning", "an operator warns that writes to a tensor");
      argument = copies.emplace_back(PyRef::steal(newTensorObject(tensorOf(argument).detach().clone()))).get();
    }
  }
  const CallArguments again{given.data(), a.positional, a.kwNames};
  const auto repeat = [&] {
    KeptWarnings kept;
    PyRef::steal(call(again));
    clearError();
    throwIfBreak();
    return kept.take();
  };
  for (size_t i = before; i < nodes.size(); ++i)
    if (graph::isOrdered(nodes[i])) breakHere("warning", "an operator warns that draws random numbers or is seen by others");
  if (PyObject* filters = currentFilters(); !filters || !noErrorFilter(filters, nullptr))
    breakHere("side effect", "a warning that a filter may turn into an exception");
  // What is said once would come before them.
  if (!writtenLater_.empty()) breakHere("side effect", "torch warns after warnings that the program records");
  const auto often = repeat();
  if (often.empty()) return result.release();
  const auto ever = repeat();
  static PyObject* const warn = torchObject("warnings.warn");
  for (const KeptWarnings::Warning& warning : often) {
    PyObject* args[] = {warning.text.get(), warning.category};
    const CallArguments arguments(args, 2, nullptr);
    const bool done = holds(ever, warning) ? static_cast<bool>(this->call(warn, args, 2, nullptr)) : callNow(warn, arguments);
    if (!done) return nullptr;
  }
  return result.release();
}

}  // namespace fusebox::capture
