#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/cache/cache_settings.h"
#include "engine/aot/aot_function.h"
#include "engine/record/recorder.h"
#include "engine/support/result.h"

namespace fusebox {

class StoredGraphs;

/// What turns captured graphs into something that runs.
enum class Backend : uint8_t {
  Inductor,  ///< fused kernels by our own code generator
  CudaGraphs,  ///< every operator as it is, in CUDA graphs: torch.compile's "cudagraphs"
  AotEager,  ///< the traced ATen graph, operator by operator: the reference, and the way out when a stage fails
};

/// Settings of the process; read when a graph is compiled. `target` and `background` are read once, with the first kernel.
struct CompilerConfig {
  std::string target = "host";  ///< "host", "avx512", "avx2" or "baseline"
  bool background = true;       ///< compile the optimised tier on a background thread
  bool fuse = true;
  int maxFusionSize = 64;
};
CompilerConfig& compilerConfig();

/// CUDA graphs; the settings of torch._inductor.config.triton with the same names.
struct GraphOptions {
  bool use = false;       ///< cudagraphs
  int recordLimit = 128;  ///< cudagraph_unexpected_rerecord_limit
  bool orError = false;   ///< cudagraph_or_error
  bool operator==(const GraphOptions&) const = default;
};

struct CompileOptions {
  Backend backend = Backend::Inductor;
  GraphOptions graphs;
  bool fallbackRandom = false;  ///< torch._inductor.config.fallback_random: random numbers are eager's everywhere
  bool maxAutotune = false;     ///< torch._inductor.config.max_autotune
  bool emulatePrecisionCasts = false;  ///< torch._inductor.config.emulate_precision_casts: 16-bit floats are rounded after every operator
  bool nanAsserts = false;      ///< torch._inductor.config.nan_asserts: a run with NaN or infinities in its inputs or results raises
  bool fullgraph = false;       ///< a graph that cannot be compiled is an error, instead of running operator by operator
  bool deterministic = false;   ///< torch._inductor.config.deterministic: as torch.use_deterministic_algorithms, for generated code
  aot::GradientBuckets buckets;  ///< of a reducer that waits for the gradients
  cache::CacheWishes caches;
  std::shared_ptr<StoredGraphs> stored;  ///< of a function that is compiled ahead of time: in the cache's place
  record::Id compile = 0;  ///< of the frame's entry in the active recording; 0 when nothing is recorded
  std::string name;        ///< of the frame, for people
  int logs = 0;            ///< record::CompileRecord::logs
};

/// Rows of an entry that was compiled before the active recording started: its traced graphs. Returns the forward one.
record::GraphSnapshot describeModule(const aot::AotModule& module, record::Id compile, const std::string& name);

/// What `backend` will do with a graph that aot::finishTrace() cuts apart.
aot::CompilerTraits compilerTraits(const CompileOptions& options);

/// Compiles a traced region: the forward graph now, the backward graph when the first gradient arrives. A stage that fails is
/// recorded and told, and the graph runs operator by operator instead, so that an error of the compiler never becomes the program's;
/// under `fullgraph` std::runtime_error is thrown.
std::shared_ptr<aot::AotFunction> compileModule(std::shared_ptr<const aot::AotModule> module, const CompileOptions& options);

/// Who is told, in a sentence, that a graph is not compiled: on any thread, without the GIL. Standard error while nobody is.
void tellNotCompiledTo(void (*listener)(const std::string& text));

/// Waits until the background tier of code generation is idle (benchmarks, end of a recording).
void drainCompiler();
/// Ends the background tier for good: kernels keep the code they have. Belongs before exit() (see Jit::stop).
void stopCompiler();

/// Counters of this process since the start, for `fusebox.counters()`.
struct CompileCounters {
  int64_t graphs = 0, kernels = 0, externCalls = 0, failedStages = 0;
};
CompileCounters compileCounters();

}  // namespace fusebox
