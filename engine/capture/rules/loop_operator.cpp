#include "engine/capture/rules/loop_operator.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <optional>
#include <set>

#include "engine/aot/graph_extract.h"
#include "engine/capture/cpython/errors.h"
#include "engine/capture/evaluation/torch_objects.h"
#include "engine/capture/evaluation/value_kinds.h"
#include "engine/capture/rules/unnoticed_calls.h"
#include "engine/graph/serialize.h"
#include "engine/trace/function_scope.h"
#include "engine/trace/recorder.h"
#include "engine/trace/sym_int.h"
#include "engine/trace/trace_context.h"
#include "engine/trace/trace_tensor.h"
#include "engine/trace/transform_levels.h"

namespace fusebox::capture {

namespace {

using graph::ValueRef;

[[noreturn]] void refuse(Evaluation& e, const std::string& what) {
  e.breakHere("higher-order operator", "while_loop whose functions " + what, "Write the loop in Python, or use a backend in Python.");
}

/// The value that a tensor of the trace has now.
ValueRef valueOf(Evaluation& e, const at::Tensor& t) {
  if (at::functionalization::impl::isFunctionalTensor(t)) at::functionalization::impl::sync(t);
  const trace::TraceTensorImpl* traced = trace::asTraceThroughWrapper(t);
  if (!traced) refuse(e, "give a tensor that they did not compute");
  return traced->value();
}

/// The tensors of a tree's leaves, which are nothing else.
std::vector<at::Tensor> tensorsOf(Evaluation& e, PyObject* leaves) {
  std::vector<at::Tensor> made;
  const PyRef all = e.collect(leaves, true);
  for (Py_ssize_t i = 0; all && i < PyTuple_GET_SIZE(all.get()); ++i) {
    PyObject* one = PyTuple_GET_ITEM(all.get(), i);
    if (!isTensorObject(one) || !e.isStandIn(one)) refuse(e, "carry something else than tensors that they compute");
    made.push_back(tensorOf(one));
  }
  return made;
}

/// What the values are computed from, inputs and constants among it, that was there before the node `first`.
void addSources(const graph::Graph& graph, const std::vector<std::optional<ValueRef>>& results, graph::NodeId first, const std::set<ValueRef>& known, std::set<ValueRef>& sources) {
  std::set<graph::NodeId> seen;
  std::vector<ValueRef> open;
  for (const auto& result : results) open.push_back(*result);
  while (!open.empty()) {
    const ValueRef value = open.back();
    open.pop_back();
    if (known.count(value)) continue;
    const graph::Node& node = graph.node(value.node);
    if (node.id < first || node.kind != graph::NodeKind::Call) sources.insert(value);
    else if (seen.insert(node.id).second) graph::Graph::forEachValue(node.args, [&](ValueRef v) { open.push_back(v); });
  }
}

}  // namespace

PyRef followLoopOperator(Evaluation& e, PyObject* op, const CallArguments& a, bool* known) {
  static PyObject* const whileLoop = torchObject("torch._higher_order_ops.while_loop.while_loop_op");
  *known = op == whileLoop && a.positional == 4 && a.total() == 4;
  if (!*known) return {};
  if (trace::insideTransform()) refuse(e, "are called inside of a transform");
  PyRef initial = e.collect(a.args[2], true), more = initial ? e.collect(a.args[3], true) : PyRef();
  if (!more) return {};
  trace::TraceContext& context = e.trace();
  std::vector<at::Tensor> carried, models;
  std::vector<PyRef> held;
  std::vector<PyObject*> operands;
  bool asksGradients = false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(initial.get()); ++i) {
    PyObject* one = PyTuple_GET_ITEM(initial.get(), i);
    if (!e.isTensor(one) || e.isNumber(one) || !isTensorObject(one)) refuse(e, "carry something else than tensors");
    const at::Tensor& t = tensorOf(one);
    if (!t.is_contiguous()) refuse(e, "carry a tensor with gaps in memory");
    asksGradients = asksGradients || t.requires_grad();
    carried.push_back(t.detach());
  }
  // Of what a turn is given nothing is known, be the first one's a constant.
  static const auto asCarried = c10::Dispatcher::singleton().findSchemaOrThrow("fusebox::carried", "");
  torch::jit::Stack first{carried};
  asCarried.callBoxed(&first);
  models = first.at(0).toTensorVector();
  for (const at::Tensor& model : models) operands.push_back(held.emplace_back(e.checked(newTensorObject(model))).get());
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(more.get()); ++i) operands.push_back(PyTuple_GET_ITEM(more.get(), i));

  const UnnoticedCalls calls(e);
  const size_t dataSymbols = context.shapes().dataSymbols().size();
  std::vector<at::Tensor> next;
  PyRef structure;
  at::Tensor goesOn;
  {
    const trace::FunctionScope scope(context, "a function given to while_loop");
    const PyRef asked = e.call(a.args[0], operands.data(), operands.size(), nullptr);
    if (!asked) return {};
    if (!isTensorObject(asked.get()) || !e.isStandIn(asked.get())) refuse(e, "decide by something else than a tensor");
    goesOn = tensorOf(asked.get());
    if (goesOn.dim() != 0 || goesOn.scalar_type() != at::kBool) refuse(e, "decide by something else than one bool");
    const PyRef made = e.call(a.args[1], operands.data(), operands.size(), nullptr);
    if (!made) return {};
    PyObject* tree[] = {made.get()};
    const PyRef parted = e.call(torchObject("torch.utils._pytree.tree_flatten"), tree, 1, nullptr);
    if (!parted) return {};
    next = tensorsOf(e, PyTuple_GET_ITEM(parted.get(), 0));
    structure = PyRef::borrow(PyTuple_GET_ITEM(parted.get(), 1));
  }
  if (const std::string what = calls.whyNoticed(); !what.empty()) refuse(e, what);
  if (context.shapes().dataSymbols().size() != dataSymbols) refuse(e, "have sizes that data decide");
  if (next.size() != carried.size()) refuse(e, "carry another number of tensors");
  for (size_t i = 0; i < next.size(); ++i) {
    const at::Tensor &one = carried[i], &other = next[i];
    if (one.scalar_type() != other.scalar_type() || one.device() != other.device() || !other.is_contiguous() || one.sym_sizes() != other.sym_sizes())
      refuse(e, "carry tensors of other types, sizes or strides to the next turn");
    if (other.requires_grad() || (asksGradients && at::GradMode::is_enabled())) refuse(e, "have gradients");
  }

  std::set<ValueRef> begun;
  std::vector<aot::Boundary> boundaries;
  for (size_t i = 0; i < models.size(); ++i) {
    boundaries.push_back({valueOf(e, models[i]), "carried_" + std::to_string(i)});
    begun.insert(boundaries.back().value);
  }
  std::vector<std::optional<ValueRef>> results, condition{valueOf(e, goesOn)};
  std::vector<size_t> copied;
  for (const at::Tensor& t : next) results.emplace_back(valueOf(e, t));
  graph::Graph& graph = context.recorder().graph();
  std::set<ValueRef> sources;
  const auto begin = static_cast<graph::NodeId>(calls.firstNode());
  addSources(graph, condition, begin, begun, sources);
  addSources(graph, results, begin, begun, sources);
  std::vector<at::Tensor> others;
  for (const ValueRef source : sources) {
    boundaries.push_back({source, "other_" + std::to_string(others.size())});
    others.push_back(context.recorder().again(source));
    if (context.recorder().hasHistory(source) && at::GradMode::is_enabled()) refuse(e, "have gradients");
  }
  // Two results, or a result and what the loop was given, share no memory.
  std::set<ValueRef> given(begun);
  given.insert(sources.begin(), sources.end());
  for (size_t i = 0; i < results.size(); ++i)
    if (!given.insert(*results[i]).second) copied.push_back(i);

  const auto dead = [](const graph::Node&) { return false; };
  graph::Graph test = aot::extractGraph(graph, boundaries, condition, dead), body = aot::extractGraph(graph, boundaries, results, dead, copied);
  test.name = "condition";
  body.name = "body";
  for (size_t i = calls.firstNode(); i < graph.nodes().size(); ++i) graph.node(static_cast<graph::NodeId>(i)).isModel = true;

  std::vector<c10::SymInt> sizes;
  graph::SymbolHints hints;
  for (const graph::Graph* one : {&test, &body})
    for (const graph::Symbol symbol : graph::symbolsOf(*one)) {
      sizes.push_back(trace::toSymInt(symbol, context.shapes()));
      hints.emplace_back(symbol, context.shapes().hint(symbol));
    }
  static const auto loop = c10::Dispatcher::singleton().findSchemaOrThrow("fusebox::while_loop", "");
  torch::jit::Stack stack{carried, others, graph::writeSavedGraph(test, {}, hints), graph::writeSavedGraph(body, {}, hints), sizes};
  loop.callBoxed(&stack);
  const std::vector<at::Tensor> made = stack.at(0).toTensorVector();
  PyRef tuple = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(made.size())));
  for (size_t i = 0; i < made.size(); ++i) PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), e.checked(newTensorObject(made[i])).release());
  e.adopt(tuple.get());
  PyObject* parts[] = {tuple.get(), structure.get()};
  return e.call(torchObject("torch.utils._pytree.tree_unflatten"), parts, 2, nullptr);
}

}  // namespace fusebox::capture
