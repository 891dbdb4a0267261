#pragma once

#include <string>

#include "engine/graph/graph.h"
#include "engine/inductor/ir/lowered_graph.h"

namespace fusebox::inductor {

/// What a pass made. `graph` is set only if `changed`.
struct PassResult {
  graph::Graph graph;
  bool changed = false;
  std::string detail;  ///< what it did, in a few words
};

PassResult sumsOfProducts(const graph::Graph& graph);
PassResult narrowProducts(const graph::Graph& graph);
/// `moved` receives where values of `graph` are in the result, if it changed.
PassResult sumsOfProducts(const graph::Graph& graph, std::vector<std::vector<graph::ValueRef>>& moved);
PassResult narrowProducts(const graph::Graph& graph, std::vector<std::vector<graph::ValueRef>>& moved);
PassResult redrawMasks(const graph::Graph& joint, std::vector<std::vector<graph::ValueRef>>& moved);
PassResult fuseAttention(const graph::Graph& graph);
PassResult writeComplexByParts(const graph::Graph& graph);
PassResult decompose(const graph::Graph& graph);
PassResult sendHostNumbers(const graph::Graph& graph);
PassResult removeNoops(const graph::Graph& graph);
PassResult eliminateCommonSubexpressions(const graph::Graph& graph);
PassResult widenHalfProducts(const graph::Graph& graph);
PassResult joinProducts(const graph::Graph& graph);
PassResult padProducts(const graph::Graph& graph);
PassResult fuseMatmulEpilogues(const graph::Graph& graph);
PassResult removeDeadCode(const graph::Graph& graph);
/// The graph that removeDeadCode() leaves, which is the one that comes in where nothing is dead.
graph::Graph withoutDeadCode(const graph::Graph& graph);

/// Returns a view of (or just) its first argument.
bool isView(const graph::Node& node);
/// For each node, whether a graph result may share its memory: it is a result, or a view of it is.
std::vector<bool> reachesOutputByViews(const graph::Graph& graph);

/// Copies `from` into a new graph node by node, other values may be put in place of a node's outputs. Nothing is copied before the first of these: a
/// graph that stays as it is costs nothing.
class GraphCopy {
 public:
  explicit GraphCopy(const graph::Graph& from) : from_(from) {}
  graph::Graph& to() {
    if (!isBegun()) begin();
    return to_;
  }
  graph::ValueRef mapped(graph::ValueRef v) const {
    return isBegun() ? map_[static_cast<size_t>(v.node)][static_cast<size_t>(v.output)] : v;
  }
  graph::ArgumentList mappedArgs(const graph::Node& node) const;
  /// Copies the node as it is.
  void keep(const graph::Node& node) {
    if (!isBegun() && node.id == same_) ++same_;
    else to(), copy(node);
  }
  /// The copy as what a pass made. `moved` receives where each value of the old graph is; null: nobody asks.
  PassResult finish(std::string detail, std::vector<std::vector<graph::ValueRef>>* moved = nullptr) {
    if (moved) *moved = takeMap();
    return {std::move(to()), true, std::move(detail)};
  }
  /// Where each value of the old graph is; the copy is finished then.
  std::vector<std::vector<graph::ValueRef>> takeMap() { return to(), std::move(map_); }
  /// Says that outputs of `node` are `values` of the new graph.
  void replace(const graph::Node& node, std::vector<graph::ValueRef> values) {
    to();
    map_[static_cast<size_t>(node.id)] = std::move(values);
  }

 private:
  bool isBegun() const { return same_ < 0; }
  void begin();
  void copy(const graph::Node& node);

  const graph::Graph& from_;
  graph::NodeId same_ = 0;  ///< so many nodes are as in `from_`, and none is copied yet; -1: the copy is under way
  graph::Graph to_;
  std::vector<std::vector<graph::ValueRef>> map_;
};

}  // namespace fusebox::inductor
