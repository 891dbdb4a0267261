#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/cache/cache_key.h"
#include "engine/codegen/cpu/jit.h"
#include "engine/graph/graph.h"
#include "engine/inductor/ir/lowered_graph.h"

namespace fusebox {

/// What compiling a graph depends on, beyond the graph itself.
struct GraphKeyFacts {
  const char* direction = "inference";
  std::string options;    ///< "fuse=1 …"
  size_t firstSaved = 0;  ///< LowerOptions::firstSaved
  std::vector<inductor::InputWrite> writes;
  std::vector<graph::Symbol> symbols;  ///< whose values calls bring
  std::string keyTag;                  ///< torch.compiler.config.cache_key_tag
};

/// The components that no code is good without, whatever the graph.
cache::CacheKey platformKey(const codegen::cpu::TargetFeatures& cpu);

/// The key of a graph's code. Constants count by type and size alone, since programs read them when they run. `whyNot`
/// receives why what is made of this graph cannot be kept; else it stays empty.
cache::CacheKey graphKey(const graph::Graph& traced, const GraphKeyFacts& facts,
                         const codegen::cpu::TargetFeatures& cpu, std::string& whyNot);

}  // namespace fusebox
