#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/aot/aot_module.h"

namespace fusebox::aot {

/// The gradients of a module as a function of its inputs and tangents, so that they can be differentiated again. What backward
/// keeps is computed anew from the inputs, except for random values, which were drawn once.
struct SecondOrder {
  /// Where a placeholder of `graph` comes from: a real input, a tensor kept for backward, or a tangent, each by position.
  struct Feed {
    enum class Kind : uint8_t { Input, Saved, Tangent } kind = Kind::Input;
    int32_t index = -1;
  };
  graph::Graph graph;         ///< results: one for every entry of AotModule::gradInputs
  std::vector<Feed> feeds;    ///< in the order of the placeholders
  std::string refusal;        ///< why there is no such graph; empty: there is
};

SecondOrder makeSecondOrder(const AotModule& module);

}  // namespace fusebox::aot
