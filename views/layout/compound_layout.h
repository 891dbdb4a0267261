#pragma once

#include <string>
#include <vector>

#include "views/layout/group_tree.h"
#include "views/layout/layered_layout.h"

namespace fusebox::views {

/// Either a node (group == -1) or a group drawn as one box (node == -1).
struct SceneEnd {
  int node = -1;
  int group = -1;
};

/// The picture of a folded graph: what is drawn where, in scene units.
struct CompoundScene {
  struct Box {
    int group = 0;
    LayoutRect rect;
    bool open = false;
    int depth = 0;
  };
  struct Edge {
    SceneEnd from;
    SceneEnd to;
    std::vector<LayoutPoint> points;  ///< empty for stubs
    bool stub = false;
    int count = 1;                    ///< graph edges that this one stands for
  };
  std::vector<Box> boxes;             ///< outer boxes before inner ones
  std::vector<LayoutRect> nodes;      ///< by node index; width 0 where the node is folded away
  std::vector<int> boxOfGroup;        ///< index into boxes, -1 where the group is not drawn
  std::vector<Edge> edges;
  double width = 0;
  double height = 0;
  int crossings = 0;
  bool cancelled = false;

  bool visible(int node) const { return nodes[node].width > 0; }
};

struct CompoundOptions {
  LayoutOptions layered;
  double boxPadding = 14;
  double boxHeader = 22;
  double foldedWidth = 190;
  double foldedHeight = 44;
};

/// Lays out one level after another: each open group is a drawing of its own, placed as one node of its parent's. An
/// edge between different groups is drawn at the level of their nearest common group. Identical groups (same shape of
/// content) are laid out once.
CompoundScene layoutCompound(const GroupTree& tree, const std::vector<char>& open, const LayoutGraph& graph,
                             const CompoundOptions& options = {});

}  // namespace fusebox::views
