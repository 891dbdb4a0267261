#pragma once

#include <optional>

#include "engine/inductor/passes/passes.h"

namespace fusebox::inductor {

/// Has backward compute the scores of attention again, from the query, the key and the logarithm of the sum of each
/// row's exponentials, instead of reading its weights. Only where the gradients are one kernel then. `joint` has
/// results; those of `moved` are as in decomposeJoint(). Empty: there is none.
std::optional<graph::Graph> recomputeAttention(const graph::Graph& joint,
                                               std::vector<std::vector<graph::ValueRef>>& moved);

/// Gradients of attention: query @ key and gradient @ value, of which all elements by themselves are the operands of up
/// to three products, and read by nothing else. They become one kernel.
PassResult fuseAttentionGradients(const graph::Graph& graph);
/// Those among the backward nodes of a joint graph, by the exponentials of their scores.
std::vector<graph::NodeId> attentionGradients(const graph::Graph& graph, const std::vector<bool>& live);

}  // namespace fusebox::inductor
