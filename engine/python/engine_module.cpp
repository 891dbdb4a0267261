#include "engine/python/engine_module.h"

#include <pybind11/stl.h>

#include "engine/capture/entries/driver.h"
#include "engine/capture/entries/entry_log.h"
#include "engine/capture/entries/hook.h"
#include "engine/capture/entries/hook_skip.h"
#include "engine/capture/entries/job_profile.h"
#include "engine/capture/entries/rank_decisions.h"
#include "engine/capture/evaluation/symbol_methods.h"
#include "engine/capture/rules/substitutes.h"
#include "engine/compile/compile_requests.h"
#include "engine/compile/graph_cache.h"
#include "engine/python/ahead_of_time.h"
#include "engine/python/cache_control.h"
#include "engine/python/compiled_function.h"
#include "engine/python/debug_control.h"
#include "engine/python/graph_module.h"
#include "engine/python/guard_probe.h"
#include "engine/python/kept_captures.h"
#include "engine/python/operator_trace.h"
#include "engine/python/record_queue.h"
#include "engine/python/torch_graph_capture.h"
#include "engine/record/gpu_recording.h"
#include "engine/support/fork_gate.h"
#include "engine/trace/trace_context.h"
#include "engine/trace/trace_fallback.h"

namespace py = pybind11;

namespace fusebox::python {
namespace {

using capture::CaptureEvent;
using capture::RegionOptions;

constexpr const char* kEventKinds[] = {"compiled", "graph_break", "recompile", "limit", "failed", "ran_eagerly"};

const RegionOptions* optionsFrom(const py::dict& d) {
  RegionOptions o;
  o.backendName = py::cast<std::string>(d["backend"]);
  o.backend = o.backendName == "inductor" ? Backend::Inductor : o.backendName == "cudagraphs" ? Backend::CudaGraphs : Backend::AotEager;
  o.captureOnly = o.backendName == "eager";
  o.fullgraph = py::cast<bool>(d["fullgraph"]);
  o.mode = py::cast<std::string>(d["mode"]);
  o.dynamic = d["dynamic"].is_none() ? -1 : py::cast<bool>(d["dynamic"]);
  if (d.contains("cuda_graphs")) {
    const py::dict graphs = d["cuda_graphs"];
    o.graphs = {py::cast<bool>(graphs["use"]), py::cast<int>(graphs["record_limit"]), py::cast<bool>(graphs["or_error"])};
    if (o.graphs.use && !runtime::GraphCapture::instance() && py::cast<bool>(py::module_::import("torch.cuda").attr("is_available")()))
      runtime::GraphCapture::install(torchGraphCapture());
  }
  const std::pair<const char*, bool*> switches[] = {{"fallback_random", &o.fallbackRandom},
                                                    {"max_autotune", &o.maxAutotune},
                                                    {"emulate_precision_casts", &o.emulatePrecisionCasts},
                                                    {"nan_asserts", &o.nanAsserts},
                                                    {"deterministic", &o.deterministic}};
  for (const auto& [name, value] : switches)
    if (d.contains(name)) *value = py::cast<bool>(d[name]);
  const std::pair<const char*, std::optional<bool>*> caches[] = {{"fx_graph_cache", &o.caches.isKept},
                                                                 {"fx_graph_remote_cache", &o.caches.isShared}};
  for (const auto& [name, value] : caches)
    if (d.contains(name)) *value = py::cast<bool>(d[name]);
  if (d.contains("logs")) o.logs = py::cast<int>(d["logs"]);
  if (d.contains("break_every")) o.breakEvery = py::cast<int>(d["break_every"]);
  // Entries refer to their options for as long as the process lives.
  if (d.contains("function") && !d["function"].is_none()) o.function = py::object(d["function"]).release().ptr();
  return capture::internOptions(o);
}

py::dict toDict(const CaptureEvent& e) {
  py::dict d;
  d["kind"] = kEventKinds[static_cast<size_t>(e.kind)];
  d["function"] = e.function;
  d["file"] = e.file;
  d["line"] = e.line;
  d["what"] = e.what;
  d["detail"] = e.detail;
  d["hint"] = e.hint;
  d["operators"] = e.operators;
  d["guards"] = e.guards;
  d["relations"] = e.relations;
  d["graph"] = e.graph;
  d["operators_at"] = e.operatorsAt;
  d["symbols"] = e.symbols;
  d["capture_ms"] = static_cast<double>(e.captureNs) / 1e6;
  d["compile_ms"] = static_cast<double>(e.compileNs) / 1e6;
  return d;
}

py::dict counters() {
  const capture::CaptureCounters& c = capture::captureCounters();
  const CompileCounters compiler = compileCounters();
  const auto [codes, entries] = capture::entryCounts();
  py::dict d;
  d["frames"] = c.frames;
  d["graphs"] = c.graphs;
  d["graph_breaks"] = c.graphBreaks;
  d["recompiles"] = c.recompiles;
  d["recompile_limits"] = c.limits;
  d["capture_failures"] = c.failures;
  d["eager_runs"] = c.eagerRuns;
  d["operators"] = c.operators;
  d["instructions"] = c.instructions;
  d["compiled_graphs"] = compiler.graphs;
  d["kernels"] = compiler.kernels;
  d["extern_calls"] = compiler.externCalls;
  d["failed_stages"] = compiler.failedStages;
  const CacheCounters cache = cacheCounters();
  d["cache_hits"] = cache.hits;
  d["cache_misses"] = cache.misses;
  d["cache_bypasses"] = cache.bypasses;
  d["cache_stores"] = cache.stores;
  d["cache_problems"] = cache.problems;
  d["cache_remote_hits"] = cache.remoteHits;
  d["cache_remote_stores"] = cache.remoteStores;
  d["captures_recalled"] = c.recalled;
  d["captures_kept"] = c.kept;
  d["cached_code_objects"] = codes;
  d["cached_entries"] = entries;
  return d;
}

void setStance(const std::string& name) {
  static const std::map<std::string, capture::Stance> kStances = {{"default", capture::Stance::Default},
                                                                  {"force_eager", capture::Stance::ForceEager},
                                                                  {"eager_on_recompile", capture::Stance::EagerOnRecompile},
                                                                  {"fail_on_recompile", capture::Stance::FailOnRecompile},
                                                                  {"eager_then_compile", capture::Stance::EagerThenCompile},
                                                                  {"aot_eager_then_compile", capture::Stance::EagerThenCompile}};
  auto it = kStances.find(name);
  if (it == kStances.end()) throw py::value_error("unknown stance: " + name);
  capture::captureStance() = it->second;
}

/// Replaces the rules of one kind; each text is "A,B".
void setRules(inductor::FusionRule::Kind kind, const std::vector<std::string>& texts) {
  std::vector<inductor::FusionRule> rules = fusionRules();
  std::erase_if(rules, [&](const inductor::FusionRule& rule) { return rule.kind == kind; });
  for (const std::string& text : texts) {
    auto rule = inductor::parseFusionRule(kind, text);
    if (!rule) throw py::value_error("a fusion is named by two operations, \"A,B\", not \"" + text + "\"");
    rules.push_back(std::move(*rule));
  }
  setFusionRules(std::move(rules));
}

std::vector<std::string> ruleTexts(inductor::FusionRule::Kind kind) {
  std::vector<std::string> texts;
  for (const inductor::FusionRule& rule : fusionRules())
    if (rule.kind == kind) texts.push_back(rule.b.empty() ? rule.a : rule.a + "," + rule.b);
  return texts;
}

void configure(const std::string& name, const py::object& value) {
  capture::CaptureConfig& capture = capture::captureConfig();
  CompilerConfig& compiler = compilerConfig();
  if (name == "recompile_limit") capture.recompileLimit = py::cast<int>(value);
  else if (name == "accumulated_recompile_limit") capture.accumulatedRecompileLimit = py::cast<int>(value);
  else if (name == "fail_on_recompile_limit_hit") capture.failOnRecompileLimitHit = py::cast<bool>(value);
  else if (name == "error_on_recompile") capture.errorOnRecompile = py::cast<bool>(value);
  else if (name == "assume_static_by_default") capture.assumeStaticByDefault = py::cast<bool>(value);
  else if (name == "automatic_dynamic_shapes") capture.automaticDynamicShapes = py::cast<bool>(value);
  else if (name == "specialize_int") capture.specializeInt = py::cast<bool>(value);
  else if (name == "specialize_float") capture.specializeFloat = py::cast<bool>(value);
  else if (name == "force_parameter_static_shapes") capture.forceParameterStaticShapes = py::cast<bool>(value);
  else if (name == "loop_operators") capture.loopOperators = py::cast<int64_t>(value);
  else if (name == "cache_captures") capture.cacheCaptures = py::cast<bool>(value);
  else if (name == "cache_captures_from") capture.cacheCapturesFrom = py::cast<int>(value);
  else if (name == "target") compiler.target = py::cast<std::string>(value);
  else if (name == "background") compiler.background = py::cast<bool>(value);
  else if (name == "fuse") compiler.fuse = py::cast<bool>(value);
  else if (name == "max_fusion_size") compiler.maxFusionSize = py::cast<int>(value);
  else if (name == "forbid_fusion") setRules(inductor::FusionRule::Kind::Forbid, py::cast<std::vector<std::string>>(value));
  else if (name == "force_fusion") setRules(inductor::FusionRule::Kind::Force, py::cast<std::vector<std::string>>(value));
  else if (name == "skip_passes") setSkippedPasses(py::cast<std::vector<std::string>>(value));
  else throw py::key_error(name);
}

py::dict configuration() {
  const capture::CaptureConfig& capture = capture::captureConfig();
  const CompilerConfig& compiler = compilerConfig();
  py::dict d;
  d["recompile_limit"] = capture.recompileLimit;
  d["accumulated_recompile_limit"] = capture.accumulatedRecompileLimit;
  d["fail_on_recompile_limit_hit"] = capture.failOnRecompileLimitHit;
  d["error_on_recompile"] = capture.errorOnRecompile;
  d["assume_static_by_default"] = capture.assumeStaticByDefault;
  d["automatic_dynamic_shapes"] = capture.automaticDynamicShapes;
  d["specialize_int"] = capture.specializeInt;
  d["specialize_float"] = capture.specializeFloat;
  d["force_parameter_static_shapes"] = capture.forceParameterStaticShapes;
  d["loop_operators"] = capture.loopOperators;
  d["cache_captures"] = capture.cacheCaptures;
  d["cache_captures_from"] = capture.cacheCapturesFrom;
  d["target"] = compiler.target;
  d["background"] = compiler.background;
  d["fuse"] = compiler.fuse;
  d["max_fusion_size"] = compiler.maxFusionSize;
  d["forbid_fusion"] = ruleTexts(inductor::FusionRule::Kind::Forbid);
  d["skip_passes"] = skippedPasses();
  d["force_fusion"] = ruleTexts(inductor::FusionRule::Kind::Force);
  return d;
}

void startRecording(const std::string& path, const std::map<std::string, std::string>& facts) {
  auto started = record::Recorder::start({path, facts});
  if (!started) throw std::runtime_error(started.error().text());
}

void bindCapture(py::module_& m) {
  m.def("compiled", [](const py::object& callable, const py::dict& options, const py::object& root) {
    return py::reinterpret_steal<py::object>(makeCompiledFunction(callable.ptr(), WrapperKind::Compile, optionsFrom(options), root.ptr()));
  }, py::arg("callable"), py::arg("options"), py::arg("root") = py::none());
  py::class_<OpenRegion>(m, "OpenRegion")
      .def(py::init([](const py::object& options) { return std::make_unique<OpenRegion>(options.is_none() ? nullptr : optionsFrom(options)); }))
      .def("close", [](OpenRegion& region) {
        if (!region.close()) throw std::runtime_error("a region of compiled code was opened on another thread: close it there");
      });
  m.def("disabled", [](const py::object& callable) {
    return py::reinterpret_steal<py::object>(makeCompiledFunction(callable.ptr(), WrapperKind::Disable, nullptr, nullptr));
  });
  m.def("skip_code", [](const py::object& code) {
    if (!PyCode_Check(code.ptr())) throw py::type_error("a code object is needed");
    capture::stateOf(reinterpret_cast<PyCodeObject*>(code.ptr())).skip = true;
  });
  // (entry, its address, whether it can serve, guards, hits) of what is compiled for calls of a code object, last hit first; the entry lives as long as its capsule.
  m.def("entries_of", [](const py::object& code) {
    py::list all;
    for (const auto& point : capture::stateOf(reinterpret_cast<PyCodeObject*>(code.ptr())).points) {
      if (point->offset != 0) continue;
      for (const std::shared_ptr<capture::Entry>& entry : point->entries) {
        py::capsule held(new std::shared_ptr<capture::Entry>(entry), [](void* p) { delete static_cast<std::shared_ptr<capture::Entry>*>(p); });
        all.append(py::make_tuple(held, reinterpret_cast<uintptr_t>(entry.get()), entry->guards->alive(), entry->guards->guards().guards().size(), entry->hits));
      }
    }
    return all;
  });
  m.def("is_skipped", [](const py::object& code) { return capture::stateOf(reinterpret_cast<PyCodeObject*>(code.ptr())).skip; });
  m.def("add_skipped_folder", &capture::addSkippedFolder);
  m.def("simulate_cuda_graphs", [](bool on) { runtime::GraphCapture::install(on ? simulatedGraphCapture() : nullptr); },
        "Takes the CPU for a device with CUDA graphs: tests of recording and replaying without a GPU.");
  m.def("is_capturing", &capture::isCapturing);
  m.def("is_tracing", [] { return trace::TraceContext::current() != nullptr; });
  m.def("outside_trace", [](const py::function& function, const py::args& args) {
    const trace::NoTrace off;
    return function(*args);
  });
  m.def("in_region", &capture::inRegion);
  m.def("reset", &capture::clearEntries);
  m.def("symbol_method", [](const std::string& method, const py::object& symbol, const py::object& other) {
    capture::PyRef made = capture::symbolMethod(method, symbol.ptr(), other.ptr());
    if (!made) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(made.release());
  });
  m.def("set_stance", &setStance);
  m.def("substitute_in_graph", [](const py::object& callable, const py::object& substitute) {
    PyObject*& all = capture::substitutesInGraph();
    if (!all && !(all = PyDict_New())) throw py::error_already_set();
    if (PyDict_SetItem(all, callable.ptr(), substitute.ptr()) < 0) throw py::error_already_set();
  });
  m.def("ignore_in_graph", [](const py::set& functions) {
    const capture::PyRef before = capture::PyRef::steal(capture::ignoredInGraph());
    capture::ignoredInGraph() = functions.empty() ? nullptr : py::set(functions).release().ptr();
  });
  m.def("reorder_in_graph", [](const py::set& functions) {
    const capture::PyRef before = capture::PyRef::steal(capture::reorderedInGraph());
    capture::reorderedInGraph() = functions.empty() ? nullptr : py::set(functions).release().ptr();
  });
  m.def("force_backend", [](const py::object& options) { forceBackend(options.is_none() ? nullptr : optionsFrom(options)); });
  m.def("set_exceptions", [](const py::object& graphBreak, const py::object& recompile) {
    capture::captureExceptions() = {py::object(graphBreak).release().ptr(), py::object(recompile).release().ptr()};
  });
}

void bindReports(py::module_& m) {
  m.def("counters", &counters);
  m.def("latest_event", &capture::latestEvent);
  m.def("listen_to_compiling", [](const py::object& listener, bool on) {
    auto& all = capture::compileListeners();
    std::erase_if(all, [&](const capture::PyRef& one) { return one.get() == listener.ptr(); });
    if (on) all.push_back(capture::PyRef::borrow(listener.ptr()));
  });
  m.def("events_since", [](int64_t since) {
    py::list list;
    for (const CaptureEvent& e : capture::eventsSince(since)) list.append(toDict(e));
    return list;
  });
  m.def("keep_operators", [](bool keep) { capture::keepsOperators() = keep; });
  m.def("set_number_exchange", [](const py::object& exchange) { capture::rankFunctions().exchangeNumbers = capture::PyRef::borrow(exchange.ptr()); });
  m.def("set_guard_agreement", [](const py::object& allHit) {
    capture::rankFunctions().allHit = allHit.is_none() ? capture::PyRef() : capture::PyRef::borrow(allHit.ptr());
  });
  m.def("set_gradient_buckets", [](int64_t first, int64_t others) { capture::gradientBuckets() = {first, others}; });
  m.def("keep_graph_text", [](bool keep) { capture::keepsGraphText() = keep; });
  m.def("configure", &configure);
  m.def("configuration", &configuration);
  m.def("start_recording", &startRecording, py::arg("path"), py::arg("facts") = std::map<std::string, std::string>());
  m.def("stop_recording", [] {
    stopOperatorTrace();
    py::gil_scoped_release release;
    drainCompiler();
    record::Recorder::stop();
  });
  m.def("flush_recording", [] {
    py::gil_scoped_release release;
    if (auto* r = record::Recorder::active()) r->flush();
  });
  // GPUs: false where nothing is recorded or CUPTI cannot be had; the session says why.
  m.def("start_gpu_recording", [] {
    auto* gpu = record::GpuRecording::active();
    const bool on = gpu && gpu->start();
    if (on) startOperatorTrace(OperatorTrace::Spans);
    return on;
  });
  m.def("record_operators", [] {
    if (record::Recorder::session()) startOperatorTrace(OperatorTrace::Launches);
  });
  // The reason why not; empty: they are read.
  m.def("start_gpu_counters", [](int device, const std::string& metrics, size_t launches) {
    auto* gpu = record::GpuRecording::active();
    if (!gpu) return std::string("nothing is being recorded");
    auto started = gpu->startCounters(device, metrics, launches);
    return started ? std::string() : started.error().text();
  });
  m.def("start_gpu_sampling", [](int device, int64_t intervalUs, const std::string& metrics) {
    auto* gpu = record::GpuRecording::active();
    if (!gpu) return std::string("nothing is being recorded");
    auto started = gpu->startSampling(device, intervalUs, metrics);
    return started ? std::string() : started.error().text();
  });
  m.def("pause_gpu_recording", [](const std::string& who) {
    if (auto* gpu = record::GpuRecording::active()) gpu->pause(who);
  });
  m.def("resume_gpu_recording", [] {
    auto* gpu = record::GpuRecording::active();
    return gpu && gpu->resume();
  });
  m.def("records_gpu", [] {
    auto* gpu = record::GpuRecording::active();
    return gpu && gpu->isOn();
  });
  m.def("is_recording", [] { return record::Recorder::session() != nullptr; });
  m.def("record_fact", [](const std::string& key, const std::string& value) {
    if (auto* r = record::Recorder::active()) r->fact(key, value);
  });
  m.def("record_loss", [](const std::string& what, int64_t count, const std::string& detail) {
    if (auto* r = record::Recorder::active()) r->loss(what, count, detail);
  });
  m.def("drain", [] {
    py::gil_scoped_release release;
    drainCompiler();
  });
  py::module_::import("os").attr("register_at_fork")(py::arg("before") = py::cpp_function(&ForkGate::announce, py::call_guard<py::gil_scoped_release>()),
                                                     py::arg("after_in_parent") = py::cpp_function(&ForkGate::done));
  // Registered with the import, so that it runs after the program's own exit functions.
  py::module_::import("atexit").attr("register")(py::cpp_function([] {
    capture::flushProfile();
    py::gil_scoped_release release;
    if (record::Recorder::session()) drainCompiler();
    stopCompiler();
  }));
}

}  // namespace

void bindEngine(py::module_& m) {
  if (addCompiledFunctionType(m.ptr()) < 0) throw py::error_already_set();
  bindCapture(m);
  bindReports(m);
  bindGraphs(m);
  bindGuardProbe(m);
  bindCache(m);
  bindRecordQueue(m);
  bindAheadOfTime(m, optionsFrom);
  keepCaptures(m);
  trace::registerTraceKernels();  // every operator is told of them, which the first call need not wait for
  m.def("attach_debugger", &attachDebugger, py::arg("path"), py::arg("token"), py::call_guard<py::gil_scoped_release>());
}

}  // namespace fusebox::python
