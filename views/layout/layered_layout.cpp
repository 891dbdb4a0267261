#include "views/layout/layered_layout.h"

#include <algorithm>
#include <cmath>

#include "views/layout/ordering.h"
#include "views/layout/ranks.h"

namespace fusebox::views {
namespace {

using layout::DirectedEdge;
using layout::Layering;

constexpr double kBendWidth = 4;

/// Items of each routed edge from its upper to its lower end, both ends included; empty for stubs.
using EdgeChains = std::vector<std::vector<int>>;

Layering buildLayering(const LayoutGraph& graph, const std::vector<DirectedEdge>& edges, const std::vector<int>& rank,
                       const LayoutOptions& options, EdgeChains& chains) {
  Layering layering;
  int rankCount = 0;
  for (int r : rank) rankCount = std::max(rankCount, r + 1);
  layering.ranks.resize(rankCount);
  std::vector<int> itemOf(graph.nodes.size(), -1);
  const auto add = [&](int node, int r, double width, double height) {
    layering.items.push_back({node, r, width, height, {}, {}});
    return static_cast<int>(layering.items.size()) - 1;
  };
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (rank[n] < 0) continue;
    itemOf[n] = add(static_cast<int>(n), rank[n], graph.nodes[n].width, graph.nodes[n].height);
  }
  chains.resize(edges.size());
  for (size_t e = 0; e < edges.size(); ++e) {
    const int top = rank[edges[e].from], bottom = rank[edges[e].to];
    if (bottom - top > options.maxEdgeSpan) continue;
    int previous = itemOf[edges[e].from];
    chains[e].push_back(previous);
    for (int r = top + 1; r <= bottom; ++r) {
      const int next = r == bottom ? itemOf[edges[e].to] : add(-1, r, kBendWidth, 0);
      layering.items[previous].below.push_back(next);
      layering.items[next].above.push_back(previous);
      chains[e].push_back(next);
      previous = next;
    }
  }
  return layering;
}

/// First order: depth first from the sources, so that a chain and its side branches start next to each other.
void seedOrder(Layering& layering) {
  std::vector<char> seen(layering.items.size(), 0);
  std::vector<int> stack;
  const auto visit = [&](int root) {
    stack.push_back(root);
    while (!stack.empty()) {
      const int item = stack.back();
      stack.pop_back();
      if (seen[item]) continue;
      seen[item] = 1;
      layering.ranks[layering.items[item].rank].push_back(item);
      const auto& below = layering.items[item].below;
      for (auto it = below.rbegin(); it != below.rend(); ++it) stack.push_back(*it);
    }
  };
  for (int i = 0; i < static_cast<int>(layering.items.size()); ++i) {
    if (layering.items[i].above.empty()) visit(i);
  }
  for (int i = 0; i < static_cast<int>(layering.items.size()); ++i) visit(i);
}

/// Nodes that no edge touches, in rows under the drawing about as wide as it.
void placeLoners(const LayoutGraph& graph, const std::vector<int>& rank, const LayoutOptions& options,
                 LayoutResult& result) {
  double total = 0;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (rank[n] < 0) total += (graph.nodes[n].width + options.nodeGap) * (graph.nodes[n].height + options.nodeGap);
  }
  if (total == 0) return;
  const double limit = std::max(result.width, std::sqrt(total) * 1.6);
  double x = 0, y = result.height > 0 ? result.height + options.rankGap : 0, rowHeight = 0;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (rank[n] >= 0) continue;
    const auto& size = graph.nodes[n];
    if (x > 0 && x + size.width > limit) {
      x = 0;
      y += rowHeight + options.nodeGap;
      rowHeight = 0;
    }
    result.nodes[n] = {x, y, size.width, size.height};
    x += size.width + options.nodeGap;
    rowHeight = std::max(rowHeight, size.height);
    result.width = std::max(result.width, x - options.nodeGap);
  }
  result.height = y + rowHeight;
}

void placeNodes(const Layering& layering, const std::vector<double>& centre, const LayoutOptions& options,
                std::vector<double>& itemY, LayoutResult& result) {
  double left = 0, right = 0;
  bool first = true;
  for (size_t i = 0; i < layering.items.size(); ++i) {
    const double half = layering.items[i].width / 2;
    left = first ? centre[i] - half : std::min(left, centre[i] - half);
    right = first ? centre[i] + half : std::max(right, centre[i] + half);
    first = false;
  }
  double y = 0;
  for (size_t r = 0; r < layering.ranks.size(); ++r) {
    double tallest = 0;
    for (int item : layering.ranks[r]) tallest = std::max(tallest, layering.items[item].height);
    for (int item : layering.ranks[r]) {
      const auto& it = layering.items[item];
      itemY[item] = y + tallest / 2;
      if (it.node >= 0) {
        result.nodes[it.node] = {centre[item] - it.width / 2 - left, y + (tallest - it.height) / 2, it.width, it.height};
      }
    }
    y += tallest + (r + 1 < layering.ranks.size() ? options.rankGap : 0);
  }
  result.width = right - left;
  result.height = y;
}

}  // namespace

LayoutResult layoutLayered(const LayoutGraph& graph, const LayoutOptions& options) {
  LayoutResult result;
  result.nodes.resize(graph.nodes.size());
  result.edges.resize(graph.edges.size());
  const auto edges = layout::breakCycles(graph);
  const auto rank = layout::assignRanks(static_cast<int>(graph.nodes.size()), edges);
  EdgeChains chains;
  Layering layering = buildLayering(graph, edges, rank, options, chains);
  seedOrder(layering);
  result.crossings = layout::reduceCrossings(layering, options);
  result.ranks = static_cast<int>(layering.ranks.size());
  const auto centre = layout::placeItems(layering, options);
  std::vector<double> itemY(layering.items.size(), 0);
  placeNodes(layering, centre, options, itemY, result);

  double left = 0;  // result.nodes are shifted by the leftmost border: shift the bends likewise
  for (size_t i = 0; i < layering.items.size(); ++i) {
    const int node = layering.items[i].node;
    if (node >= 0) {
      left = centre[i] - result.nodes[node].centreX();
      break;
    }
  }
  for (size_t e = 0; e < edges.size(); ++e) {
    PlacedEdge& placed = result.edges[edges[e].original];
    placed.stub = chains[e].empty();
    const LayoutRect& from = result.nodes[edges[e].from];
    const LayoutRect& to = result.nodes[edges[e].to];
    if (placed.stub) continue;
    placed.points.push_back({from.centreX(), from.bottom()});
    for (size_t i = 1; i + 1 < chains[e].size(); ++i) {
      placed.points.push_back({centre[chains[e][i]] - left, itemY[chains[e][i]]});
    }
    placed.points.push_back({to.centreX(), to.y});
    if (edges[e].reversed) std::reverse(placed.points.begin(), placed.points.end());
  }
  placeLoners(graph, rank, options, result);
  result.cancelled = options.cancel && options.cancel->load();
  return result;
}

}  // namespace fusebox::views
