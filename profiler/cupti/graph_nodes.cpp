#include "profiler/cupti/graph_nodes.h"

#include <algorithm>

namespace fusebox::cupti {

void GraphNodeTable::add(int32_t recording, std::vector<GraphNodes> nodes) {
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const GraphNodes& a, const GraphNodes& b) { return std::pair(a.piece, a.first) < std::pair(b.piece, b.first); });
  Recording made;
  int32_t piece = -1;
  for (const GraphNodes& n : nodes) {
    if (made.pieces.empty() || n.piece != piece) made.pieces.emplace_back();
    piece = n.piece;
    made.pieces.back().push_back(n);
  }
  std::lock_guard lock(mutex_);
  recordings_[recording] = std::move(made);
}

bool GraphNodeTable::isRecording(int32_t kernel) const {
  std::lock_guard lock(mutex_);
  return recordings_.contains(kernel);
}

int32_t GraphNodeTable::kernelOf(int32_t recording, uint32_t graph, uint32_t node) {
  std::lock_guard lock(mutex_);
  auto place = places_.find(graph);
  if (place == places_.end()) {
    const auto known = recordings_.find(recording);
    // More executable graphs than pieces: the order does not say which is which.
    if (known == recordings_.end() || known->second.graphs >= known->second.pieces.size()) return 0;
    place = places_.emplace(graph, std::pair{recording, known->second.graphs++}).first;
  }
  const auto& nodes = recordings_.at(place->second.first).pieces[place->second.second];
  const auto after = std::upper_bound(nodes.begin(), nodes.end(), static_cast<int64_t>(node),
                                      [](int64_t n, const GraphNodes& g) { return n < g.first; });
  if (after == nodes.begin()) return 0;
  const GraphNodes& found = *std::prev(after);
  return static_cast<int64_t>(node) < int64_t{found.first} + found.count ? found.kernel : 0;
}

}  // namespace fusebox::cupti
