#pragma once

#include <optional>
#include <vector>

#include "engine/inductor/ir/lowered_graph.h"

namespace fusebox::inductor {

/// `gradients`, where the leading placeholders (tensors saved by the forward graph) lie in memory as `saved` says, by position; nullopt, and
/// those that have gaps in the trace, stay as traced. A copy in the layout of the trace stands behind each that changed, so that everything else in the graph
/// remains true; lowering makes nothing of such copies.
graph::Graph withSavedLayouts(const graph::Graph& gradients, const std::vector<std::optional<graph::TensorMeta>>& saved);

}  // namespace fusebox::inductor
