#include "profiler/export/dot.h"

#include <fmt/format.h>

#include <array>
#include <map>

namespace fusebox::exporting {
namespace {

using query::GraphData;
using query::GraphGroup;
using query::GraphNode;

// Text inside a quoted DOT string; control characters and overlong names would spoil the picture.
std::string dotText(std::string_view text, size_t limit = 120) {
  std::string out;
  for (const char c : text.substr(0, limit)) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  if (text.size() > limit) {
    // Not in the middle of a UTF-8 sequence.
    while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xc0) == 0x80) out.pop_back();
    if (!out.empty() && static_cast<unsigned char>(out.back()) >= 0xc0) out.pop_back();
    out += "…";
  }
  return out;
}

// Colour-blind-safe (Okabe and Ito), light enough for black text.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kFills{{
    {"placeholder", "#cfe8f7"},
    {"constant", "#dddddd"},
    {"output", "#f7dfc0"},
    {"pointwise", "#d5efe3"},
    {"reduction", "#f3d9e8"},
    {"extern", "#fbf3c2"},
}};

std::string_view fill(std::string_view kind) {
  for (const auto& [name, colour] : kFills) {
    if (name == kind) return colour;
  }
  return "#ffffff";
}

std::string shortOp(const GraphNode& node) {
  if (node.op.empty()) return node.kind;
  return node.op.rfind("aten::", 0) == 0 ? node.op.substr(6) : node.op;
}

std::string nodeLine(const GraphNode& node, std::string_view kind) {
  std::string label = dotText(node.name) + "\\n" + dotText(shortOp(node));
  if (!node.dtype.empty()) label += "\\n" + dotText(node.dtype) + " " + dotText(node.shape);
  std::string tooltip = node.args;
  if (!node.file.empty()) tooltip = fmt::format("{}:{}  {}", node.file, node.line, tooltip);
  return fmt::format("n{} [label=\"{}\", fillcolor=\"{}\", tooltip=\"{}\"];\n", node.id, label, fill(kind),
                     dotText(tooltip, 300));
}

std::string groupLabel(const GraphGroup& group) {
  std::string label = dotText(group.name.empty() ? group.kind : group.name);
  if (group.launches > 0) {
    label += fmt::format("\\n{} launches, {:.3f} ms", group.launches, static_cast<double>(group.timeNs) / 1e6);
  }
  return label;
}

}  // namespace

std::string toDot(const GraphData& graph) {
  std::map<int64_t, const GraphGroup*> groups;
  std::map<int64_t, std::string> bodies;
  for (const GraphGroup& group : graph.groups) groups[group.id] = &group;
  std::string loose;
  for (const GraphNode& node : graph.nodes) {
    const auto group = groups.find(node.group);
    if (group == groups.end()) {
      loose += "  " + nodeLine(node, node.kind);
    } else {
      bodies[node.group] += "    " + nodeLine(node, group->second->kind);
    }
  }
  std::string out = fmt::format(
      "digraph fusebox {{\n  label=\"{} {}, graph {}\"; labelloc=t; fontname=\"Helvetica\";\n"
      "  node [shape=box, style=\"filled,rounded\", fontname=\"Helvetica\", fontsize=10, color=\"#555555\"];\n"
      "  edge [color=\"#777777\", arrowsize=0.6];\n",
      dotText(graph.row.frame), dotText(graph.row.stage), graph.row.id);
  for (const auto& [id, body] : bodies) {
    out += fmt::format("  subgraph cluster_{} {{\n    label=\"{}\"; fontsize=9; style=\"rounded\"; color=\"#0072b2\";\n{}  }}\n",
                       id, groupLabel(*groups[id]), body);
  }
  out += loose;
  for (const auto& edge : graph.edges) out += fmt::format("  n{} -> n{};\n", edge.from, edge.to);
  return out + "}\n";
}

}  // namespace fusebox::exporting
