#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/aot/gradient_graph.h"

namespace fusebox::aot {

/// Gradients of a module as a function of its inputs and of the given gradients, so that they can be differentiated again. What backward
/// keeps is computed anew from the inputs, except for random values, which were drawn once, and those that have no history.
struct SecondOrder {
  /// Where a placeholder of `graph` comes from: a real input, a tensor kept for backward, or a tangent, each by position.
  struct Feed {
    enum class Kind : uint8_t { Input, Saved, Tangent } kind = Kind::Input;
    int32_t index = -1;
  };
  graph::Graph graph;         ///< results: those of gradientGraph()
  std::vector<Feed> feeds;    ///< in the order of the placeholders
  std::vector<graph::ValueRef> given;  ///< what those are in AotModule::joint
  std::string refusal;        ///< why there is no such graph; empty: there is
};

SecondOrder makeSecondOrder(const AotModule& module, Gradients which);
/// Its graph for one pass (graphOfPass), with what functions in it need.
graph::Graph graphOfPass(const SecondOrder& second, const AotModule& module, const Pass& pass);

/// For every input of the module, whether such graphs read it.
std::vector<bool> inputsOfSecondOrder(const AotModule& module);

}  // namespace fusebox::aot
