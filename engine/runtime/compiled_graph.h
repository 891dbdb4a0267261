#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include "engine/codegen/cpu/jit.h"
#include "engine/inductor/ir/program.h"
#include "engine/runtime/gpu/gpu_kernel.h"
#include "engine/runtime/launch_sink.h"
#include "engine/support/result.h"

namespace fusebox::runtime {

struct GraphListener;
struct RuntimePlan;
class Frame;
class GraphTree;

/// An operator gave something else than its shape function said, so that the rest of the program does not fit it.
struct Mispredicted : std::runtime_error {
  Mispredicted(std::string which, const std::string& what) : std::runtime_error(what), op(std::move(which)) {}
  std::string op;  ///< "aten::_embedding_bag"
};

/// A run failed when inputs had been changed already, so that the graph's operators must not be run again: `error` is the program's.
struct ChangedInputs {
  std::exception_ptr error;
};

/// A compiled graph ready to run: program, code and constants. Needs neither Python nor the GIL. Thread-safe: calls may run at
/// once on several threads, and an operator may call back into the same graph.
class CompiledGraph {
 public:
  /// `kernels[i]` is the code of `program.kernels[i]`, or null where `gpuKernels[i]` is; `constants` and `generators` are the captured
  /// graph's, by index. Fails when an operator is missing or an argument does not fit its schema.
  static Result<std::shared_ptr<CompiledGraph>> create(inductor::Program program,
                                                       std::vector<std::shared_ptr<codegen::cpu::CompiledKernel>> kernels,
                                                       std::vector<at::Tensor> constants,
                                                       std::vector<at::Generator> generators = {},
                                                       std::vector<std::shared_ptr<gpu::GpuKernel>> gpuKernels = {});
  ~CompiledGraph();

  /// Carries out the program. `inputs` must have the sizes, strides, dtypes and devices that it was compiled for: checking is
  /// the guards' business. Results that are not tensors (None, integers) are undefined tensors. An operator's exception passes
  /// through after everything taken has been given back.
  /// Throws ChangedInputs where an operator failed after such changes.
  /// `symbolValues`: in the order of setSymbols(). A program with symbols whose values nobody gives reads them off its inputs.
  std::vector<at::Tensor> run(c10::ArrayRef<at::Tensor> inputs, std::span<const int64_t> symbolValues = {});

  /// The symbols whose values calls bring. Before the first run.
  void setSymbols(std::vector<graph::Symbol> symbols);

  /// Replays CUDA graphs from now on, where they can be recorded: for each set of symbols' values of its own, up to a limit. Before the
  /// first run.
  void useGraphs(int recordLimit, bool orError);
  /// Told of recordings and replays, and at once of the recordings there are; null for none.
  void setGraphListener(GraphListener* listener);

  /// Records launches from the next call on; null for none.
  void setSink(LaunchSink* sink) { sink_.store(sink, std::memory_order_release); }

  const inductor::Program& program() const;
  const std::vector<std::shared_ptr<codegen::cpu::CompiledKernel>>& kernels() const;
  const std::vector<std::shared_ptr<gpu::GpuKernel>>& gpuKernels() const;

 private:
  /// The program for one set of its symbols' values, with what is kept between calls; the only one where it has no symbols.
  struct Sized {
    ~Sized();
    std::vector<int64_t> values;
    std::shared_ptr<const RuntimePlan> plan;
    std::unique_ptr<GraphTree> tree;      ///< null: no CUDA graphs asked for, or no more of them
    std::atomic<bool> isProven{false};    ///< it has run once: operators give what was predicted
    std::atomic<Frame*> spare{nullptr};   ///< one idle frame, enough for calls from one thread
  };

  CompiledGraph();
  void findSymbols();
  std::vector<int64_t> valuesOf(c10::ArrayRef<at::Tensor> inputs, std::span<const int64_t> symbolValues) const;
  std::shared_ptr<Sized> sizedFor(c10::ArrayRef<at::Tensor> inputs, std::span<const int64_t> symbolValues);
  std::shared_ptr<Sized> make(std::vector<int64_t> values);
  std::vector<at::Tensor> runPlainly(Sized& sized, c10::ArrayRef<at::Tensor> inputs);

  std::shared_ptr<RuntimePlan> plan_;      ///< as it was built: only run where it is static
  std::vector<graph::Symbol> order_;       ///< of the values that calls bring
  std::vector<graph::Symbol> used_;        ///< in the program
  std::vector<size_t> places_;             ///< of used_ in order_, where all are there
  std::shared_ptr<Sized> only_;            ///< of a program without symbols
  std::mutex mutex_;                       ///< of sized_ and recorded_
  std::vector<std::shared_ptr<Sized>> sized_;  ///< most recently used first
  struct Graphs;
  std::unique_ptr<Graphs> graphs_;         ///< null: no CUDA graphs asked for
  std::atomic<LaunchSink*> sink_{nullptr};
  std::atomic<GraphListener*> graphListener_{nullptr};
};

}  // namespace fusebox::runtime
