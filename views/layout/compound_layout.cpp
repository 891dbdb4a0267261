#include "views/layout/compound_layout.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace fusebox::views {
namespace {

/// One child of a group in its level's drawing.
struct Child {
  SceneEnd end;
  double width = 0;
  double height = 0;
};

struct Level {
  std::vector<Child> children;
  std::vector<LayoutGraph::Edge> edges;
  std::vector<int> counts;
  LayoutResult drawing;
};

class CompoundLayout {
 public:
  CompoundLayout(const GroupTree& tree, const std::vector<char>& open, const LayoutGraph& graph,
                 const CompoundOptions& options)
      : tree_(tree), open_(open), graph_(graph), options_(options), levels_(tree.groups.size()) {}

  CompoundScene run() {
    assignEdges();
    const auto [width, height] = layOut(0);
    scene_.nodes.resize(graph_.nodes.size());
    scene_.boxOfGroup.assign(tree_.groups.size(), -1);
    scene_.width = width;
    scene_.height = height;
    place(0, 0, 0);
    scene_.cancelled = options_.layered.cancel && options_.layered.cancel->load();
    return std::move(scene_);
  }

 private:
  /// The chain of drawn things around a node from the root's child down to the node or the closed group it is in.
  std::vector<SceneEnd> chainOf(int node) const {
    std::vector<SceneEnd> chain;
    std::vector<int> groups;
    for (int g = tree_.groupOfNode[node]; g > 0; g = tree_.groups[g].parent) groups.push_back(g);
    for (auto it = groups.rbegin(); it != groups.rend(); ++it) {
      chain.push_back({-1, *it});
      if (!open_[*it]) return chain;
    }
    chain.push_back({node, -1});
    return chain;
  }

  static bool same(const SceneEnd& a, const SceneEnd& b) { return a.node == b.node && a.group == b.group; }

  /// Each edge belongs to the innermost open group that contains both ends, between two of its children.
  void assignEdges() {
    for (size_t g = 0; g < tree_.groups.size(); ++g) {
      auto& level = levels_[g];
      for (int child : tree_.groups[g].groups) level.children.push_back({{-1, child}});
      for (int node : tree_.groups[g].nodes) level.children.push_back({{node, -1}});
    }
    std::vector<std::map<std::pair<int, int>, int>> known(tree_.groups.size());
    for (const auto& edge : graph_.edges) {
      if (edge.from == edge.to) continue;
      const auto from = chainOf(edge.from), to = chainOf(edge.to);
      size_t i = 0;
      int group = 0;
      while (i < from.size() && i < to.size() && same(from[i], to[i])) group = from[i++].group;
      if (i >= from.size() || i >= to.size()) continue;  // both inside one closed group
      const std::pair<int, int> key{childIndex(group, from[i]), childIndex(group, to[i])};
      Level& level = levels_[group];
      const auto [found, fresh] = known[group].emplace(key, static_cast<int>(level.edges.size()));
      if (fresh) {
        level.edges.push_back({key.first, key.second});
        level.counts.push_back(1);
      } else {
        ++level.counts[found->second];
      }
    }
  }

  int childIndex(int group, const SceneEnd& end) {
    auto& index = childIndex_[group];
    if (index.empty()) {
      const auto& children = levels_[group].children;
      for (int i = 0; i < static_cast<int>(children.size()); ++i) index[key(children[i].end)] = i;
    }
    return index.at(key(end));
  }

  static long key(const SceneEnd& end) { return end.node >= 0 ? end.node * 2L : end.group * 2L + 1; }

  std::pair<double, double> layOut(int g) {
    Level& level = levels_[g];
    for (auto& child : level.children) {
      if (child.end.node >= 0) {
        child.width = graph_.nodes[child.end.node].width;
        child.height = graph_.nodes[child.end.node].height;
      } else if (!open_[child.end.group]) {
        child.width = options_.foldedWidth;
        child.height = options_.foldedHeight;
      } else {
        const auto [width, height] = layOut(child.end.group);
        child.width = std::max(width + 2 * options_.boxPadding, options_.foldedWidth);
        child.height = height + options_.boxPadding + options_.boxHeader + options_.boxPadding / 2;
      }
    }
    drawLevel(level);
    scene_.crossings += level.drawing.crossings;
    return {level.drawing.width, level.drawing.height};
  }

  void drawLevel(Level& level) {
    LayoutGraph graph;
    std::string shape;  // identical blocks (the layers of a transformer) share one drawing
    for (const auto& child : level.children) {
      graph.nodes.push_back({child.width, child.height});
      shape += std::to_string(static_cast<int>(child.width)) + "x" + std::to_string(static_cast<int>(child.height)) + ";";
    }
    for (const auto& edge : level.edges) {
      graph.edges.push_back(edge);
      shape += std::to_string(edge.from) + ">" + std::to_string(edge.to) + ";";
    }
    const auto found = drawings_.find(shape);
    if (found != drawings_.end()) {
      level.drawing = found->second;
      return;
    }
    level.drawing = layoutLayered(graph, options_.layered);
    drawings_.emplace(std::move(shape), level.drawing);
  }

  void place(int g, double dx, double dy) {
    const Level& level = levels_[g];
    const auto shifted = [&](LayoutRect rect) {
      rect.x += dx;
      rect.y += dy;
      return rect;
    };
    for (size_t e = 0; e < level.edges.size(); ++e) {
      CompoundScene::Edge edge;
      edge.from = level.children[level.edges[e].from].end;
      edge.to = level.children[level.edges[e].to].end;
      edge.points = level.drawing.edges[e].points;
      for (auto& p : edge.points) p = {p.x + dx, p.y + dy};
      edge.stub = level.drawing.edges[e].stub;
      edge.count = level.counts[e];
      scene_.edges.push_back(std::move(edge));
    }
    for (size_t c = 0; c < level.children.size(); ++c) {
      const SceneEnd end = level.children[c].end;
      const LayoutRect rect = shifted(level.drawing.nodes[c]);
      if (end.node >= 0) {
        scene_.nodes[end.node] = rect;
        continue;
      }
      scene_.boxOfGroup[end.group] = static_cast<int>(scene_.boxes.size());
      scene_.boxes.push_back({end.group, rect, open_[end.group] != 0, tree_.groups[end.group].depth});
      if (!open_[end.group]) continue;
      const double inner = levels_[end.group].drawing.width;
      place(end.group, rect.x + (rect.width - inner) / 2, rect.y + options_.boxHeader + options_.boxPadding / 2);
    }
  }

  const GroupTree& tree_;
  const std::vector<char>& open_;
  const LayoutGraph& graph_;
  const CompoundOptions& options_;
  std::vector<Level> levels_;
  std::unordered_map<int, std::unordered_map<long, int>> childIndex_;
  std::unordered_map<std::string, LayoutResult> drawings_;
  CompoundScene scene_;
};

}  // namespace

CompoundScene layoutCompound(const GroupTree& tree, const std::vector<char>& open, const LayoutGraph& graph,
                             const CompoundOptions& options) {
  return CompoundLayout(tree, open, graph, options).run();
}

}  // namespace fusebox::views
