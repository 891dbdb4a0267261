// Lets Python trace a function and run the result with the graph interpreter: tests compare that with eager.
#include <torch/csrc/Dtype.h>
#include <torch/csrc/utils/pybind.h>

#include "engine/aot/aot_function.h"
#include "engine/aot/aot_module.h"
#include "engine/graph/shape_env.h"
#include "engine/runtime/graph_interpreter.h"
#include "engine/trace/trace_context.h"

#include <limits>
#include <map>
#include <numeric>

namespace py = pybind11;
using namespace fusebox;

namespace {

aot::Executor interpreter(const graph::Graph& graph, const std::vector<at::Tensor>& constants, const std::vector<graph::Symbol>& symbols) {
  return [graph, constants, symbols](c10::ArrayRef<at::Tensor> inputs, std::span<const int64_t> values) {
    auto results = runtime::runEager(graph, inputs, constants, {}, {symbols, values});
    TORCH_CHECK(results, "interpreter: ", results.error().text());
    return std::move(*results);
  };
}

using Values = std::vector<int64_t>;

int64_t evaluated(const graph::SymExpr& e, const aot::AotModule& module, const Values& values) {
  auto value = e.evaluate([&](graph::Symbol s) -> std::optional<int64_t> {
    for (size_t i = 0; i < module.symbols.size(); ++i)
      if (module.symbols[i] == s) return values.at(i);
    return std::nullopt;
  });
  if (!value) throw std::runtime_error("not a symbol of the module in " + e.str());
  return *value;
}

py::object argument(const graph::Argument& a, const aot::AotModule& module, const Values& values) {
  if (auto* n = a.as<int64_t>()) return py::int_(*n);
  if (auto* e = a.as<graph::SymExpr>()) return py::int_(evaluated(*e, module, values));
  if (auto* list = a.as<graph::ArgumentList>()) {
    py::list made;
    for (auto& element : *list) made.append(argument(element, module, values));
    return made;
  }
  return py::str(a.str());
}

/// (operator, [(sizes, strides, offset) or integer], arguments) of every call, for values of the symbols.
py::list nodesAt(const aot::AotModule& module, const Values& values) {
  py::list made;
  for (auto& node : module.joint.nodes()) {
    if (node.kind != graph::NodeKind::Call) continue;
    py::list outputs, arguments;
    for (auto& output : node.outputs) {
      if (output.kind == graph::OutputMeta::Kind::SymInt) outputs.append(evaluated(output.scalar, module, values));
      if (output.kind != graph::OutputMeta::Kind::Tensor) continue;
      Values sizes, strides;
      for (auto& e : output.tensor.sizes) sizes.push_back(evaluated(e, module, values));
      for (auto& e : output.tensor.strides) strides.push_back(evaluated(e, module, values));
      outputs.append(py::make_tuple(py::tuple(py::cast(sizes)), py::tuple(py::cast(strides)), evaluated(output.tensor.storageOffset, module, values)));
    }
    for (auto& a : node.args) arguments.append(argument(a, module, values));
    made.append(py::make_tuple(node.op, outputs, arguments));
  }
  return made;
}

struct Traced {
  std::shared_ptr<const aot::AotModule> module;
  std::shared_ptr<aot::AotFunction> function;
  std::vector<at::Tensor> inputs;
  double traceMs = 0, finishMs = 0;
  std::vector<graph::Relation> relations;
};

/// Expressions for a tensor whose sizes are given as such: strides that are products of sizes at capture are that.
trace::SymbolicGeometry symbolicGeometry(const at::Tensor& real, std::vector<graph::SymExpr> sizes) {
  trace::SymbolicGeometry made = trace::geometryOf(real);
  std::vector<int64_t> order(static_cast<size_t>(real.dim()));
  std::iota(order.rbegin(), order.rend(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return real.stride(a) < real.stride(b); });
  graph::SymExpr running = 1;
  int64_t product = 1;
  for (int64_t d : order) {
    if (real.stride(d) == product) made.strides[static_cast<size_t>(d)] = running;
    if (real.stride(d) == 0) continue;
    running = made.strides[static_cast<size_t>(d)] * sizes[static_cast<size_t>(d)];
    product = real.stride(d) * real.size(d);
  }
  made.sizes = std::move(sizes);
  return made;
}

/// A tensor of a CUDA device without memory: enough to trace with where there is no such device.
at::Tensor cudaTensor(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, const py::object& dtype, int index) {
  const auto type = reinterpret_cast<THPDtype*>(dtype.ptr())->scalar_type;
  const c10::Device device(c10::kCUDA, static_cast<c10::DeviceIndex>(index));
  const auto bytes = static_cast<int64_t>(at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(type)));
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), c10::SymInt(bytes), c10::DataPtr(nullptr, device),
                                                       /*allocator=*/nullptr, /*resizable=*/false);
  auto made = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(std::move(storage)), c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                                       c10::scalarTypeToTypeMeta(type));
  made.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return made;
}

double now() { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// `dynamic`: for each argument the dimensions that are symbolic; equal sizes are one symbol.
Traced traceFunction(const py::function& fn, const std::vector<at::Tensor>& arguments, const std::vector<std::vector<int64_t>>& dynamic) {
  trace::TraceContext* self = nullptr;
  trace::TraceContext context([&](const at::Tensor& real) { return trace::Lift::input(self->input(real).index); }, nullptr);
  self = &context;
  std::vector<at::Tensor> standIns;
  std::map<int64_t, graph::SymExpr> symbols;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const at::Tensor& t = arguments[i];
    if (i >= dynamic.size() || dynamic[i].empty()) {
      standIns.push_back(context.input(t).standIn);
      continue;
    }
    std::vector<graph::SymExpr> sizes(t.sizes().begin(), t.sizes().end());
    for (int64_t d : dynamic[i]) {
      auto [it, isNew] = symbols.try_emplace(t.size(d));
      if (isNew) it->second = context.shapes().symbol("s" + std::to_string(symbols.size() - 1), t.size(d), 2, std::numeric_limits<int64_t>::max());
      sizes[static_cast<size_t>(d)] = it->second;
    }
    standIns.push_back(context.input(t, {}, symbolicGeometry(t, std::move(sizes))).standIn);
  }
  double start = now();
  trace::TraceContext::Active active(context);
  auto outputs = fn(*py::cast(standIns)).cast<std::vector<at::Tensor>>();
  double middle = now();
  auto module = aot::finishTrace(context, outputs);
  if (!module) throw std::runtime_error("finishTrace: " + module.error().text());
  Traced made;
  made.finishMs = now() - middle;
  made.traceMs = middle - start;
  made.module = std::make_shared<const aot::AotModule>(std::move(*module));
  made.relations = context.shapes().relations();
  for (auto& i : context.inputs()) made.inputs.push_back(i.real);
  made.function = std::make_shared<aot::AotFunction>(
      made.module, interpreter(made.module->forward, made.module->constants, made.module->symbols),
      [](const aot::AotModule& m, const graph::Graph& gradients) -> Result<aot::Executor> { return interpreter(gradients, m.constants, m.symbols); });
  return made;
}

}  // namespace

PYBIND11_MODULE(fusebox_trace_probe, m) {
  py::class_<Traced>(m, "Traced")
      .def_readonly("inputs", &Traced::inputs)
      .def_readonly("trace_ms", &Traced::traceMs)
      .def_readonly("finish_ms", &Traced::finishMs)
      .def("call", [](const Traced& t, const std::vector<at::Tensor>& inputs, Values values) {
        py::gil_scoped_release release;
        return t.function->call(inputs, values);
      }, py::arg("inputs"), py::arg("values") = Values())
      .def_property_readonly("forward", [](const Traced& t) { return t.module->forward.str(); })
      .def_property_readonly("backward", [](const Traced& t) { return t.module->backward ? t.module->backward->str() : std::string(); })
      .def_property_readonly("joint", [](const Traced& t) { return t.module->joint.str(); })
      .def_property_readonly("ops", [](const Traced& t) {
        std::vector<std::string> ops;
        for (auto& n : t.module->joint.nodes())
          if (n.kind == graph::NodeKind::Call) ops.push_back(n.op);
        return ops;
      })
      .def_property_readonly("saved_bytes", [](const Traced& t) {
        int64_t bytes = 0;
        auto& results = t.module->forward.output()->args;
        for (auto& s : t.module->saved)
          if (s.kind == aot::SavedPlan::Kind::Result) {
            auto& meta = t.module->forward.meta(*results[s.index].as<graph::ValueRef>()).tensor;
            bytes += meta.numel().constant() * graph::elementSize(meta.dtype);
          }
        return bytes;
      })
      .def("nodes", [](const Traced& t, const Values& values) { return nodesAt(*t.module, values); }, py::arg("values") = Values())
      .def_property_readonly("hints", [](const Traced& t) { return t.module->hints; })
      .def_property_readonly("relations", [](const Traced& t) {
        std::vector<std::tuple<std::string, std::string>> made;
        for (auto& r : t.relations) made.emplace_back(r.str(), r.reason);
        return made;
      })
      .def("specialised", [](const Traced& t) {
        std::vector<std::tuple<std::string, std::string>> made;
        for (auto& r : t.relations)
          if (r.op == graph::Compare::Eq && r.right.isConstant() && r.str().find('%') == std::string::npos) made.emplace_back(r.str(), r.reason);
        return made;
      })
      .def("broken", [](const Traced& t, const Values& values) {
        std::vector<std::string> made;
        for (auto& r : t.relations)
          if (!graph::holds(r.op, evaluated(r.left, *t.module, values), evaluated(r.right, *t.module, values))) made.push_back(r.str());
        return made;
      })
      .def_property_readonly("mutated", [](const Traced& t) {
        std::vector<int> inputs;
        for (auto& mutation : t.module->mutations) inputs.push_back(mutation.input);
        return inputs;
      });
  m.def("trace", &traceFunction, py::arg("fn"), py::arg("arguments"), py::arg("dynamic") = std::vector<std::vector<int64_t>>());
  m.def("cuda_tensor", &cudaTensor, py::arg("sizes"), py::arg("strides"), py::arg("dtype"), py::arg("index") = 0);
  m.def("is_trace", &trace::isTraceTensor);
  m.def("last_break", []() -> std::optional<std::tuple<std::string, std::string, std::string>> {
    auto last = trace::takeLastBreak();
    if (!last) return std::nullopt;
    return std::make_tuple(std::string(trace::name(last->kind())), last->reason(), last->hint());
  });
  m.def("parse_break", [](const std::string& text) -> std::optional<std::string> {
    auto parsed = trace::parseBreak(text);
    if (!parsed) return std::nullopt;
    return std::string(trace::name(parsed->kind()));
  });
}
