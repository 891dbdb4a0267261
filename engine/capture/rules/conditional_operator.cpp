#include "engine/capture/rules/conditional_operator.h"

#include <algorithm>

#include "engine/capture/evaluation/fresh_contents.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/graph/operator_facts.h"
#include "engine/trace/trace_context.h"

namespace fusebox::capture {

namespace {

[[noreturn]] void refuse(Evaluation& e, const std::string& what) {
  e.breakHere("higher-order operator", "cond whose functions " + what, "Decide the condition in Python, or use a backend in Python.");
}

/// What a function that may not be chosen gives; others must not notice that it was called.
PyRef branch(Evaluation& e, PyObject* function, const std::vector<PyObject*>& operands) {
  const Evaluation::Effects before = e.effectsSoFar();
  const FreshContents made(e);
  const size_t first = e.trace().graph().nodes().size();
  PyRef result;
  {
    const trace::TraceContext::NoWrites kept(e.trace(), "a function given to cond");
    result = e.call(function, operands.data(), operands.size(), nullptr);
  }
  if (!result) return {};
  if (!(e.effectsSoFar() == before) || made.changed()) refuse(e, "have side effects");
  const auto& nodes = e.trace().graph().nodes();
  for (size_t i = first; i < nodes.size(); ++i) {
    if (nodes[i].kind != graph::NodeKind::Call) continue;
    const graph::OperatorFacts& facts = graph::factsOf(nodes[i].op);
    if (graph::drawsRandom(nodes[i])) refuse(e, "draw random numbers");
    if (facts.foreign || facts.effectful || facts.collective) refuse(e, "call " + nodes[i].op + ", which others may notice");
  }
  return result;
}

}  // namespace

PyRef followConditionalOperator(Evaluation& e, PyObject* op, const CallArguments& a, bool* known) {
  PyRef name = PyRef::steal(PyObject_GetAttrString(op, "_name"));
  PyErr_Clear();
  const char* const names[] = {"pred", "true_fn", "false_fn", "operands"};
  *known = name && PyUnicode_Check(name.get()) && PyUnicode_CompareWithASCIIString(name.get(), "cond") == 0 && a.total() >= 3 && a.positional <= 4;
  std::vector<PyObject*> given(4, nullptr);
  for (size_t i = 0; i < 4; ++i) given[i] = i < a.positional ? a.args[i] : a.keyword(names[i]);
  const size_t count = static_cast<size_t>(std::count_if(given.begin(), given.end(), [](PyObject* o) { return o != nullptr; }));
  *known = *known && count == a.total() && given[0] && given[1] && given[2];
  if (!*known) return {};
  std::vector<PyObject*> operands;
  PyRef all = given[3] ? e.collect(given[3], true) : PyRef::steal(PyTuple_New(0));
  if (!all) return {};
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(all.get()); ++i) operands.push_back(PyTuple_GET_ITEM(all.get(), i));
  if (!e.isTensor(given[0])) {
    const int truth = e.truth(given[0]);
    return truth < 0 ? PyRef() : e.call(given[truth ? 1 : 2], operands.data(), operands.size(), nullptr);
  }
  PyRef yes = branch(e, given[1], operands);
  PyRef no = yes ? branch(e, given[2], operands) : PyRef();
  PyRef module = no ? PyRef::steal(PyImport_ImportModule("fusebox._higher_order")) : PyRef();
  PyRef choose = module ? PyRef::steal(PyObject_GetAttrString(module.get(), "chosen")) : PyRef();
  if (!choose) return {};
  PyObject* args[] = {given[0], yes.get(), no.get()};
  PyRef answer = e.call(choose.get(), args, 3, nullptr);
  if (answer && PyUnicode_Check(answer.get())) refuse(e, PyUnicode_AsUTF8(answer.get()));
  if (!answer) return {};
  PyRef first = PyRef::steal(PyLong_FromLong(0));
  return e.getItem(answer.get(), first.get());
}

}  // namespace fusebox::capture
