#include "views/layout/ranks.h"

#include <algorithm>
#include <utility>

namespace fusebox::views::layout {
namespace {

enum class Mark : char { New, Open, Done };

std::vector<std::vector<int>> outgoing(int nodeCount, const std::vector<DirectedEdge>& edges, bool forward) {
  std::vector<std::vector<int>> lists(nodeCount);
  for (int i = 0; i < static_cast<int>(edges.size()); ++i) lists[forward ? edges[i].from : edges[i].to].push_back(i);
  return lists;
}

}  // namespace

std::vector<DirectedEdge> breakCycles(const LayoutGraph& graph) {
  std::vector<DirectedEdge> edges;
  const int count = static_cast<int>(graph.nodes.size());
  for (int i = 0; i < static_cast<int>(graph.edges.size()); ++i) {
    const auto& e = graph.edges[i];
    if (e.from != e.to && e.from >= 0 && e.to >= 0 && e.from < count && e.to < count) {
      edges.push_back({e.from, e.to, i, false});
    }
  }
  const auto lists = outgoing(count, edges, true);
  std::vector<Mark> mark(count, Mark::New);
  std::vector<std::pair<int, size_t>> stack;
  for (int root = 0; root < count; ++root) {
    if (mark[root] != Mark::New) continue;
    mark[root] = Mark::Open;
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next == lists[node].size()) {
        mark[node] = Mark::Done;
        stack.pop_back();
        continue;
      }
      DirectedEdge& edge = edges[lists[node][next++]];
      if (mark[edge.to] == Mark::Open) {
        edge.reversed = true;
      } else if (mark[edge.to] == Mark::New) {
        mark[edge.to] = Mark::Open;
        stack.emplace_back(edge.to, 0);
      }
    }
  }
  for (auto& edge : edges) {
    if (edge.reversed) std::swap(edge.from, edge.to);
  }
  return edges;
}

std::vector<int> assignRanks(int nodeCount, const std::vector<DirectedEdge>& edges) {
  const auto out = outgoing(nodeCount, edges, true);
  const auto in = outgoing(nodeCount, edges, false);
  std::vector<int> missing(nodeCount), order, rank(nodeCount, -1);
  order.reserve(nodeCount);
  for (int n = 0; n < nodeCount; ++n) {
    missing[n] = static_cast<int>(in[n].size());
    if (missing[n] == 0) order.push_back(n);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    for (int e : out[order[i]]) {
      if (--missing[edges[e].to] == 0) order.push_back(edges[e].to);
    }
  }
  for (int node : order) {
    if (in[node].empty() && out[node].empty()) continue;
    int r = 0;
    for (int e : in[node]) r = std::max(r, rank[edges[e].from] + 1);
    rank[node] = r;
  }
  // Tightening: a node with fewer incoming than outgoing edges moves down until it touches its first reader, which
  // brings parameters and constants next to their use and shortens the total edge length.
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const int node = *it;
    if (out[node].empty() || in[node].size() >= out[node].size()) continue;
    int lowest = rank[edges[out[node].front()].to];
    for (int e : out[node]) lowest = std::min(lowest, rank[edges[e].to]);
    rank[node] = lowest - 1;
  }
  int top = -1;
  for (int r : rank) {
    if (r >= 0 && (top < 0 || r < top)) top = r;
  }
  for (int& r : rank) {
    if (r >= 0) r -= top;
  }
  return rank;
}

}  // namespace fusebox::views::layout
