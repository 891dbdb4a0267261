// Builds programs from Python descriptions and runs them with kernels written by hand: tests of the run time alone.
#include <fmt/format.h>

#include <torch/csrc/utils/pybind.h>

#include "engine/runtime/compiled_graph.h"
#include "engine/runtime/graph_interpreter.h"
#include "engine/runtime/pool_cache.h"
#include "engine/support/clock.h"

namespace py = pybind11;
using namespace fusebox;
using namespace fusebox::inductor;

namespace {

constexpr int64_t kUnit = 64;  // elements of one work unit of the affine kernel

/// out = 2 * in + 1; sizes[0] elements, or the constant count baked into `kernelSize` for kernels without size arguments.
int64_t kernelSize = 0;
void affine(void* const* buffers, const int64_t* sizes, int64_t begin, int64_t end) {
  const auto* in = static_cast<const float*>(buffers[0]);
  auto* out = static_cast<float*>(buffers[1]);
  const int64_t count = sizes ? sizes[0] : kernelSize;
  for (int64_t i = begin * kUnit; i < std::min(count, end * kUnit); ++i) out[i] = 2 * in[i] + 1;
}

/// A sum in two phases: 8 units leave partial sums in the working memory, one unit adds them up.
void phasedSum(void* const* buffers, const int64_t*, int64_t begin, int64_t end) {
  const auto* in = static_cast<const float*>(buffers[0]);
  auto* partial = static_cast<double*>(buffers[2]);
  for (int64_t unit = begin; unit < end; ++unit) {
    if (unit < 8) {
      partial[unit] = 0;
      for (int64_t i = kernelSize / 8 * unit; i < kernelSize / 8 * (unit + 1); ++i) partial[unit] += in[i];
    } else {
      double total = 0;
      for (int p = 0; p < 8; ++p) total += partial[p];
      *static_cast<float*>(buffers[1]) = static_cast<float>(total);
    }
  }
}

void nothing(void* const*, const int64_t*, int64_t, int64_t) {}

std::shared_ptr<codegen::cpu::CompiledKernel> kernelNamed(const std::string& name, Kernel& kernel) {
  auto compiled = std::make_shared<codegen::cpu::CompiledKernel>();
  kernel.name = name;
  kernel.buffers = {KernelBuffer{0, "in"}, KernelBuffer{1, "out"}};
  kernel.buffers[1].role = BufferRole::Output;
  compiled->costPerUnit = 1000;
  if (name == "affine" || name == "affine_dynamic") {
    compiled->function = affine;
    const bool dynamic = name == "affine_dynamic";
    if (dynamic) kernel.sizeSymbols = {graph::Symbol::make("n", 0, 1 << 30)};
    compiled->units = [dynamic](const int64_t* sizes) { return ((dynamic ? sizes[0] : kernelSize) + kUnit - 1) / kUnit; };
  } else if (name == "phased_sum") {
    compiled->function = phasedSum;
    compiled->costPerUnit = 1e6;
    compiled->units = [](const int64_t*) { return int64_t{9}; };
    compiled->phaseEnds = [](const int64_t*) { return std::vector<int64_t>{8, 9}; };
    compiled->scratchBytes = [](const int64_t*) { return int64_t{64}; };
  } else {
    compiled->function = nothing;
    compiled->costPerUnit = 1;
    compiled->units = [](const int64_t*) { return int64_t{1}; };
  }
  return compiled;
}

graph::Argument argumentFrom(const py::handle& value) {
  if (value.is_none()) return {};
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>();
  if (py::isinstance<py::int_>(value)) return value.cast<int64_t>();
  if (py::isinstance<py::float_>(value)) return value.cast<double>();
  if (py::isinstance<py::tuple>(value)) return graph::ValueRef{value.cast<py::tuple>()[1].cast<int32_t>(), 0};
  if (py::isinstance<py::str>(value)) {
    const auto text = value.cast<std::string>();
    if (text == "float64") return graph::DType::Float64;
    if (text == "cpu") return graph::Device{};
    return text;
  }
  graph::ArgumentList list;
  for (const auto& item : value.cast<py::list>()) list.push_back(argumentFrom(item));
  return list;
}

std::vector<SymExpr> expressions(const py::handle& list, const std::map<std::string, graph::Symbol>& symbols) {
  std::vector<SymExpr> values;
  for (const auto& item : list.cast<py::list>())
    values.push_back(py::isinstance<py::str>(item) ? SymExpr(symbols.at(item.cast<std::string>())) : SymExpr(item.cast<int64_t>()));
  return values;
}

struct Launches : runtime::LaunchSink {
  std::vector<runtime::LaunchRecord> records;
  Launches() {
    record = [](LaunchSink* self, const runtime::LaunchRecord& launch) { static_cast<Launches*>(self)->records.push_back(launch); };
  }
};

class Probe {
 public:
  /// buffers: (kind, index, sizes, {pool, base, strides, offset}); steps: ("launch", kernel, [buffers], [sizes]),
  /// ("extern", op, [args], [results], out), ("allocate", b), ("free", b); results: buffer numbers or None.
  Probe(const py::list& buffers, const py::list& steps, const py::list& results, int64_t pool, std::vector<at::Tensor> constants) {
    Program program;
    program.name = "probe";
    program.poolBytes = pool;
    symbols_.emplace("n", graph::Symbol::make("n", 0, 1 << 30));
    for (const auto& item : buffers) addBuffer(program, item.cast<py::tuple>());
    std::vector<std::shared_ptr<codegen::cpu::CompiledKernel>> kernels;
    for (const auto& item : steps) addStep(program, kernels, item.cast<py::tuple>());
    for (const auto& item : results)
      program.results.push_back(item.is_none() ? graph::Argument() : graph::Argument(graph::ValueRef{item.cast<int32_t>(), 0}));
    auto graph = runtime::CompiledGraph::create(std::move(program), std::move(kernels), std::move(constants));
    if (!graph) throw std::runtime_error(graph.error().text());
    graph_ = *graph;
  }

  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs) {
    py::gil_scoped_release release;
    return graph_->run(inputs);
  }

  /// Nanoseconds of one call, the best of a few rounds.
  double time(const std::vector<at::Tensor>& inputs, int count) {
    py::gil_scoped_release release;
    double best = 1e18;
    for (int round = 0; round < 7; ++round) {
      const int64_t start = nowNs();
      for (int i = 0; i < count; ++i) graph_->run(inputs);
      best = std::min(best, static_cast<double>(nowNs() - start) / count);
    }
    return best;
  }

  std::vector<std::tuple<int, int, int64_t>> recorded(const std::vector<at::Tensor>& inputs) {
    Launches sink;
    graph_->setSink(&sink);
    graph_->run(inputs);
    graph_->setSink(nullptr);
    std::vector<std::tuple<int, int, int64_t>> list;
    for (const auto& launch : sink.records) list.emplace_back(launch.kernel, launch.group, launch.durationNs);
    return list;
  }

 private:
  void addBuffer(Program& program, const py::tuple& item) {
    static const std::map<std::string, ProgramBuffer::Kind> kKinds = {{"input", ProgramBuffer::Kind::Input},
                                                                      {"constant", ProgramBuffer::Kind::Constant},
                                                                      {"planned", ProgramBuffer::Kind::Planned},
                                                                      {"owned", ProgramBuffer::Kind::Owned},
                                                                      {"view", ProgramBuffer::Kind::View}};
    const auto extra = item.size() > 3 ? item[3].cast<py::dict>() : py::dict();
    ProgramBuffer buffer;
    buffer.id = static_cast<BufferId>(program.buffers.size());
    buffer.name = fmt::format("b{}", buffer.id);
    buffer.kind = kKinds.at(item[0].cast<std::string>());
    buffer.index = item[1].cast<int32_t>();
    buffer.meta.sizes = expressions(item[2], symbols_);
    buffer.meta.strides = extra.contains("strides") ? expressions(extra["strides"], symbols_) : graph::contiguousStrides(buffer.meta.sizes);
    buffer.meta.dtype = graph::DType::Float32;
    if (extra.contains("offset")) buffer.meta.storageOffset = extra["offset"].cast<int64_t>();
    if (extra.contains("pool")) buffer.poolOffset = extra["pool"].cast<int64_t>();
    if (extra.contains("base")) buffer.base = extra["base"].cast<int32_t>();
    if (extra.contains("float64")) buffer.meta.dtype = graph::DType::Float64;
    program.buffers.push_back(std::move(buffer));
  }

  void addStep(Program& program, std::vector<std::shared_ptr<codegen::cpu::CompiledKernel>>& kernels, const py::tuple& item) {
    const auto kind = item[0].cast<std::string>();
    if (kind == "allocate") return program.steps.push_back(AllocateStep{item[1].cast<int32_t>()});
    if (kind == "free") return program.steps.push_back(FreeStep{item[1].cast<int32_t>()});
    if (kind == "launch") {
      LaunchStep step{static_cast<int32_t>(kernels.size()), item[2].cast<std::vector<BufferId>>(), static_cast<int32_t>(program.steps.size())};
      if (item.size() > 3) step.sizes = expressions(item[3], symbols_);
      program.kernels.emplace_back();
      kernels.push_back(kernelNamed(item[1].cast<std::string>(), program.kernels.back()));
      return program.steps.push_back(std::move(step));
    }
    ExternStep step;
    step.op = item[1].cast<std::string>();
    for (const auto& argument : item[2].cast<py::list>()) step.args.push_back(argumentFrom(argument));
    step.results = item[3].cast<std::vector<BufferId>>();
    if (item.size() > 4) step.outVariant = item[4].cast<std::string>();
    step.group = static_cast<int32_t>(program.steps.size());
    program.steps.push_back(std::move(step));
  }

  std::map<std::string, graph::Symbol> symbols_;
  std::shared_ptr<runtime::CompiledGraph> graph_;
};

/// Runs a chain of calls through the interpreter; calls: (op, [args], outputs); ("v", k) is node k's output 0.
std::vector<at::Tensor> eager(const std::vector<at::Tensor>& inputs, const py::list& calls, int result) {
  graph::Graph graph;
  for (const at::Tensor& input : inputs) {
    graph::OutputMeta meta;
    for (int64_t d = 0; d < input.dim(); ++d) {
      meta.tensor.sizes.emplace_back(input.size(d));
      meta.tensor.strides.emplace_back(input.stride(d));
    }
    graph::NodeId id = graph.addPlaceholder("x", meta);
    graph.node(id).index = id;
  }
  for (const auto& item : calls) {
    const auto call = item.cast<py::tuple>();
    graph::ArgumentList args;
    for (const auto& argument : call[1].cast<py::list>()) args.push_back(argumentFrom(argument));
    graph.addCall(call[0].cast<std::string>(), std::move(args), std::vector<graph::OutputMeta>(call[2].cast<size_t>()));
  }
  graph.setOutputs({graph::ValueRef{result, 0}});
  auto values = runtime::runEager(graph, inputs);
  if (!values) throw std::runtime_error(values.error().text());
  return *values;
}

}  // namespace

PYBIND11_MODULE(fusebox_runtime_probe, m) {
  py::class_<Probe>(m, "Program")
      .def(py::init<const py::list&, const py::list&, const py::list&, int64_t, std::vector<at::Tensor>>(), py::arg("buffers"),
           py::arg("steps"), py::arg("results"), py::arg("pool") = 0, py::arg("constants") = std::vector<at::Tensor>())
      .def("run", &Probe::run)
      .def("time", &Probe::time)
      .def("recorded", &Probe::recorded);
  m.def("set_kernel_size", [](int64_t size) { kernelSize = size; });
  m.def("eager", &eager);
  m.def("kept_bytes", [] { return runtime::PoolCache::instance().keptBytes(); });
  m.def("trim", [] { return runtime::PoolCache::instance().trim(); });
}
