#include "engine/compile/compile.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "engine/cache/cache_settings.h"
#include "engine/codegen/cpu/jit.h"
#include "engine/codegen/gpu/flash/gradient_plan.h"
#include "engine/compile/compile_alone.h"
#include "engine/compile/compile_requests.h"
#include "engine/compile/compiled_region.h"
#include "engine/compile/graph_caching.h"
#include "engine/compile/kernel_code.h"
#include "engine/compile/kernel_tuning.h"
#include "engine/compile/loop_operator.h"
#include "engine/compile/staged_executor.h"
#include "engine/graph/symbol_values.h"
#include "engine/record/graph_rows.h"
#include "engine/inductor/passes/joint_graph.h"
#include "engine/inductor/ir/lowered_graph.h"
#include "engine/inductor/passes/saved_layout.h"
#include "engine/runtime/compiled_graph.h"
#include "engine/runtime/effect_log.h"
#include "engine/runtime/error_text.h"
#include "engine/runtime/gpu/gpu_compiler.h"
#include "engine/debug/site.h"
#include "engine/compile/pipeline_stops.h"
#include "engine/runtime/graph_interpreter.h"
#include "engine/runtime/graph_tree.h"
#include "engine/runtime/strided_copy.h"
#include "engine/support/all_cores.h"
#include "engine/support/fork_gate.h"
#include "engine/compile/stored_graphs.h"
#include "engine/compile/traced_graphs.h"
#include "engine/trace/eager_check.h"

namespace fusebox {
namespace {

using record::Phase;
using record::Recorder;
using record::StageTimer;

std::atomic<int64_t> graphCount{0}, kernelCount{0}, externCount{0}, failedStages{0};

/// Runs one stage of the pipeline: timed, recorded, and with every failure turned into an Error that names the stage.
class Stages {
 public:
  explicit Stages(record::Id compile) : recorder_(Recorder::active()), compile_(compile) {}

  template <class F>
  auto run(Phase phase, const char* name, F&& stage) -> decltype(stage()) {
    return run(phase, name, std::forward<F>(stage), [](StageTimer&, auto&) {});
  }

  /// What the next stage starts from, for whoever is stopped there; must live until that stage has run.
  template <class T>
  Stages& from(const T& value) {
    before_ = [&value] { return irText(value); };
    return *this;
  }

  /// `describe(timer, value)` adds what the session should know of a stage that succeeded.
  template <class F, class D>
  auto run(Phase phase, const char* name, F&& stage, D&& describe) -> decltype(stage()) {
    if (debug::armed(debug::Kind::Pass)) debug::reachPass(debug::When::Before, stopName(name), 0, before_);
    StageTimer timer(recorder_, compile_, phase, name);
    auto result = [&]() -> decltype(stage()) {
      try {
        return stage();
      } catch (const std::exception& error) {
        return fail(ErrorCode::Internal, runtime::textOf(error));
      }
    }();
    if (!result) {
      timer.error(result.error().text());
      result.error().context += (result.error().context.empty() ? "" : "; ") + std::string("while ") + name;
      ++failedStages;
      if (debug::armed(debug::Kind::Error)) debug::reachError(name, result.error().text());
    } else {
      if (recorder_) describe(timer, *result);
      if (debug::armed(debug::Kind::Pass)) stopAfter(stopName(name), *result);
    }
    return result;
  }

  /// The passes that a stage consisted of, as stages inside it. Call it while that stage is open.
  void passes(const std::vector<inductor::PassLog>& log) {
    for (const inductor::PassLog& pass : log)
      recorder_->stage({compile_, "inductor", pass.pass, pass.startNs, pass.startNs + pass.ns, pass.changed, pass.nodesBefore,
                        pass.nodesAfter, pass.detail});
  }

 private:
  template <class T>
  void stopAfter(const std::string& name, const T& made) {
    if constexpr (requires { irText(made); }) debug::reachPass(debug::When::After, name, 0, before_, [&] { return irText(made); });
    else debug::reachPass(debug::When::After, name, 0, before_);
  }

  Recorder* recorder_;
  record::Id compile_;
  std::function<std::string()> before_;
};

int64_t count(size_t n) { return static_cast<int64_t>(n); }

/// Code of a program's kernels, by position: for the CPU or for a GPU.
struct ProgramCode {
  std::vector<std::shared_ptr<codegen::cpu::CompiledKernel>> cpu;
  std::vector<std::shared_ptr<runtime::gpu::GpuKernel>> gpu;
};

Result<KernelListing> listingOf(codegen::cpu::Jit& jit, const ProgramCode& code, size_t i) {
  if (const auto& kernel = code.gpu[i])
    return KernelListing{kernel->code().architecture, kernel->code().llvmIr, kernel->code().text, kernel->codeBytes(), kernel->compileNs()};
  auto text = jit.text(*code.cpu[i]);
  if (!text) return tl::unexpected(text.error());
  return KernelListing{text->target, std::move(text->llvmIr), std::move(text->assembly), text->codeBytes, text->compileNs};
}

/// `failed` receives why there is no code for a kernel, by position; then there is an error too.
Result<ProgramCode> generateCode(const inductor::Program& program, std::map<int32_t, std::string>& failed) {
  auto jit = processJit();
  if (!jit) return tl::unexpected(jit.error());
  auto& gpu = runtime::gpu::GpuCompiler::instance();
  (*jit)->keepsText = gpu.keepsIr = (Recorder::active() && Recorder::active()->keepsCode()) || debug::armed(debug::Kind::KernelCompile);
  const size_t count = program.kernels.size();
  ProgramCode code{std::vector<std::shared_ptr<codegen::cpu::CompiledKernel>>(count),
                   std::vector<std::shared_ptr<runtime::gpu::GpuKernel>>(count)};
  std::vector<Result<void>> outcomes(count);
  forEachOnAllCores(count, [&](size_t i) {
    auto keep = [&](auto made, auto& place) {
      if (made) place = std::move(*made);
      else outcomes[i] = tl::unexpected(made.error());
    };
    const inductor::Kernel& kernel = program.kernels[i];
    if (debug::armed(debug::Kind::KernelCompile)) stopAtKernel(kernel);
    if (kernel.device.kind == graph::DeviceKind::Cuda) keep(gpu.compile(kernel), code.gpu[i]);
    else keep((*jit)->compile(kernel), code.cpu[i]);
    if (outcomes[i] && debug::armed(debug::Kind::KernelCompile)) stopAtKernel(kernel, [&] { return listingOf(**jit, code, i); });
  });
  for (size_t i = 0; i < count; ++i)
    if (!outcomes[i]) failed.emplace(static_cast<int32_t>(i), outcomes[i].error().text());
  for (const auto& outcome : outcomes)
    if (!outcome) return tl::unexpected(outcome.error());
  return code;
}

/// Makes calls of what kernels without code were to compute. False if there is nothing that could be called instead.
bool callInstead(const std::map<int32_t, std::string>& failed, const inductor::LoweredGraph& lowered, const inductor::Schedule& schedule,
                 inductor::LowerOptions& target) {
  bool added = false;
  for (const inductor::FusionGroup& group : schedule.groups) {
    const auto why = failed.find(group.kernel);
    if (group.kernel < 0 || why == failed.end()) continue;
    for (int32_t operation : group.operations)
      for (graph::NodeId node : lowered.operations[static_cast<size_t>(operation)].origins)
        added |= target.asCalls.emplace(node, why->second).second;
  }
  return added;
}

bool isDeterministic(const CompileOptions& how) { return how.deterministic || at::globalContext().deterministicAlgorithms(); }

/// What there is code for in this process.
inductor::LowerOptions lowerOptions(const CompileOptions& how) {
  inductor::LowerOptions options;
  options.deterministic = isDeterministic(how);
  options.emulatePrecisionCasts = how.emulatePrecisionCasts;
  if (how.backend == Backend::CudaGraphs) {
    options.refusal = [](const graph::Device&) { return std::string("backend cudagraphs generates no kernels"); };
    return options;
  }
  options.refusal = [](const graph::Device& device) -> std::string {
    if (device.kind == graph::DeviceKind::Cpu) return {};
    if (device.kind != graph::DeviceKind::Cuda) return "no code generator for device " + device.str();
    auto target = runtime::gpu::GpuCompiler::instance().targetOf(std::max<int>(0, device.index));
    return target ? std::string() : "no code for " + device.str() + ": " + target.error().text();
  };
  options.hasCode = [eagerRandom = how.fallbackRandom](const graph::Device&, inductor::Op op, graph::DType type) {
    const bool draws = op == inductor::Op::RandUniform || op == inductor::Op::RandNormal || op == inductor::Op::RandInt64;
    return !(draws && eagerRandom) && codegen::gpu::hasDeviceCode(op, type);
  };
  return options;
}

/// As the settings are now: read when scheduling begins, since a debugger may stop before it and change them.
inductor::ScheduleOptions scheduleOptions(const inductor::LowerOptions& target) {
  inductor::ScheduleOptions how;
  how.emulatePrecisionCasts = target.emulatePrecisionCasts;
  how.fuse = compilerConfig().fuse;
  how.maxFusionSize = compilerConfig().maxFusionSize;
  how.rules = fusionRules();
  return how;
}

/// What rules about fusions name in vain: rules hold for every graph of the process, so that is no error.
std::string unknownNames(const inductor::Schedule& schedule) {
  std::string text;
  for (const std::string& name : schedule.unknownNames) text += (text.empty() ? "; fusion rules name nothing here: " : ", ") + name;
  return text;
}

/// The user's line of each kernel of a program, or null: that of the first node it was made from.
std::vector<const graph::SourceLine*> kernelPlaces(const graph::Graph& graph, const inductor::LoweredGraph& lowered,
                                                   const inductor::Schedule& schedule) {
  std::vector<const graph::SourceLine*> places(schedule.program.kernels.size());
  for (const inductor::FusionGroup& group : schedule.groups) {
    if (group.kernel < 0 || places[static_cast<size_t>(group.kernel)]) continue;
    const auto& origins = lowered.operations[static_cast<size_t>(group.operations.front())].origins;
    if (!origins.empty()) places[static_cast<size_t>(group.kernel)] = record::placeOf(graph.node(origins.front()));
  }
  return places;
}

constinit std::atomic<void (*)(const std::string&)> notCompiledListener{nullptr};

std::string graphName(const std::string& name, const char* direction) {
  return std::string("the ") + direction + " graph of " + (name.empty() ? "a function" : name);
}

/// In every session; to the user once for each graph.
void tellLoss(const char* what, const std::string& graph, const std::string& why, const std::string& text) {
  if (Recorder* recorder = Recorder::active()) recorder->loss(what, 1, graph + ": " + why);
  static std::mutex mutex;
  static std::set<std::pair<std::string, std::string>> said;
  {
    std::lock_guard lock(mutex);
    if (!said.emplace(what, graph).second) return;
  }
  if (auto* listener = notCompiledListener.load()) listener(text);
  else TORCH_WARN("fusebox: ", text);
}

/// A lowered graph with its program and the code for it.
struct Generated {
  inductor::LoweredGraph lowered;
  inductor::Schedule schedule;
  ProgramCode code;
};

/// From operators to code. Where a kernel gets no code, its operators are called and the rest is generated again.
Result<Generated> generate(Stages& stages, const graph::Graph& postGrad, inductor::LowerOptions& target, const std::string& graph) {
  for (;;) {
    auto lowered = stages.from(postGrad).run(Phase::Inductor, "lowering", [&] { return inductor::lower(postGrad, target); },
                                             [&](StageTimer& timer, const inductor::LoweredGraph& made) {
                                               timer.nodes(count(postGrad.nodes().size()), count(made.operations.size()));
                                               timer.detail(std::to_string(made.operations.size()) + " operations");
                                             });
    if (!lowered) return tl::unexpected(lowered.error());
    auto schedule = stages.from(*lowered).run(Phase::Inductor, "scheduling", [&] { return inductor::schedule(*lowered, scheduleOptions(target)); },
                                              [&](StageTimer& timer, const inductor::Schedule& made) {
                                                timer.nodes(count(lowered->operations.size()), count(made.groups.size()));
                                                timer.detail(std::to_string(made.groups.size()) + " groups, " +
                                                             std::to_string(made.program.kernels.size()) + " distinct kernels" + unknownNames(made));
                                              });
    if (!schedule) return tl::unexpected(schedule.error());
    std::map<int32_t, std::string> failed;
    auto code = stages.from(*schedule).run(Phase::Codegen, "code generation", [&] { return generateCode(schedule->program, failed); });
    if (code) return Generated{std::move(*lowered), std::move(*schedule), std::move(*code)};
    if (!callInstead(failed, *lowered, *schedule, target)) return tl::unexpected(code.error());
    const std::string& why = failed.begin()->second;
    tellLoss("kernel without code", graph, why,
             "a kernel of " + graph + " has no code, and PyTorch's own kernels run in its place, which is right and slower: " + why + ". Please report it.");
  }
}

/// A traced graph: what runs it operator by operator, and what writes the cache, need it after it has been compiled.
using SharedGraph = std::shared_ptr<const graph::Graph>;

/// What the caller of a graph makes of its inputs and results.
struct Interface {
  size_t firstSaved = std::numeric_limits<size_t>::max();  ///< LowerOptions::firstSaved
  std::vector<inductor::InputWrite> writes;
  std::vector<graph::Symbol> symbols;  ///< whose values calls bring
  bool isCached = false;               ///< the compiled-graph cache is asked first
};

/// Why attention that graph passes have found cannot be lowered, or has no kernel on its device; empty where it can, or there is none.
std::string whyNoAttention(const graph::Graph& graph, const inductor::LowerOptions& target) {
  const auto& nodes = graph.nodes();
  if (std::none_of(nodes.begin(), nodes.end(), [](const graph::Node& n) { return n.op.starts_with("fusebox::attention"); })) return {};
  auto lowered = inductor::lower(graph, target);
  if (!lowered) return lowered.error().text();
  for (const inductor::Operation& operation : lowered->operations) {
    if (!operation.kernel.attention) continue;
    auto device = runtime::gpu::GpuCompiler::instance().targetOf(std::max<int>(0, operation.kernel.device.index));
    if (!device) return device.error().text();
    if (auto ok = codegen::gpu::checkAttention(operation.kernel, *device); !ok) return ok.error().text();
  }
  return {};
}

/// Attention without a kernel stays what it was written as.
Result<graph::Graph> runPasses(const graph::Graph& traced, const inductor::LowerOptions& target, std::vector<inductor::PassLog>& log) {
  std::vector<std::string> skipped = skippedPasses();
  auto made = inductor::runGraphPasses(traced, &log, skipped);
  const std::string why = made ? whyNoAttention(*made, target) : std::string();
  if (why.empty()) return made;
  log.clear();
  skipped.emplace_back("attention");
  made = inductor::runGraphPasses(traced, &log, skipped);
  for (inductor::PassLog& pass : log)
    if (pass.pass == "attention") pass.detail = "left as it is written: " + why;
  return made;
}

/// Why what is compiled now is nobody else's business; empty where it can be kept.
GraphCaching::NoCache whyNoCache(const CompileOptions& options) {
  if (std::string why = cache::whyNoCache(); !why.empty()) return {why, true};
  if (!options.caches.whyNot.empty()) return {options.caches.whyNot, true};
  if (!fusionRules().empty()) return {"fusions are forbidden or forced"};
  if (!skippedPasses().empty()) return {"graph passes are left out"};
  using debug::bit, debug::Kind;
  if (debug::armedAny(bit(Kind::Pass) | bit(Kind::Fusion) | bit(Kind::KernelCompile))) return {"the debugger stops in the compiler"};
  return {};
}

GraphKeyFacts keyFacts(const char* direction, const CompileOptions& options, const Interface& interface) {
  const CompilerConfig& config = compilerConfig();
  return {direction,
          fmt::format("backend {}, fuse {}, max_fusion_size {}, fallback_random {}, max_autotune {}, emulate_precision_casts {}, deterministic {}",
                      options.backend == Backend::CudaGraphs ? "cudagraphs" : "inductor", config.fuse, config.maxFusionSize,
                      options.fallbackRandom, options.maxAutotune, options.emulatePrecisionCasts, isDeterministic(options)),
          interface.firstSaved, interface.writes, interface.symbols,
          options.stored ? std::string() : options.caches.keyTag.value_or(cache::cacheKeyTag())};
}

/// A compiled graph as calls and the session want it, wherever it comes from.
std::shared_ptr<CompiledRegion> finished(std::shared_ptr<CompiledRegion> region, const CompileOptions& options, const record::GraphSnapshot& source,
                                         const Interface& interface) {
  region->prepare(interface.symbols, options.graphs.use ? std::optional(std::pair(options.graphs.recordLimit, options.graphs.orError)) : std::nullopt);
  const inductor::Program& program = region->program().program();
  ++graphCount;
  kernelCount += count(program.kernels.size());
  for (const inductor::Step& step : program.steps) externCount += std::holds_alternative<inductor::ExternStep>(step);
  if (Recorder* recorder = Recorder::active()) region->describe(recorder, options.compile, source);
  return region;
}

/// The whole of TorchInductor's role, on one screen.
Result<std::shared_ptr<CompiledRegion>> compileGraph(const SharedGraph& shared, const std::vector<at::Tensor>& constants,
                                                     const char* direction, const CompileOptions& options,
                                                     const record::GraphSnapshot& source, const Interface& interface = {}) {
  const ForkGate::Inside inside;
  const graph::Graph& traced = *shared;
  std::optional<GraphCaching> caching;
  if (interface.isCached)
    caching.emplace(shared, keyFacts(direction, options, interface), options.stored ? GraphCaching::NoCache() : whyNoCache(options),
                    options.caches.isShared.value_or(cache::wantsRemoteCache()), options.compile, options.name, options.stored);
  if (auto kept = caching ? caching->load(constants) : nullptr) return finished(std::move(kept), options, source, interface);
  if (options.stored && options.stored->isComplete()) return fail(ErrorCode::NotFound, caching ? caching->whyMissed() : "the file has no code for it");

  const int64_t start = nowNs();
  Stages stages(options.compile);
  inductor::LowerOptions target = lowerOptions(options);
  target.firstSaved = interface.firstSaved;
  target.hasOtherHalf = direction != std::string_view("inference");
  target.inputWrites = interface.writes;
  std::vector<inductor::PassLog> passes;
  auto postGrad = stages.from(traced).run(Phase::Inductor, "graph passes", [&] { return runPasses(traced, target, passes); },
                             [&](StageTimer& timer, const graph::Graph& made) {
                               timer.nodes(count(traced.nodes().size()), count(made.nodes().size()));
                               stages.passes(passes);
                             });
  if (!postGrad) return tl::unexpected(postGrad.error());

  auto generated = generate(stages, *postGrad, target, graphName(options.name, direction));
  if (!generated) return tl::unexpected(generated.error());
  inductor::LoweredGraph* lowered = &generated->lowered;
  inductor::Schedule* schedule = &generated->schedule;
  ProgramCode* code = &generated->code;

  if (std::any_of(code->gpu.begin(), code->gpu.end(), [](const auto& kernel) { return kernel != nullptr; })) {
    auto tuned = stages.run(Phase::Codegen, "launch shapes", [&] {
      return tuneKernels(schedule->program, code->gpu, options.maxAutotune ? kTunedBytesMaxAutotune : kTunedBytes,
                         isDeterministic(options), options.compile, kernelPlaces(*postGrad, *lowered, *schedule));
    }, [](StageTimer& timer, int timed) { timer.detail(std::to_string(timed) + " kernels timed"); });
    if (!tuned) return tl::unexpected(tuned.error());
  }

  auto program = stages.run(Phase::Codegen, "assembly", [&] {
    return runtime::CompiledGraph::create(schedule->program, std::move(code->cpu), constants, {}, std::move(code->gpu));
  });
  if (!program) return tl::unexpected(program.error());
  auto region = std::make_shared<CompiledRegion>(GraphForms{std::move(*postGrad), std::move(*lowered), std::move(*schedule)},
                                                 std::move(*program), options.name, direction);
  if (caching) caching->keep(region, nowNs() - start);
  return finished(std::move(region), options, source, interface);
}

/// Graphs that were rewritten predict the memory layouts of generated code, and gradients are compiled for these.
void layAsPredicted(const graph::Graph& traced, const graph::SymbolValues& symbols, std::vector<at::Tensor>& results) {
  const graph::ArgumentList& outputs = traced.output()->args;
  for (size_t i = 0; i < results.size() && i < outputs.size(); ++i) {
    const auto* value = outputs[i].as<graph::ValueRef>();
    if (!value || !results[i].defined() || traced.meta(*value).kind != graph::OutputMeta::Kind::Tensor) continue;
    const std::vector<int64_t> strides = symbols(traced.meta(*value).tensor.strides);
    bool differs = false;
    for (size_t d = 0; d < strides.size(); ++d)
      differs = differs || (results[i].size(static_cast<int64_t>(d)) != 1 && results[i].stride(static_cast<int64_t>(d)) != strides[d]);
    if (differs && results[i].numel() > 0) results[i] = runtime::withStrides(results[i], strides);
  }
}

/// Operator by operator: slower, never different.
aot::Executor eagerExecutor(const SharedGraph& traced, const std::vector<at::Tensor>& constants, const std::vector<graph::Symbol>& symbols) {
  return [traced, constants, symbols](c10::ArrayRef<at::Tensor> inputs, std::span<const int64_t> symbolValues) {
    auto results = runtime::runEager(*traced, inputs, constants, {}, {symbols, symbolValues});
    TORCH_CHECK(results.has_value(), "fusebox cannot run a traced graph: ", results.error().text());
    layAsPredicted(*traced, {symbols, symbolValues}, *results);
    return std::move(*results);
  };
}

aot::ForwardExecutor withLayouts(std::shared_ptr<const aot::AotModule> module, aot::ForwardExecutor run) {
  if (!module->backward) return run;
  return [module, run = std::move(run)](c10::ArrayRef<at::Tensor> inputs, std::span<int64_t> values) {
    auto results = run(inputs, values);
    layAsPredicted(module->forward, {module->symbols, values}, results);
    return results;
  };
}

/// Said once for each frame, and in every session: a graph that runs operator by operator is right, and slow.
void tellNotCompiled(const std::string& name, const char* direction, const std::string& why) {
  const std::string graph = graphName(name, direction);
  tellLoss("graph not compiled", graph, why,
           graph + " is not compiled and runs operator by operator, which is right and slow: " + why +
               ". Call that operator outside of the compiled function, and please report it.");
}

/// What does not fit what was compiled is left to the frame from then on: the program may have read sizes off the prediction.
aot::Executor forwardExecutor(std::shared_ptr<CompiledRegion> region) {
  struct Misfit {
    std::mutex mutex;
    std::optional<runtime::Mispredicted> why;
  };
  return [region, misfit = std::make_shared<Misfit>()](c10::ArrayRef<at::Tensor> inputs, std::span<const int64_t> symbolValues) {
    {
      std::lock_guard lock(misfit->mutex);
      if (misfit->why) throw runtime::Mispredicted(*misfit->why);
    }
    try {
      return region->run(inputs, symbolValues);
    } catch (const runtime::GraphsRefused&) {
      throw aot::HookError{std::current_exception()};  // the program asked to be told
    } catch (const runtime::ChangedInputs& changed) {
      throw aot::HookError{changed.error};  // running it again would change them twice
    } catch (const runtime::Mispredicted& error) {
      std::lock_guard lock(misfit->mutex);
      misfit->why = error;
      throw;
    }
  };
}

/// The autograd engine hands errors to the program itself, so that errors of the compiler end here.
aot::Executor backwardExecutor(std::shared_ptr<CompiledRegion> region, const SharedGraph& traced, const std::vector<at::Tensor>& constants,
                               const std::vector<graph::Symbol>& symbols, const std::string& name) {
  return [region, name, eager = eagerExecutor(traced, constants, symbols)](c10::ArrayRef<at::Tensor> inputs,
                                                                           std::span<const int64_t> symbolValues) {
    runtime::EffectLog effects;
    try {
      return region->run(inputs, symbolValues);
    } catch (const runtime::Mispredicted& error) {
      tellNotCompiled(name, "backward", error.what());
      runtime::keepForReplay(effects.take());
      const runtime::EffectReplay seen;
      return eager(inputs, symbolValues);
    }
  };
}

/// Of torch._inductor.config.nan_asserts.
void requireFinite(c10::ArrayRef<at::Tensor> tensors, const char* what, const std::string& graph) {
  const at::AutoDispatchBelowADInplaceOrView belowAutograd;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor& t = tensors[i];
    if (!t.defined() || !(t.is_floating_point() || t.is_complex())) continue;
    TORCH_CHECK(at::isfinite(t).all().item<bool>(), "nan_asserts: ", what, " ", i, " of ", graph, " has NaN or infinite elements");
  }
}

/// A forward graph's failures are told by running it again in eager; this one is the program's to see.
aot::Executor withNanAsserts(aot::Executor run, const std::string& name, bool isForward) {
  return [run = std::move(run), name, isForward](c10::ArrayRef<at::Tensor> inputs, std::span<const int64_t> symbolValues) {
    auto check = [&](c10::ArrayRef<at::Tensor> tensors, const char* what) {
      try {
        requireFinite(tensors, what, name);
      } catch (...) {
        if (isForward) throw aot::HookError{std::current_exception()};
        throw;
      }
    };
    check(inputs, "input");
    auto results = run(inputs, symbolValues);
    check(results, "result");
    return results;
  };
}

/// `made` receives the compiled region, if there is one.
aot::Executor plainExecutor(const SharedGraph& traced, const std::vector<at::Tensor>& constants, const char* direction,
                            const CompileOptions& options, const record::GraphSnapshot& source, const Interface& interface,
                            std::shared_ptr<CompiledRegion>* made) {
  if (options.backend == Backend::AotEager) return eagerExecutor(traced, constants, interface.symbols);
  auto region = compileGraph(traced, constants, direction, options, source, interface);
  if (region && made) *made = *region;
  if (!region) {
    if (options.fullgraph) throw std::runtime_error(std::string("the ") + direction + " graph cannot be compiled: " + region.error().text());
    tellNotCompiled(options.name, direction, region.error().text());
    return eagerExecutor(traced, constants, interface.symbols);
  }
  const bool isBackward = direction == std::string_view("backward");
  return isBackward ? backwardExecutor(*region, traced, constants, interface.symbols, options.name) : forwardExecutor(*region);
}

aot::Executor makeExecutor(const SharedGraph& traced, const std::vector<at::Tensor>& constants, const char* direction,
                           const CompileOptions& options, const record::GraphSnapshot& source,
                           const Interface& interface = {}, std::shared_ptr<CompiledRegion>* made = nullptr) {
  aot::Executor run = plainExecutor(traced, constants, direction, options, source, interface, made);
  return options.nanAsserts ? withNanAsserts(std::move(run), options.name, direction != std::string_view("backward")) : run;
}

/// Position of the first forward result that only backward reads.
size_t firstSaved(const aot::AotModule& module) {
  int32_t seen = -1;
  for (const auto& mutation : module.mutations) seen = std::max(seen, mutation.result);
  for (const auto& output : module.outputs) {
    using Kind = aot::OutputPlan::Kind;
    if (output.kind == Kind::Graph || output.kind == Kind::ResultView) seen = std::max(seen, output.index);
  }
  for (int32_t tangent : module.tangents) seen = std::max(seen, tangent);
  return static_cast<size_t>(seen + 1);
}

/// Why the new value of an input has to be a tensor of its own; empty: it need not.
std::string whyApart(const aot::AotModule& module, const aot::MutationPlan& write) {
  if (write.differentiable) return "its new value has a gradient";
  if (write.metadata) return "its sizes or strides change as well";
  const auto isResult = [&](int32_t index) { return index == write.result; };
  for (const auto& saved : module.saved)
    if (saved.kind == aot::SavedPlan::Kind::Result && (isResult(saved.index) || isResult(saved.aliasedResult))) return "its new value is kept for backward";
  for (const auto& output : module.outputs) {
    using Kind = aot::OutputPlan::Kind;
    if ((output.kind == Kind::Graph || output.kind == Kind::ResultView) && isResult(output.index)) return "its new value is handed out as a tensor of its own";
  }
  if (std::any_of(module.tangents.begin(), module.tangents.end(), isResult)) return "its new value has a gradient";
  return {};
}

std::vector<inductor::InputWrite> inputWrites(const aot::AotModule& module) {
  std::vector<inductor::InputWrite> writes;
  for (const auto& write : module.mutations)
    if (write.result >= 0) writes.push_back({write.input, static_cast<size_t>(write.result), whyApart(module, write)});
  return writes;
}

/// How the tensors that `module` saves lie in memory after the forward graph has run as `region`.
std::vector<std::optional<graph::TensorMeta>> savedLayouts(const aot::AotModule& module, const CompiledRegion& region) {
  std::vector<std::optional<graph::TensorMeta>> made(module.saved.size());
  for (size_t i = 0; i < made.size(); ++i)
    if (module.saved[i].kind == aot::SavedPlan::Kind::Result) made[i] = region.results()[static_cast<size_t>(module.saved[i].index)];
  return made;
}

}  // namespace

void tellNotCompiledTo(void (*listener)(const std::string& text)) { notCompiledListener = listener; }

CompilerConfig& compilerConfig() {
  static CompilerConfig config = [] {
    CompilerConfig c;
    if (const char* target = std::getenv("FUSEBOX_TARGET")) c.target = target;
    return c;
  }();
  return config;
}

std::shared_ptr<aot::AotFunction> compileModule(std::shared_ptr<const aot::AotModule> module, const CompileOptions& options) {
  for (size_t i = 0; i < module->symbols.size() && i < module->hints.size(); ++i) graph::setHint(module->symbols[i], module->hints[i]);
  const TracedGraphs traced = recordTraced(*module, options.compile, options.name);
  std::shared_ptr<CompiledRegion> region;
  const char* direction = module->backward ? "forward" : "inference";
  aot::ForwardExecutor forward;
  if (module->dataSizes.empty())
    forward = makeExecutor(SharedGraph(module, &module->forward), module->constants, direction, options, traced.forward,
                           {firstSaved(*module), inputWrites(*module), module->symbols, true}, &region);
  else
    forward = withLayouts(module, stagedExecutor(module, [&](const graph::Graph& graph, const std::vector<graph::Symbol>& symbols, size_t part, size_t parts) {
      CompileOptions how = options;
      how.name = fmt::format("{} (part {} of {})", options.name, part, parts);
      // What an earlier part wrote into an input could not be taken back where a later one finds that the data do not fit.
      return makeExecutor(std::make_shared<const graph::Graph>(graph), module->constants, direction, how, traced.forward, {.writes = {}, .symbols = symbols, .isCached = true});
    }, options.compile));
  const auto laid = region ? savedLayouts(*module, *region) : std::vector<std::optional<graph::TensorMeta>>();
  auto compileBackward = [options, traced, laid](const aot::AotModule& m, const graph::Graph& gradients) -> Result<aot::Executor> {
    CompileOptions backward = options;
    Recorder* recorder = Recorder::active();
    if (recorder) {
      record::CompileRecord row;
      row.kind = "backward";
      row.logs = options.logs;
      if (recorder == traced.recorder) row.parent = options.compile;
      static constexpr const char* kNames[] = {"inductor", "cudagraphs", "aot_eager"};
      row.backend = kNames[static_cast<size_t>(options.backend)];
      backward.compile = recorder->beginCompile(std::move(row));
    }
    const bool isRecorded = recorder == traced.recorder && &gradients == &*m.backward;
    aot::Executor executor = makeExecutor(std::make_shared<const graph::Graph>(inductor::withSavedLayouts(gradients, laid)), m.constants, "backward", backward,
                                          isRecorded ? traced.backward : record::GraphSnapshot{}, {.writes = {}, .symbols = m.symbols, .isCached = true});
    if (recorder) recorder->endCompile(backward.compile);
    return executor;
  };
  return std::make_shared<aot::AotFunction>(std::move(module), std::move(forward), std::move(compileBackward), options.buckets);
}

Result<std::shared_ptr<CompiledRegion>> compileAlone(const graph::Graph& traced, const std::vector<at::Tensor>& constants,
                                                     const char* direction, const CompileOptions& options,
                                                     const record::GraphSnapshot& source) {
  return compileGraph(std::make_shared<const graph::Graph>(traced), constants, direction, options, source);
}

aot::Executor executorAlone(graph::Graph traced, const std::vector<graph::Symbol>& symbols, const CompileOptions& options) {
  return makeExecutor(std::make_shared<const graph::Graph>(std::move(traced)), {}, "inference", options, {}, {.writes = {}, .symbols = symbols, .isCached = true});
}

namespace {
[[maybe_unused]] const bool kTellsOfCode = (trace::setGenerated(&inductor::hasCode), registerLoopOperator(), true);
}  // namespace

aot::CompilerTraits compilerTraits(const CompileOptions& options) {
  if (options.backend != Backend::Inductor) return {};
  const std::vector<std::string> skipped = skippedPasses();
  const auto isSkipped = [&](const char* pass) { return std::find(skipped.begin(), skipped.end(), pass) != skipped.end(); };
  const inductor::JointRewrites how{.sumsOfProducts = !isSkipped("sums_of_products"),
                                    .narrowProducts = !isSkipped("narrow_products"),
                                    .recomputeAttention = !isSkipped("attention"),
                                    .redrawMasks = !options.fallbackRandom};
  aot::CompilerTraits traits{nullptr, inductor::isGenerated};
  if (!isSkipped("decompose"))
    traits.rewrite = [how](const graph::Graph& joint, aot::ValueMap& moved) { return inductor::decomposeJoint(joint, moved, how); };
  return traits;
}

record::GraphSnapshot describeModule(const aot::AotModule& module, record::Id compile, const std::string& name) {
  return recordTraced(module, compile, name).forward;
}

void drainCompiler() {
  if (auto compiler = startedJit()) compiler->drain();
}

void stopCompiler() {
  if (auto compiler = startedJit()) compiler->stop();
  GraphCache::instance().flush();
}

CompileCounters compileCounters() { return {graphCount, kernelCount, externCount, failedStages}; }

}  // namespace fusebox
