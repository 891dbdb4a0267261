#include "engine/trace/fake_function.h"

#include <pybind11/pybind11.h>
#include <torch/csrc/jit/python/pybind_utils.h>

#include <ATen/EmptyTensor.h>
#include <ATen/FunctionalTensorWrapper.h>

#include <map>

#include "engine/trace/break_error.h"
#include "engine/trace/convert.h"
#include "engine/trace/recorder.h"
#include "engine/trace/sym_int.h"
#include "engine/trace/symbolic_call.h"
#include "engine/trace/trace_tensor.h"

namespace fusebox::trace {

namespace py = pybind11;
namespace functional = at::functionalization::impl;
using c10::IValue;
using graph::Compare;
using graph::SymExpr;

namespace {

/// One call of a fake function: its stand-ins, and the sizes that it asks for.
class FakeCall {
 public:
  FakeCall(const c10::OperatorHandle& op, const OperatorFacts& facts, TraceContext& outer)
      : op_(op), facts_(facts), outer_(outer), inner_(outer), node_(static_cast<graph::NodeId>(outer.recorder().graph().nodes().size())),
        before_(outer.dataSizes().definitions().size()) {}

  bool hasAsked() const { return outer_.dataSizes().definitions().size() > before_ || refused_; }

  /// The results as the function describes them, tensors of inner_; the GIL is held.
  std::vector<IValue> run(const py::object& function, c10::ArrayRef<IValue> args) {
    py::list positional;
    py::dict keywords;
    for (size_t i = 0; i < args.size(); ++i) {
      IValue given = args[i];
      mapTensors(given, [&](const at::Tensor& t) { return standIn(t); });
      const c10::Argument& argument = op_.schema().arguments()[i];
      if (argument.kwarg_only()) keywords[py::str(argument.name())] = torch::jit::toPyObject(std::move(given));
      else positional.append(torch::jit::toPyObject(std::move(given)));
    }
    const py::cpp_function newSize([this](int64_t least, std::optional<int64_t> most) { return size(least, most); });
    py::object made;
    {
      const TraceContext::Active active(inner_);
      const at::AutoGradMode noGradient(false);
      made = py::module_::import("fusebox._fake_functions").attr("call")(function, positional, keywords, newSize);
    }
    const auto& returns = op_.schema().returns();
    std::vector<IValue> results;
    if (returns.size() == 1) results.push_back(torch::jit::toIValue(made, returns[0].type()));
    else
      for (size_t i = 0; i < returns.size(); ++i) results.push_back(torch::jit::toIValue(py::object(made[py::int_(i)]), returns[i].type()));
    return unwrapped(std::move(results));
  }

  /// The same by the operator's own kernel for tensors without data.
  std::vector<IValue> runKernel(c10::ArrayRef<IValue> args) {
    torch::jit::Stack stack(args.begin(), args.end());
    for (IValue& given : stack) mapTensors(given, [&](const at::Tensor& t) { return standIn(t); });
    const TraceContext::Active active(inner_);
    const at::AutoGradMode noGradient(false);
    op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), &stack);
    return unwrapped(std::move(stack));
  }

  /// Where the sizes that were asked for are read.
  void define(const std::vector<IValue>& results) {
    auto& definitions = outer_.dataSizes().definitions();
    for (size_t k = before_; k < definitions.size(); ++k) {
      int32_t output = 0;
      bool found = false;
      for (const IValue& result : results)
        forEachTensor(result, [&](const at::Tensor& t) {
          const auto sizes = SymbolicCall::geometryOf(t).sizes;
          const auto at = std::find(sizes.begin(), sizes.end(), SymExpr(definitions[k].symbol));
          if (!found && at != sizes.end()) {
            definitions[k].value = {node_, output};
            definitions[k].dim = static_cast<int32_t>(at - sizes.begin());
            found = true;
          }
          ++output;
        });
      if (!found) raiseBreak(BreakKind::DynamicShape, facts_.name + " has a size of data that is no size of its results", "let it be the size of a result");
    }
  }

 private:
  static std::vector<IValue> unwrapped(std::vector<IValue> results) {
    for (IValue& result : results)
      mapTensors(result, [](const at::Tensor& t) {
        if (!functional::isFunctionalTensor(t)) return t;
        functional::sync(t);
        return functional::from_functional_tensor(t);
      });
    return results;
  }

  at::Tensor standIn(const at::Tensor& t) {
    if (t.unsafeGetTensorImpl()->is_wrapped_number()) return t;
    at::Tensor& known = known_[t.unsafeGetTensorImpl()];
    if (known.defined()) return known;
    auto* traced = asTrace(t);
    const at::Tensor meta = traced ? traced->meta() : at::Tensor(at::detail::empty_strided_meta(t.sizes(), t.strides(), t.options().device(at::kMeta)));
    const auto index = static_cast<int32_t>(known_.size()) - 1;
    const NoTrace off;
    known = functional::to_functional_tensor(
        inner_.recorder().placeholder("input_" + std::to_string(index), meta, t.device(), index, false, traced ? traced->symbolic() : nullptr));
    forbidDataAccess(known);
    return known;
  }

  c10::SymInt size(int64_t least, std::optional<int64_t> most) {
    if (!outer_.dataSizes().isAllowed || outer_.recorder().isBackward()) {
      refused_ = true;
      raiseBreak(BreakKind::DynamicShape, "the shape of " + facts_.name + "'s result depends on tensor data", "call it outside compiled code");
    }
    constexpr int64_t kGuess = 7;
    const SymExpr bound = most.value_or(0);
    const SymExpr made = outer_.dataSizes().define(outer_, {node_, 0}, 0, std::max(kGuess, least), most ? &bound : nullptr, facts_.name);
    if (least > 0) outer_.shapes().decide(Compare::Le, least, made, facts_.name);
    return toSymInt(made, outer_.shapes());
  }

  const c10::OperatorHandle& op_;
  const OperatorFacts& facts_;
  TraceContext& outer_;
  TraceContext inner_;
  graph::NodeId node_;
  size_t before_;
  bool refused_ = false;
  std::map<const c10::TensorImpl*, at::Tensor> known_;
};

/// The function of Python, or none.
py::object functionOf(const OperatorFacts& facts) {
  return py::module_::import("fusebox._fake_functions").attr("of")(facts.name);
}

}  // namespace

bool recordByFakeFunction(const c10::OperatorHandle& op, const OperatorFacts& facts, c10::Device device, TraceContext& context, torch::jit::Stack* stack) {
  if (!facts.foreign || facts.writes || facts.view) return false;
  const size_t arity = op.schema().arguments().size();
  const std::vector<IValue> args(stack->end() - static_cast<int64_t>(arity), stack->end());
  const bool symbolic = anySymbolic(args);
  if (!facts.hasPythonMeta && !(symbolic && facts.shape().route == OperatorFacts::Route::HiddenMeta)) return false;
  FakeCall call(op, facts, context);
  std::vector<IValue> described;
  {
    const py::gil_scoped_acquire gil;
    try {
      const py::object function = facts.hasPythonMeta ? functionOf(facts) : py::none();
      if (function.is_none() && !symbolic) return false;
      described = function.is_none() ? call.runKernel(args) : call.run(function, args);
    } catch (const py::error_already_set&) {
      // The function's own error, or a break in the middle of it: then plain meta tensors may do.
      if (call.hasAsked() || !takeLastBreak()) throw;
      return false;
    } catch (const std::exception&) {
      if (call.hasAsked()) throw;
      takeLastBreak();
      return false;
    }
  }
  call.define(described);
  graph::ShapeEnv& env = context.shapes();
  assumeSeveral(facts, args, env);
  std::vector<Recorder::Geometry> geometries;
  std::vector<IValue> results = described;
  bool first = true;
  for (IValue& result : results)
    mapTensors(result, [&](const at::Tensor& t) -> at::Tensor {
      SymbolicGeometry geometry = SymbolicCall::geometryOf(t);
      std::vector<int64_t> sizes, strides;
      for (SymExpr& e : geometry.sizes) sizes.push_back(env.hint(e = settledSize(e, env, facts.name)));
      for (SymExpr& e : geometry.strides) strides.push_back(env.hint(e = env.simplify(e)));
      geometry.offset = 0;
      if (std::exchange(first, false) && !t.device().is_meta()) device = t.device();
      geometries.push_back(geometry.symbolic() ? std::make_shared<const SymbolicGeometry>(std::move(geometry)) : nullptr);
      return at::Tensor(at::detail::empty_strided_meta(sizes, strides, at::TensorOptions(t.scalar_type()).device(at::kMeta)));
    });
  context.recorder().call(op, facts, args, results, device, geometries);
  torch::jit::drop(*stack, arity);
  for (IValue& result : results) stack->push_back(std::move(result));
  return true;
}

}  // namespace fusebox::trace
