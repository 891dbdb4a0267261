#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/debug/checkpoint.h"
#include "engine/graph/graph.h"
#include "engine/inductor/ir/lowered_graph.h"
#include "engine/support/result.h"

/// Where a debugger can stop the pipeline, and what it is shown there.
namespace fusebox {

/// Intermediate forms as text, for `ir` at a stop before or after a stage.
std::string irText(const graph::Graph& graph);
std::string irText(const inductor::LoweredGraph& lowered);
std::string irText(const inductor::Schedule& schedule);

/// "graph_passes": a stage's name as breakpoints name it.
std::string stopName(const char* stage);

/// Code that was generated for a kernel, as far as it is kept.
struct KernelListing {
  std::string target, llvmIr, assembly;
  int64_t codeBytes = 0, compileNs = 0;
};
/// Before (`listing` empty) or after a kernel's compilation.
void stopAtKernel(const inductor::Kernel& kernel, const std::function<Result<KernelListing>()>& listing = {});

}  // namespace fusebox
