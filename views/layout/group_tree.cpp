#include "views/layout/group_tree.h"

#include <algorithm>
#include <deque>
#include <unordered_map>

namespace fusebox::views {
namespace {

class TreeBuilder {
 public:
  TreeBuilder() { tree_.groups.emplace_back(); }

  int groupAt(const std::string& path) {
    if (path.empty()) return 0;
    if (const auto found = byPath_.find(path); found != byPath_.end()) return found->second;
    const size_t dot = path.rfind('.');
    const int parent = groupAt(dot == std::string::npos ? std::string() : path.substr(0, dot));
    return add(parent, path, dot == std::string::npos ? path : path.substr(dot + 1));
  }

  int add(int parent, const std::string& path, const std::string& label) {
    const int index = static_cast<int>(tree_.groups.size());
    GroupTree::Group group;
    group.path = path;
    group.label = label;
    group.parent = parent;
    tree_.groups.push_back(std::move(group));
    tree_.groups[parent].groups.push_back(index);
    byPath_.emplace(path, index);
    return index;
  }

  void splitLongGroups(int runLength) {
    const size_t count = tree_.groups.size();
    for (size_t g = 0; g < count; ++g) {
      if (static_cast<int>(tree_.groups[g].nodes.size()) <= runLength) continue;
      const std::vector<int> nodes = std::move(tree_.groups[g].nodes);
      tree_.groups[g].nodes.clear();
      const size_t step = std::max<size_t>(runLength / 3, 2);
      for (size_t first = 0; first < nodes.size(); first += step) {
        const size_t last = std::min(first + step, nodes.size());
        const std::string label = "#" + std::to_string(first + 1) + "\u2013" + std::to_string(last);
        const std::string path = tree_.groups[g].path + "." + label;
        const int run = add(static_cast<int>(g), path, label);
        tree_.groups[run].nodes.assign(nodes.begin() + first, nodes.begin() + last);
      }
    }
  }

  /// Thousands of layers are bundled, as thousands of nodes are.
  void bundleManyGroups(int runLength) {
    const size_t step = std::max<size_t>(static_cast<size_t>(runLength) / 3, 2);
    for (size_t g = 0; g < tree_.groups.size(); ++g) {
      while (tree_.groups[g].parent != -2 && static_cast<int>(tree_.groups[g].groups.size()) > runLength) {
        const std::vector<int> children = std::move(tree_.groups[g].groups);
        tree_.groups[g].groups.clear();
        for (size_t first = 0; first < children.size(); first += step) {
          const size_t last = std::min(first + step, children.size());
          const std::string label = tree_.groups[children[first]].label + " \u2026 " + tree_.groups[children[last - 1]].label;
          const int bundle = add(static_cast<int>(g), tree_.groups[children[first]].path + ".\u2026", label);
          tree_.groups[bundle].groups.assign(children.begin() + static_cast<std::ptrdiff_t>(first), children.begin() + static_cast<std::ptrdiff_t>(last));
          for (size_t i = first; i < last; ++i) tree_.groups[children[i]].parent = bundle;
        }
      }
    }
  }

  /// A group of one node says less than the node: the node moves up to the parent.
  void dissolveSingles() {
    for (size_t g = tree_.groups.size(); g-- > 1;) {
      auto& group = tree_.groups[g];
      if (!group.groups.empty() || group.nodes.size() != 1) continue;
      auto& parent = tree_.groups[group.parent];
      parent.nodes.insert(std::upper_bound(parent.nodes.begin(), parent.nodes.end(), group.nodes[0]), group.nodes[0]);
      std::erase(parent.groups, static_cast<int>(g));
      group.nodes.clear();
      group.parent = -2;  // no longer reachable
    }
  }

  /// A group whose only content is one other group says nothing of its own: it takes over that group's content.
  void mergeChains() {
    for (size_t g = 1; g < tree_.groups.size(); ++g) {
      auto* group = &tree_.groups[g];
      while (group->nodes.empty() && group->groups.size() == 1) {
        const int child = group->groups.front();
        auto& inner = tree_.groups[child];
        group->label += "." + inner.label;
        group->nodes = std::move(inner.nodes);
        group->groups = std::move(inner.groups);
        inner.nodes.clear();
        inner.groups.clear();
        inner.parent = -2;  // no longer reachable
        for (int grandchild : group->groups) tree_.groups[grandchild].parent = static_cast<int>(g);
      }
    }
  }

  GroupTree finish(size_t nodeCount) {
    tree_.groupOfNode.assign(nodeCount, 0);
    count(0, 0);
    return std::move(tree_);
  }

  GroupTree tree_;

 private:
  int count(int g, int depth) {
    tree_.groups[g].depth = depth;
    int total = static_cast<int>(tree_.groups[g].nodes.size());
    for (int node : tree_.groups[g].nodes) tree_.groupOfNode[node] = g;
    for (int child : tree_.groups[g].groups) total += count(child, depth + 1);
    return tree_.groups[g].totalNodes = total;
  }

  std::unordered_map<std::string, int> byPath_;
};

constexpr size_t kDeepestPath = 64;  // paths come from files: bound the recursion

std::string boundedPath(const std::string& path) {
  size_t at = 0;
  for (size_t depth = 0; depth < kDeepestPath; ++depth) {
    at = path.find('.', at);
    if (at == std::string::npos) return path;
    ++at;
  }
  return path.substr(0, at - 1);
}

}  // namespace

int GroupTree::find(std::string_view path) const {
  for (size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].parent != -2 && groups[g].path == path) return static_cast<int>(g);
  }
  return -1;
}

GroupTree buildGroupTree(const std::vector<std::string>& paths, int runLength) {
  TreeBuilder builder;
  for (size_t n = 0; n < paths.size(); ++n) {
    const int group = builder.groupAt(boundedPath(paths[n]));
    builder.tree_.groups[group].nodes.push_back(static_cast<int>(n));
  }
  builder.dissolveSingles();
  builder.mergeChains();
  builder.splitLongGroups(runLength);
  builder.bundleManyGroups(runLength);
  return builder.finish(paths.size());
}

std::vector<char> defaultExpansion(const GroupTree& tree, int visibleLimit) {
  std::vector<char> open(tree.groups.size(), 0);
  open[0] = 1;
  int visible = static_cast<int>(tree.groups[0].groups.size() + tree.groups[0].nodes.size());
  std::deque<int> queue(tree.groups[0].groups.begin(), tree.groups[0].groups.end());
  while (!queue.empty()) {
    const int g = queue.front();
    queue.pop_front();
    const auto& group = tree.groups[g];
    const int more = static_cast<int>(group.groups.size() + group.nodes.size());
    if (visible + more > visibleLimit) continue;
    visible += more;
    open[g] = 1;
    queue.insert(queue.end(), group.groups.begin(), group.groups.end());
  }
  return open;
}

}  // namespace fusebox::views
