#pragma once

#include <string>
#include <vector>

#include "engine/graph/graph.h"

/// What is to be known of this compiler where a graph with its gradients is cut into forward and backward.
namespace fusebox::inductor {

/// What else happens to a joint graph.
struct JointRewrites {
  bool sumsOfProducts = true;      ///< see passes/pass_sums_of_products.cpp
  bool narrowProducts = true;      ///< so that what is kept for products in float32 is the 16 bits that they are of
  bool recomputeAttention = true;  ///< see passes/attention_gradient.h
  bool redrawMasks = false;        ///< see passes/redraw_masks.cpp: where random numbers are generated code's
};

/// The joint graph with those operators written as simpler ones of which backward needs the parts rather than the result
/// (Decomposition::beforeCut). `moved`: where its values are now, by node and output; Provenance::from names the nodes of `joint`.
/// Its results, if it has any, are left out.
graph::Graph decomposeJoint(const graph::Graph& joint, std::vector<std::vector<graph::ValueRef>>& moved, const JointRewrites& how = {});

/// Whether generated loops can compute a call, of types and on devices that there is code for.
bool isGenerated(const graph::Node& node);
/// The same of an operator by its name.
bool hasCode(const std::string& op);

}  // namespace fusebox::inductor
