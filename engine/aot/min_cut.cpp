#include "engine/aot/min_cut.h"

#include <algorithm>
#include <queue>

namespace fusebox::aot {

void MinCut::addEdge(int from, int to, int64_t capacity) {
  head_[from].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({to, capacity});
  head_[to].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({from, 0});
}

bool MinCut::layer(int source, int sink) {
  level_.assign(head_.size(), -1);
  level_[source] = 0;
  std::queue<int> queue;
  queue.push(source);
  while (!queue.empty()) {
    int node = queue.front();
    queue.pop();
    for (int e : head_[node])
      if (edges_[e].capacity > 0 && level_[edges_[e].to] < 0) {
        level_[edges_[e].to] = level_[node] + 1;
        queue.push(edges_[e].to);
      }
  }
  return level_[sink] >= 0;
}

// One augmenting path, kept explicitly: graphs are thousands of nodes deep.
int64_t MinCut::push(int source, int sink) {
  std::vector<int> path;
  int node = source;
  while (node != sink) {
    bool advanced = false;
    for (auto& i = next_[node]; i < head_[node].size(); ++i) {
      auto& edge = edges_[head_[node][i]];
      if (edge.capacity > 0 && level_[edge.to] == level_[node] + 1) {
        path.push_back(head_[node][i]);
        node = edge.to;
        advanced = true;
        break;
      }
    }
    if (advanced) continue;
    if (path.empty()) return 0;
    node = edges_[path.back() ^ 1].to;
    path.pop_back();
    ++next_[node];
  }
  int64_t flow = kInfinite;
  for (int e : path) flow = std::min(flow, edges_[e].capacity);
  for (int e : path) {
    edges_[e].capacity -= flow;
    edges_[e ^ 1].capacity += flow;
  }
  return flow;
}

std::vector<bool> MinCut::sourceSide(int source, int sink) {
  while (layer(source, sink)) {
    next_.assign(head_.size(), 0);
    while (push(source, sink) > 0) {
    }
  }
  // The sink's side is only what still reaches the sink.
  std::vector<bool> side(head_.size(), true);
  std::vector<int> work = {sink};
  side[static_cast<size_t>(sink)] = false;
  while (!work.empty()) {
    int node = work.back();
    work.pop_back();
    for (int e : head_[node])
      if (int from = edges_[e].to; edges_[e ^ 1].capacity > 0 && side[from]) {
        side[from] = false;
        work.push_back(from);
      }
  }
  return side;
}

}  // namespace fusebox::aot
