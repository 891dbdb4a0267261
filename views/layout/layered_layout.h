#pragma once

#include <atomic>
#include <chrono>
#include <vector>

namespace fusebox::views {

struct LayoutPoint {
  double x = 0;
  double y = 0;
};

struct LayoutRect {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
  double right() const { return x + width; }
  double bottom() const { return y + height; }
  double centreX() const { return x + width / 2; }
};

/// What is to be drawn: node sizes (scene units) and directed edges between node indices.
struct LayoutGraph {
  struct Node {
    double width = 0;
    double height = 0;
  };
  struct Edge {
    int from = 0;
    int to = 0;
  };
  std::vector<Node> nodes;
  std::vector<Edge> edges;
};

struct LayoutOptions {
  double nodeGap = 18;       ///< smallest horizontal distance between two nodes of a rank
  double rankGap = 34;       ///< vertical distance between two ranks
  int maxEdgeSpan = 24;      ///< edges over more ranks are drawn as two stubs instead of being routed
  int maxSweeps = 16;        ///< crossing reduction sweeps, if the budget allows them
  std::chrono::milliseconds budget{400};  ///< wall time for crossing reduction; the other phases are linear
  const std::atomic<bool>* cancel = nullptr;
};

/// One drawn edge: its polyline from the border of `from` to the border of `to`. A stub is cut in the middle: its
/// polyline is empty and the canvas draws a short tail at either end.
struct PlacedEdge {
  std::vector<LayoutPoint> points;
  bool stub = false;
};

struct LayoutResult {
  std::vector<LayoutRect> nodes;   ///< same order as LayoutGraph::nodes
  std::vector<PlacedEdge> edges;   ///< same order as LayoutGraph::edges
  double width = 0;
  double height = 0;
  int ranks = 0;
  int crossings = 0;   ///< crossings that remain between neighbouring ranks
  bool cancelled = false;
};

/// Layered drawing of a directed graph, top to bottom: longest-path ranks with tightening, barycentre sweeps for the
/// order within a rank (bounded by a time budget), least-squares coordinates that keep the order. Nodes never overlap
/// and every edge of an acyclic graph points downwards; edges that close a cycle are drawn upwards. Nodes without
/// edges are put in rows below the drawing. Deterministic as long as the budget is not the limit.
LayoutResult layoutLayered(const LayoutGraph& graph, const LayoutOptions& options = {});

}  // namespace fusebox::views
