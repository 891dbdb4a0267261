#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/graph/graph.h"

namespace fusebox::aot {

/// A value that becomes a placeholder of the extracted graph.
struct Boundary {
  graph::ValueRef value;
  std::string name;
  bool isCopy = false;  ///< it lies as aten::clone lays it
};

/// Whether the extracted graph says what history overwritten values have (graph::kOverwritten).
enum class Histories : uint8_t { Dropped, Kept };

/// Copies from `source` what `results` (nullopt: None) need, with `boundaries` as placeholders in that order. Nodes for which `keep` says so
/// stay although unused. Where `histories` are dropped, what was overwritten is what it was overwritten with. Results at the positions in `copied` are cloned before they are returned. Copied nodes name their origin in `source`; constants keep their index.
graph::Graph extractGraph(const graph::Graph& source, const std::vector<Boundary>& boundaries,
                          const std::vector<std::optional<graph::ValueRef>>& results,
                          const std::function<bool(const graph::Node&)>& keep, const std::vector<size_t>& copied = {}, Histories histories = Histories::Dropped);

}  // namespace fusebox::aot
