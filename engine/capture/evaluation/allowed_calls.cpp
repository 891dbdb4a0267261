#include "engine/capture/evaluation/allowed_calls.h"

#include <unordered_map>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/trace/break_error.h"

namespace fusebox::capture {
namespace {

/// Codes of allowed functions that cannot be followed.
std::unordered_map<PyObject*, PyRef>& notFollowed() {
  static auto* codes = new std::unordered_map<PyObject*, PyRef>;
  return *codes;
}

/// The ids of what stock's own allow_in_graph was given, where the program has it.
bool isAllowedByStock(PyObject* function) {
  const PyRef name = PyRef::steal(PyUnicode_FromString("torch._dynamo.trace_rules"));
  const PyRef rules = PyRef::steal(PyImport_GetModule(name.get()));
  const PyRef ids = rules ? PyRef::steal(PyObject_GetAttrString(rules.get(), "_allowed_callable_ids")) : PyRef();
  const PyRef id = PyRef::steal(PyLong_FromVoidPtr(function));
  const bool isThere = ids && id && PySequence_Contains(ids.get(), id.get()) == 1;
  clearError();
  return isThere;
}

}  // namespace

bool isAllowedInGraph(PyObject* function) {
  static PyObject* const mark = internedName("_fusebox_in_graph");
  PyObject* attributes = reinterpret_cast<PyFunctionObject*>(function)->func_dict;
  return (attributes && PyDict_GetItem(attributes, mark)) || isAllowedByStock(function);
}

bool Evaluation::isCalledAsItIs(PyObject* function) const {
  // Others may have the same code: a decorator's wrapper.
  return notFollowed().contains(PyFunction_GET_CODE(function)) && isAllowedInGraph(function);
}

PyRef Evaluation::callAsItIs(PyObject* function, const CallArguments& a) {
  pin(function, Why::Function);
  if (givesNumbers(a)) return withPlainNumbers(function, a, "an argument of a function that torch.compiler.allow_in_graph marked");
  return callReal(function, a);
}

PyRef Evaluation::follow(PyObject* function, std::unique_ptr<Frame> frame) {
  try {
    return runFrame(std::move(frame));
  } catch (const CaptureBreak& stop) {
    const PyRef code = PyRef::borrow(PyFunction_GET_CODE(function));
    if (stop.first || stop.isOfGraph || notFollowed().contains(code.get()) || !isAllowedInGraph(function)) throw;
    throw CaptureBreak{stop.what, -1, [code] { return notFollowed().emplace(code.get(), code).second; }};
  }
}

}  // namespace fusebox::capture
