#pragma once

#include <cstdint>
#include <vector>

#include "engine/graph/graph.h"

namespace fusebox::aot {

/// How many bytes of gradients are awaited before others are told of them together: DistributedDataParallel's buckets. None: 0.
struct GradientBuckets {
  int64_t first = 0, others = 0;
  bool operator==(const GradientBuckets&) const = default;
};

/// What is computed backward between two moments at which gradients are handed on.
struct BackwardStage {
  graph::Graph graph;              ///< placeholders: those of the whole graph, then `received`; results: `gradients`, then `handedOn`
  std::vector<int32_t> gradients;  ///< results of the whole graph, ascending; each is in one stage
  std::vector<size_t> received;    ///< slots of values that earlier stages computed
  std::vector<size_t> handedOn;    ///< slots of values that later stages read
};

struct BackwardStages {
  std::vector<BackwardStage> stages;
  size_t slots = 0;
};

/// `backward` (AotModule::backward) in stages that each fill a bucket, in the order in which it computes; one where a single bucket has room for all.
BackwardStages cutAtBuckets(const graph::Graph& backward, GradientBuckets buckets);

}  // namespace fusebox::aot
