// Lets Python trace a function and run the result with the graph interpreter: tests compare that with eager.
#include <torch/extension.h>

#include "engine/aot/aot_function.h"
#include "engine/aot/aot_module.h"
#include "engine/runtime/graph_interpreter.h"
#include "engine/trace/trace_context.h"

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

struct Traced {
  std::shared_ptr<const aot::AotModule> module;
  std::shared_ptr<aot::AotFunction> function;
  std::vector<at::Tensor> inputs;
  double traceMs = 0, finishMs = 0;
};

/// A tensor of a CUDA device without memory: enough to trace with where there is no such device.
at::Tensor cudaTensor(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, const py::object& dtype, int index) {
  const auto type = torch::python::detail::py_object_to_dtype(dtype);
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

Traced traceFunction(const py::function& fn, const std::vector<at::Tensor>& arguments) {
  trace::TraceContext* self = nullptr;
  trace::TraceContext context([&](const at::Tensor& real) { return trace::Lift::input(self->input(real).index); }, nullptr);
  self = &context;
  std::vector<at::Tensor> standIns;
  for (auto& t : arguments) standIns.push_back(context.input(t).standIn);
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
      .def("call", [](const Traced& t, const std::vector<at::Tensor>& inputs) {
        py::gil_scoped_release release;
        return t.function->call(inputs);
      })
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
      .def_property_readonly("mutated", [](const Traced& t) {
        std::vector<int> inputs;
        for (auto& mutation : t.module->mutations) inputs.push_back(mutation.input);
        return inputs;
      });
  m.def("trace", &traceFunction);
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
