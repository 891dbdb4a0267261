#include "engine/compile.h"

#include <ATen/Parallel.h>

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "engine/codegen/cpu/jit.h"
#include "engine/compiled_region.h"
#include "engine/inductor/lowered_graph.h"
#include "engine/runtime/compiled_graph.h"
#include "engine/runtime/graph_interpreter.h"

namespace fusebox {
namespace {

using record::Phase;
using record::Recorder;
using record::StageTimer;

std::atomic<int64_t> graphCount{0}, kernelCount{0}, externCount{0}, failedStages{0};

std::shared_ptr<codegen::cpu::Jit> theJit;
std::mutex jitMutex;

/// The process's JIT, made with the first kernel.
Result<std::shared_ptr<codegen::cpu::Jit>> jit() {
  std::lock_guard lock(jitMutex);
  if (theJit) return theJit;
  codegen::cpu::Jit::Options options;
  auto target = codegen::cpu::TargetFeatures::named(compilerConfig().target);
  if (!target) return tl::unexpected(target.error());
  options.target = *target;
  options.background = compilerConfig().background;
  options.keepText = true;
  auto made = codegen::cpu::Jit::create(options);
  if (made) theJit = *made;
  return made;
}

/// Runs one stage of the pipeline: timed, recorded, and with every failure turned into an Error that names the stage.
class Stages {
 public:
  explicit Stages(record::Id compile) : recorder_(Recorder::active()), compile_(compile) {}

  template <class F>
  auto run(Phase phase, const char* name, F&& stage) -> decltype(stage()) {
    StageTimer timer(recorder_, compile_, phase, name);
    auto result = [&]() -> decltype(stage()) {
      try {
        return stage();
      } catch (const std::exception& error) {
        return fail(ErrorCode::Internal, error.what());
      }
    }();
    if (!result) {
      timer.error(result.error().text());
      result.error().context += (result.error().context.empty() ? "" : "; ") + std::string("while ") + name;
      ++failedStages;
    }
    return result;
  }

 private:
  Recorder* recorder_;
  record::Id compile_;
};

Result<std::vector<std::shared_ptr<codegen::cpu::CompiledKernel>>> generateCode(const inductor::Program& program) {
  auto compiler = jit();
  if (!compiler) return tl::unexpected(compiler.error());
  std::vector<std::shared_ptr<codegen::cpu::CompiledKernel>> kernels;
  const int threads = std::max(1u, std::thread::hardware_concurrency());
  for (auto& kernel : (*compiler)->compileAll(program.kernels, threads)) {
    if (!kernel) return tl::unexpected(kernel.error());
    kernels.push_back(std::move(*kernel));
  }
  return kernels;
}

/// The whole of TorchInductor's role, on one screen.
Result<std::shared_ptr<CompiledRegion>> compileGraph(const graph::Graph& traced, const std::vector<at::Tensor>& constants,
                                                     const char* direction, const CompileOptions& options) {
  Stages stages(options.compile);
  std::vector<inductor::PassLog> passes;
  auto postGrad = stages.run(Phase::Inductor, "graph passes", [&] { return inductor::runGraphPasses(traced, &passes); });
  if (!postGrad) return tl::unexpected(postGrad.error());

  auto lowered = stages.run(Phase::Inductor, "lowering", [&] { return inductor::lower(*postGrad); });
  if (!lowered) return tl::unexpected(lowered.error());

  inductor::ScheduleOptions how;
  how.fuse = compilerConfig().fuse;
  how.maxFusionSize = compilerConfig().maxFusionSize;
  how.threads = at::get_num_threads();
  auto schedule = stages.run(Phase::Inductor, "scheduling", [&] { return inductor::schedule(*lowered, how); });
  if (!schedule) return tl::unexpected(schedule.error());

  auto kernels = stages.run(Phase::Codegen, "code generation", [&] { return generateCode(schedule->program); });
  if (!kernels) return tl::unexpected(kernels.error());

  auto program = stages.run(Phase::Codegen, "assembly", [&] {
    return runtime::CompiledGraph::create(schedule->program, std::move(*kernels), constants);
  });
  if (!program) return tl::unexpected(program.error());

  ++graphCount;
  kernelCount += static_cast<int64_t>(schedule->program.kernels.size());
  for (const auto& group : schedule->groups) externCount += group.kernel < 0;
  auto region = std::make_shared<CompiledRegion>(std::move(*postGrad), std::move(*lowered), std::move(*schedule),
                                                 std::move(*program), options.name, direction);
  if (Recorder* recorder = Recorder::active()) region->describe(recorder, options.compile);
  return region;
}

/// Operator by operator: slower, never different.
aot::Executor eagerExecutor(const graph::Graph& traced, const std::vector<at::Tensor>& constants) {
  return [traced, constants](c10::ArrayRef<at::Tensor> inputs) {
    auto results = runtime::runEager(traced, inputs, constants);
    TORCH_CHECK(results.has_value(), "fusebox cannot run a traced graph: ", results.error().text());
    return std::move(*results);
  };
}

aot::Executor makeExecutor(const graph::Graph& traced, const std::vector<at::Tensor>& constants, const char* direction,
                           const CompileOptions& options) {
  if (options.backend == Backend::AotEager) return eagerExecutor(traced, constants);
  auto region = compileGraph(traced, constants, direction, options);
  if (!region) {
    if (Recorder* recorder = Recorder::active()) recorder->loss("graph not compiled", 1, region.error().text());
    if (std::getenv("FUSEBOX_DEBUG")) std::fprintf(stderr, "fusebox: %s\n", region.error().text().c_str());
    return eagerExecutor(traced, constants);
  }
  return [region = *region](c10::ArrayRef<at::Tensor> inputs) { return region->run(inputs); };
}

void recordTraced(const aot::AotModule& module, record::Id compile) {
  Recorder* recorder = Recorder::active();
  if (!recorder || compile == 0) return;
  record::GraphRecord row;
  row.compile = compile;
  row.direction = module.backward ? "joint" : "inference";
  row.stage = "captured";
  record::GraphSnapshot captured = recorder->graph(module.joint, row);
  row.from = captured;
  if (module.backward) {
    row.stage = "joint";
    row.from = recorder->graph(module.joint, row);
    row.direction = "backward";
    row.stage = "backward";
    recorder->graph(*module.backward, row);
    row.direction = "forward";
  }
  row.stage = "forward";
  recorder->graph(module.forward, row);
}

}  // namespace

CompilerConfig& compilerConfig() {
  static CompilerConfig config = [] {
    CompilerConfig c;
    if (const char* target = std::getenv("FUSEBOX_TARGET")) c.target = target;
    return c;
  }();
  return config;
}

std::shared_ptr<aot::AotFunction> compileModule(std::shared_ptr<const aot::AotModule> module, const CompileOptions& options) {
  recordTraced(*module, options.compile);
  aot::Executor forward = makeExecutor(module->forward, module->constants, module->backward ? "forward" : "inference", options);
  auto compileBackward = [options](const aot::AotModule& m) -> Result<aot::Executor> {
    CompileOptions backward = options;
    Recorder* recorder = Recorder::active();
    if (recorder) {
      record::CompileRecord row;
      row.kind = "backward";
      row.parent = options.compile;
      row.backend = options.backend == Backend::Inductor ? "inductor" : "aot_eager";
      backward.compile = recorder->beginCompile(std::move(row));
    }
    aot::Executor executor = makeExecutor(*m.backward, m.constants, "backward", backward);
    if (recorder) recorder->endCompile(backward.compile);
    return executor;
  };
  return std::make_shared<aot::AotFunction>(std::move(module), std::move(forward), std::move(compileBackward));
}

void drainCompiler() {
  std::shared_ptr<codegen::cpu::Jit> compiler;
  {
    std::lock_guard lock(jitMutex);
    compiler = theJit;
  }
  if (compiler) compiler->drain();
}

CompileCounters compileCounters() { return {graphCount, kernelCount, externCount, failedStages}; }

}  // namespace fusebox
