// Traces a Python function by calling it on stand-ins and compiles the graphs, without the bytecode evaluator: tests of
// everything behind capture.
#include <torch/csrc/utils/pybind.h>

#include "engine/compile/compile.h"
#include "engine/trace/trace_context.h"

namespace py = pybind11;
using namespace fusebox;

namespace {

struct Compiled {
  std::shared_ptr<aot::AotFunction> function;
  std::vector<at::Tensor> inputs;
  double traceMs = 0, compileMs = 0;
};

double now() { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Compiled compile(const py::function& fn, const std::vector<at::Tensor>& arguments, const std::string& backend) {
  trace::TraceContext* self = nullptr;
  trace::TraceContext context([&](const at::Tensor& real) { return trace::Lift::input(self->input(real).index); }, nullptr);
  self = &context;
  std::vector<at::Tensor> standIns;
  for (auto& t : arguments) standIns.push_back(context.input(t).standIn);
  Compiled made;
  CompileOptions options;
  options.backend = backend == "aot_eager" ? Backend::AotEager : Backend::Inductor;
  double start = now();
  std::shared_ptr<const aot::AotModule> module;
  {
    trace::TraceContext::Active active(context);
    auto outputs = fn(*py::cast(standIns)).cast<std::vector<at::Tensor>>();
    auto finished = aot::finishTrace(context, outputs, compilerTraits(options));
    if (!finished) throw std::runtime_error("finishTrace: " + finished.error().text());
    module = std::make_shared<const aot::AotModule>(std::move(*finished));
  }
  double middle = now();
  made.function = compileModule(module, options);
  made.traceMs = middle - start;
  made.compileMs = now() - middle;
  for (auto& i : context.inputs()) made.inputs.push_back(i.real);
  return made;
}

}  // namespace

PYBIND11_MODULE(fusebox_pipeline_probe, m) {
  py::module_::import("atexit").attr("register")(py::cpp_function([] { fusebox::stopCompiler(); }));
  py::class_<Compiled>(m, "Compiled")
      .def_readonly("inputs", &Compiled::inputs)
      .def_readonly("trace_ms", &Compiled::traceMs)
      .def_readonly("compile_ms", &Compiled::compileMs)
      .def("call", [](const Compiled& c, const std::vector<at::Tensor>& inputs) {
        py::gil_scoped_release release;
        return c.function->call(inputs);
      });
  m.def("compile", &compile, py::arg("fn"), py::arg("arguments"), py::arg("backend") = "inductor");
  m.def("drain", &drainCompiler, py::call_guard<py::gil_scoped_release>());
  m.def("set_fuse", [](bool on) { compilerConfig().fuse = on; });
  m.def("counters", [] {
    auto c = compileCounters();
    return std::map<std::string, int64_t>{
        {"graphs", c.graphs}, {"kernels", c.kernels}, {"extern_calls", c.externCalls}, {"failed_stages", c.failedStages}};
  });
}
