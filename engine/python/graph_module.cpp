#include "engine/python/graph_module.h"

#include <torch/extension.h>

#include <algorithm>
#include <functional>
#include <map>

#include "engine/aot/executor_scope.h"
#include "engine/compile/compile_alone.h"
#include "engine/graph/serialize.h"
#include "engine/graph/symbol_values.h"
#include "engine/compile/program_facts.h"
#include "engine/runtime/graph_interpreter.h"
#include "engine/runtime/strided_copy.h"
#include "engine/support/clock.h"
#include "engine/trace/convert.h"

namespace py = pybind11;

namespace fusebox::python {
namespace {

using record::Recorder;

[[noreturn]] void raise(const Error& error) { throw std::runtime_error(error.text()); }

/// Values of `symbols` by their names; empty where one is missing: then they are read off the inputs.
std::vector<int64_t> valuesOf(const std::vector<graph::Symbol>& symbols, const std::map<std::string, int64_t>& sizes) {
  std::vector<int64_t> values;
  for (const graph::Symbol s : symbols) {
    const auto found = sizes.find(s.name());
    if (found == sizes.end()) return {};
    values.push_back(found->second);
  }
  return values;
}

/// A saved graph, and what the active recording knows it as.
struct GraphHandle {
  graph::SavedGraph saved;
  record::GraphSnapshot snapshot;
  record::Id compile = 0;
  std::vector<graph::Symbol> symbols;

  static GraphHandle read(const std::string& text) {
    auto saved = graph::readSavedGraph(text);
    if (!saved) raise(saved.error());
    for (const auto& [symbol, value] : saved->hints) graph::setHint(symbol, value);
    auto symbols = graph::symbolsOf(saved->graph);
    return {std::move(*saved), {}, 0, std::move(symbols)};
  }

  /// The captured constants; None for those whose data was not kept.
  py::list constants() const {
    py::list list;
    for (const graph::ConstantData& constant : saved.constants) {
      const int64_t count = constant.meta.numel().maybeConstant().value_or(-1);
      if (constant.bytes.empty() && count != 0) {
        list.append(py::none());
        continue;
      }
      std::vector<int64_t> sizes, strides;
      for (const auto& size : constant.meta.sizes) sizes.push_back(size.maybeConstant().value_or(0));
      for (const auto& stride : constant.meta.strides) strides.push_back(stride.maybeConstant().value_or(0));
      const auto options = at::TensorOptions().dtype(static_cast<at::ScalarType>(constant.meta.dtype));
      at::Tensor rows = at::empty(sizes, options);
      if (count > 0) std::memcpy(rows.mutable_data_ptr(), constant.bytes.data(), constant.bytes.size());
      list.append(runtime::withStrides(rows, strides).to(trace::fromDevice(constant.meta.device)));
    }
    return list;
  }

  /// Begins a compile of the active recording and writes the graph under it.
  void record(const std::string& name, const std::string& backend, const std::string& stage,
              const std::string& direction) {
    Recorder* recorder = Recorder::active();
    if (!recorder) return;
    record::CompileRecord row;
    row.kind = "graph";
    row.backend = backend;
    compile = recorder->beginCompile(std::move(row));
    record::GraphRecord graph;
    graph.compile = compile;
    graph.stage = stage;
    graph.direction = direction;
    graph.name = name;
    auto shared = std::make_shared<const graph::Graph>(saved.graph);
    snapshot = recorder->graph(shared, graph);
    recorder->saveGraph(snapshot, shared, saved.constants, saved.hints);
  }

  void finish(const std::string& error) const {
    if (Recorder* recorder = Recorder::active(); recorder && compile)
      recorder->endCompile(compile, {error.empty(), error, {}, {}});
  }

  std::vector<at::Tensor> runEager(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& constants,
                                   const std::map<std::string, int64_t>& sizes) const {
    py::gil_scoped_release release;
    aot::ExecutorScope scope;
    const int64_t start = nowNs();
    const std::vector<int64_t> values = valuesOf(symbols, sizes);
    auto results = runtime::runEager(saved.graph, inputs, constants, {},
                                     values.empty() ? graph::SymbolValues() : graph::SymbolValues(symbols, values));
    if (!results) raise(results.error());
    if (Recorder* recorder = Recorder::session(); recorder && compile) recorder->call(compile, start, nowNs() - start);
    return std::move(*results);
  }
};

struct RegionHandle {
  std::shared_ptr<CompiledRegion> region;
  record::Id compile = 0;
  bool isBackward = false;
  std::vector<graph::Symbol> symbols;

  static RegionHandle make(const GraphHandle& graph, const std::vector<at::Tensor>& constants,
                           const std::string& direction, const std::string& name) {
    py::gil_scoped_release release;
    CompileOptions options;
    options.compile = graph.compile;
    options.name = name;
    auto region = compileAlone(graph.saved.graph, constants, direction.c_str(), options, graph.snapshot);
    if (!region) raise(region.error());
    (*region)->setSymbols(graph.symbols);
    return {std::move(*region), graph.compile, direction == "backward", graph.symbols};
  }

  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs, const std::map<std::string, int64_t>& sizes) const {
    py::gil_scoped_release release;
    aot::ExecutorScope scope;
    Recorder* recorder = Recorder::session();
    const int64_t start = nowNs();
    auto results = region->run(inputs, valuesOf(symbols, sizes));
    if (recorder && compile && !isBackward)
      recorder->call(compile, start, nowNs() - start);  // a backward region says so itself
    return results;
  }

  const GraphForms& forms() const {
    auto made = region->forms();
    if (!made) raise(made.error());
    return **made;
  }

  py::dict facts() const {
    const ProgramFacts traffic = factsOf(forms().lowered, forms().schedule);
    py::list groups, decisions;
    int64_t bytes = 0;
    for (const inductor::FusionGroup& group : forms().schedule.groups) {
      const auto& moved = traffic.groups[static_cast<size_t>(group.id)];
      py::dict d;
      d["name"] = group.name;
      d["kind"] = group.kernel < 0 ? "extern" : "generated";
      d["operations"] = namesOf(group.operations);
      d["bytes"] = moved.readBytes + moved.writeBytes;
      bytes += moved.readBytes + moved.writeBytes;
      groups.append(d);
    }
    for (const inductor::FusionDecision& decision : forms().schedule.decisions) {
      py::dict d;
      d["a"] = nameOf(decision.a);
      d["b"] = nameOf(decision.b);
      d["fused"] = decision.fused;
      d["kind"] = decision.kind;
      d["reason"] = decision.reason;
      d["by_rule"] = decision.byRule;
      d["score_bytes"] = decision.scoreBytes;
      decisions.append(d);
    }
    py::dict d;
    d["groups"] = groups;
    d["decisions"] = decisions;
    d["kernels"] = forms().schedule.program.kernels.size();
    d["bytes"] = bytes;
    d["unknown_names"] = forms().schedule.unknownNames;
    return d;
  }

 private:
  std::string nameOf(int32_t operation) const {
    return forms().lowered.operations[static_cast<size_t>(operation)].name;
  }
  std::vector<std::string> namesOf(const std::vector<int32_t>& operations) const {
    std::vector<std::string> names;
    for (int32_t id : operations) names.push_back(nameOf(id));
    return names;
  }
};

/// One row of `numerics`; `row` has the fields of NumericsRecord by their names in the view.
void recordNumerics(const GraphHandle& graph, int32_t node, const py::dict& row) {
  Recorder* recorder = Recorder::active();
  if (!recorder || graph.snapshot.id == 0) return;
  const auto number = [&](const char* key) {
    return row.contains(key) && !row[key].is_none() ? py::cast<double>(row[key]) : -1.0;
  };
  record::NumericsRecord r;
  r.graph = graph.snapshot.id;
  r.node = graph.snapshot.node(node);
  r.output = py::cast<int>(row["output"]);
  r.dtype = py::cast<std::string>(row["dtype"]);
  r.elements = py::cast<int64_t>(row["elements"]);
  r.eagerAbs = number("eager_abs");
  r.eagerRel = number("eager_rel");
  r.compiledAbs = number("compiled_abs");
  r.compiledRel = number("compiled_rel");
  r.differenceAbs = number("difference_abs");
  r.differenceUlp = number("difference_ulp");
  r.localAbs = number("local_abs");
  r.magnitude = number("magnitude");
  r.mismatches = py::cast<int64_t>(row["mismatches"]);
  r.divergent = py::cast<bool>(row["is_divergent"]);
  r.note = py::cast<std::string>(row["note"]);
  recorder->numerics(std::move(r));
}

}  // namespace

void bindGraphs(py::module_& m) {
  py::class_<GraphHandle>(m, "SavedGraph")
      .def(py::init(&GraphHandle::read))
      .def_property_readonly("name", [](const GraphHandle& g) { return g.saved.graph.name; })
      .def_property_readonly("graph_id", [](const GraphHandle& g) { return g.snapshot.id; })
      .def_property_readonly("compile_id", [](const GraphHandle& g) { return g.compile; })
      .def("constants", &GraphHandle::constants)
      .def("record", &GraphHandle::record)
      .def("finish", &GraphHandle::finish)
      .def("run_eager", &GraphHandle::runEager, py::arg("inputs"), py::arg("constants"), py::arg("sizes") = std::map<std::string, int64_t>())
      .def("record_numerics", &recordNumerics);
  py::class_<RegionHandle>(m, "CompiledGraph")
      .def(py::init(&RegionHandle::make), py::arg("graph"), py::arg("constants"), py::arg("direction") = "inference",
           py::arg("name") = "")
      .def("run", &RegionHandle::run, py::arg("inputs"), py::arg("sizes") = std::map<std::string, int64_t>())
      .def("facts", &RegionHandle::facts);
  m.def("graph_pass_names", &inductor::graphPassNames);
  m.def("record_loss", [](const std::string& what, int64_t count, const std::string& detail) {
    if (Recorder* recorder = Recorder::active()) recorder->loss(what, count, detail);
  });
  m.def("record_call", [](int32_t compile, int64_t startNs, int64_t durNs) {
    if (Recorder* recorder = Recorder::session()) recorder->call(compile, startNs, durNs);
  });
}

}  // namespace fusebox::python
