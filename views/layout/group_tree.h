#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fusebox::views {

/// Nodes of a graph folded by a dotted path (module path, fusion group). Group 0 is the root and holds everything.
/// Groups of a single node are left out, chains of groups with a single child are merged into one; a group with very many direct nodes or groups is split into runs so
/// that no level needs the layout of thousands.
struct GroupTree {
  struct Group {
    std::string path;   ///< unique key, stable between layouts of the same graph
    std::string label;  ///< what a person reads: the path's last part (or parts, where groups were merged)
    int parent = -1;
    int depth = 0;
    int totalNodes = 0;          ///< nodes in this group and below
    std::vector<int> groups;     ///< child groups in order of first appearance
    std::vector<int> nodes;      ///< direct nodes in graph order
  };
  std::vector<Group> groups;
  std::vector<int> groupOfNode;  ///< innermost group of each node

  /// Index of the group with this path, -1 if there is none.
  int find(std::string_view path) const;
};

/// `paths[i]` is the dotted path of node i, empty for the root. `runLength` bounds the direct nodes, and the direct groups, of one group.
GroupTree buildGroupTree(const std::vector<std::string>& paths, int runLength = 300);

/// Which groups to show open at first: breadth first from the root while no more than `visibleLimit` boxes and nodes
/// would be drawn. result[g] is 1 where group g is open; the root always is.
std::vector<char> defaultExpansion(const GroupTree& tree, int visibleLimit = 260);

}  // namespace fusebox::views
