#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/support/result.h"
#include "profiler/query/graphs.h"
#include "views/common/table.h"
#include "views/layout/compound_layout.h"

namespace fusebox::session {
class Reader;
}

namespace fusebox::views {

enum class GraphFolding { Nothing, Module, Fusion };

/// What an operator is, for its colour: a table of name parts in graph_model.cpp.
enum class OpFamily { Input, Output, Matrix, Convolution, Pointwise, Reduction, View, Normalisation, Memory, Other };
OpFamily opFamily(const std::string& kind, const std::string& op);

/// "convolution" from "aten.convolution.default" and "aten::convolution".
std::string shortOp(const std::string& op);

/// A graph of the session, and which of its nodes are drawn.
struct GraphPicture {
  query::GraphData data;
  std::vector<int> drawn;               ///< indices into data.nodes, in graph order
  std::vector<int> drawnIndex;          ///< inverse of `drawn`; -1 for nodes that are badges
  std::vector<int> inputBadges;         ///< by drawn index: inputs that are not drawn
  std::vector<std::string> titles;      ///< by drawn index
  std::vector<std::string> subtitles;   ///< by drawn index: dtype and shape
  LayoutGraph layout;                   ///< sizes and edges over drawn indices
  GroupTree tree;
  GraphFolding folding = GraphFolding::Nothing;
  std::unordered_map<int64_t, int> byId;          ///< node id to index into data.nodes
  std::unordered_map<int64_t, int> groupById;     ///< fusion group id to index into data.groups
  std::unordered_map<std::string, std::string> kernelOfFold;  ///< kernel's name by path in `tree`, where nodes are folded by kernel
  int64_t slowestNs = 0;

  const query::GraphNode& node(int drawnNode) const { return data.nodes[static_cast<size_t>(drawn[drawnNode])]; }
  /// Drawn index of a node id, -1 if it is not drawn.
  int drawnOf(int64_t id) const;
};

struct GraphOptions {
  GraphFolding folding = GraphFolding::Nothing;
  bool showInputs = true;    ///< placeholders and constants as nodes; otherwise as badges of their readers
};

/// One graph to choose from.
struct GraphChoice {
  query::GraphRow row;
  int entry = 0;             ///< which compilation of its frame, from 0; a backward pass has its forward's
  bool isOnly = true;        ///< its frame was compiled once
  bool isRest = false;       ///< what resumes after a graph break, from `row.line` on
};

Result<std::vector<GraphChoice>> loadGraphChoices(const session::Reader& reader);

/// Prepares a loaded graph for drawing; pure, no reader.
std::shared_ptr<const GraphPicture> makePicture(query::GraphData data, const GraphOptions& options);
/// Options that suit a graph when the user has chosen none: fold large ones, hide many inputs.
GraphOptions defaultOptions(const query::GraphData& data);

/// Node that a location names in a graph: the node itself, the first one of a group or kernel; 0 if none.
struct GraphTarget {
  int64_t graph = 0;
  int64_t node = 0;
};
Result<GraphTarget> graphTarget(const session::Reader& reader, const Location& location);

/// Everything known about a node, for the details panel: name, value pairs in reading order.
struct NodeFact {
  std::string name;
  std::string value;
  Location link;
};
struct NodeRelations {
  std::vector<NodeFact> origins;   ///< nodes of earlier graphs
  std::vector<NodeFact> users;     ///< nodes of later graphs made from it
  std::string stack;               ///< recorded Python stack
  std::vector<NodeFact> decisions; ///< fusion decisions about it
};
Result<NodeRelations> loadRelations(const session::Reader& reader, int64_t node);

}  // namespace fusebox::views
