#include "engine/capture/rules/conditional_operator.h"

#include <algorithm>

#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/rules/unnoticed_calls.h"
#include "engine/graph/operator_facts.h"
#include "engine/trace/branch_scope.h"
#include "engine/trace/trace_context.h"
#include "engine/trace/transform_levels.h"

namespace fusebox::capture {

namespace {

constexpr const char* kRemedy = "Decide the condition in Python, or use a backend in Python.";

[[noreturn]] void refuse(Evaluation& e, const std::string& what) { e.breakHere("higher-order operator", "cond whose functions " + what, kRemedy); }

/// What a function that may not be chosen gives; others must not notice that it was called.
PyRef branch(Evaluation& e, PyObject* function, const std::vector<PyObject*>& operands, const at::Tensor& condition, bool when) {
  const UnnoticedCalls calls(e);
  PyRef result;
  {
    const trace::BranchScope scope(e.trace(), condition, when, "a function given to cond");
    result = e.call(function, operands.data(), operands.size(), nullptr);
    if (!result) return {};
    PyObject* args[] = {result.get()};
    PyRef leaves = e.call(torchObject("torch.utils._pytree.tree_leaves"), args, 1, nullptr);
    PyRef all = leaves ? e.collect(leaves.get(), true) : PyRef();
    if (!all) return {};
    std::vector<at::Tensor> tensors;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(all.get()); ++i)
      if (isTensorObject(PyTuple_GET_ITEM(all.get(), i))) tensors.push_back(tensorOf(PyTuple_GET_ITEM(all.get(), i)));
    if (scope.leaks(tensors)) refuse(e, "differentiate by a function of autograd's own");
  }
  if (const std::string what = calls.whyNoticed(); !what.empty()) refuse(e, what);
  // On the CPU what does not fit raises, and the call is run again by Python, which chooses.
  const auto& nodes = e.trace().graph().nodes();
  for (size_t i = calls.firstNode(); i < nodes.size(); ++i) {
    const bool onGpu = !nodes[i].outputs.empty() && nodes[i].outputs[0].kind == graph::OutputMeta::Kind::Tensor && nodes[i].outputs[0].tensor.device.kind == graph::DeviceKind::Cuda;
    if (onGpu && graph::factsOf(nodes[i]).checksData) refuse(e, "call " + nodes[i].op + ", which would end the use of the device where data do not fit");
  }
  return result;
}

}  // namespace

PyRef followConditionalOperator(Evaluation& e, PyObject* op, const CallArguments& a, bool* known) {
  PyRef name = PyRef::steal(PyObject_GetAttrString(op, "_name"));
  clearError();
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
  const at::Tensor& asked = tensorOf(given[0]);
  if (trace::insideTransform()) refuse(e, "are called inside of a transform");
  if (asked.sym_numel() != 1) refuse(e, "depend on a condition of several elements");
  at::Tensor condition = asked.reshape({});
  if (condition.scalar_type() != at::kBool) condition = condition.ne(0);
  PyRef predicate = PyRef::steal(newTensorObject(condition));
  PyRef yes = branch(e, given[1], operands, condition, true);
  PyRef no = yes ? branch(e, given[2], operands, condition, false) : PyRef();
  PyRef module = no ? PyRef::steal(PyImport_ImportModule("fusebox._higher_order")) : PyRef();
  PyRef choose = module ? PyRef::steal(PyObject_GetAttrString(module.get(), "chosen")) : PyRef();
  if (!choose) return {};
  PyObject* args[] = {predicate.get(), yes.get(), no.get(), all.get()};
  PyRef answer = e.call(choose.get(), args, 4, nullptr);
  if (answer && PyUnicode_Check(answer.get())) refuse(e, utf8Of(answer.get()));
  if (!answer) return {};
  PyRef first = PyRef::steal(PyLong_FromLong(0));
  return e.getItem(answer.get(), first.get());
}

}  // namespace fusebox::capture
