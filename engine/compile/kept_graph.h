#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/codegen/cpu/jit.h"
#include "engine/graph/graph.h"
#include "engine/inductor/ir/lowered_graph.h"
#include "engine/runtime/gpu/gpu_kernel.h"

/// The contents of an entry of the compiled-graph cache.
namespace fusebox {

/// Intermediate forms of a compiled graph: what a session shows.
struct GraphForms {
  graph::Graph postGrad;
  inductor::LoweredGraph lowered;
  inductor::Schedule schedule;
};

/// What a compiled graph is made of again without compiling.
struct KeptGraph {
  inductor::Program program;
  std::vector<codegen::cpu::KernelImage> code;            ///< by kernel of the program; empty where `gpuCode` has it
  std::vector<std::optional<runtime::gpu::GpuKernelImage>> gpuCode;  ///< likewise
  std::vector<std::optional<graph::TensorMeta>> results;  ///< how its results lie in memory
  std::string forms;                                      ///< for readForms()
};

/// `symbols`: those whose values calls bring, for writer and reader in the same order.
std::string writeKeptGraph(const KeptGraph& graph, const std::vector<graph::Symbol>& symbols);
/// Corrupt where it is not what this build writes.
Result<KeptGraph> readKeptGraph(std::string_view payload, const std::vector<graph::Symbol>& symbols);

/// Without the program itself, which is kept once. `traced`: the graph that was compiled; lines of the user's program
/// are taken from it.
std::string writeForms(const GraphForms& forms, const graph::Graph& traced, const std::vector<graph::Symbol>& symbols);
Result<GraphForms> readForms(std::string_view bytes, const graph::Graph& traced, const inductor::Program& program,
                             const std::vector<graph::Symbol>& symbols);

}  // namespace fusebox
