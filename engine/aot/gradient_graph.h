#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <vector>

#include "engine/aot/aot_module.h"

namespace fusebox::aot {

/// What is computed backward from the gradients of results. All are graphs with the same placeholders: the kept tensors, then one
/// gradient for every entry of AotModule::tangents.
enum class Gradients : uint8_t {
  OfInputs,       ///< gradients of the inputs, from what was given for each result: AotModule::backward
  OfInputsCut,    ///< the same, where inner results are given their whole gradient
  OfInnerResults  ///< what arrives at each entry of AotModule::inner from the others, which are given their whole gradient
};
inline constexpr size_t kGradientsKinds = 3;

/// Values of AotModule::joint that stand for the given gradients, in the order of AotModule::tangents.
std::vector<graph::ValueRef> givenGradients(const AotModule& module, Gradients which);
/// Values of AotModule::joint that are computed; nullopt where nothing arrives.
std::vector<std::optional<graph::ValueRef>> computedGradients(const AotModule& module, Gradients which);

graph::Graph gradientGraph(const AotModule& module, Gradients which);

/// A backward pass: the tangents that are given, and the results of the gradient graph that are wanted.
struct Pass {
  std::vector<bool> given, wanted;
  bool isWhole() const;
  auto operator<=>(const Pass&) const = default;
};

/// `graph` (of gradientGraph(), whose tangents are the placeholders from `first` on) for such a pass. Eager leaves out what would be computed
/// from other tangents, and zeros in their place would not do: times infinity they are NaN. Placeholders stay, unread where nothing wanted
/// needs them; a result that is not wanted or that only missing tangents would reach is None. Nodes in `kept` that no tangent leads to stay, whoever reads them.
graph::Graph graphOfPass(const graph::Graph& graph, size_t first, const Pass& pass, const std::set<graph::NodeId>& kept = {});

/// For every result of `graph`, positions of those of the placeholders from `first` on that it is computed from, counted from `first`.
std::vector<std::vector<int32_t>> placeholdersRead(const graph::Graph& graph, size_t first);

/// Fills in InnerResult::from, and drops inner results whose gradients could not be computed apart: such that share a gradient with
/// another result, or that no input's gradient depends on, and all of them where backward draws random numbers.
void finishInnerResults(AotModule& module);

}  // namespace fusebox::aot
