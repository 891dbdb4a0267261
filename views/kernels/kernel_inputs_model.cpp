#include "views/kernels/kernel_inputs_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "profiler/session/reader.h"

namespace fusebox::views {
namespace {

using session::Reader;
using session::Statement;

constexpr size_t kMostNamed = 6;
constexpr int kMostViews = 16;  ///< on the way to what they are of

constexpr std::string_view kViews[] = {"t", "permute", "transpose", "view", "_unsafe_view", "reshape", "expand", "unsqueeze", "squeeze", "alias", "detach"};

/// "aten::view.default" and "aten.view.default" give "view".
std::string_view plainName(std::string_view op) {
  if (op.starts_with("aten")) op.remove_prefix(4);
  op.remove_prefix(std::min(op.find_first_not_of(":."), op.size()));
  return op.substr(0, op.find('.'));
}

using Members = std::vector<int64_t>;  ///< nodes of a kernel, in their order

/// The nodes of one graph, as far as they lead from kernels to what these are given.
struct GraphNodes {
  std::unordered_map<int64_t, std::vector<int64_t>> inputs;
  std::unordered_map<int64_t, std::string> names;
  std::unordered_set<int64_t> views;

  static Result<GraphNodes> read(const Reader& reader, int64_t graph) {
    GraphNodes out;
    auto done = reader.each("SELECT src, dst FROM t_edge WHERE graph_id = ? ORDER BY dst, arg", {graph}, [&](const Statement& s) { out.inputs[s.integer("dst")].push_back(s.integer("src")); });
    if (done)
      done = reader.each("SELECT id, name, op FROM t_node WHERE graph_id = ?", {graph}, [&](const Statement& s) {
        out.names.emplace(s.integer("id"), s.string("name"));
        if (std::find(std::begin(kViews), std::end(kViews), plainName(s.text("op"))) != std::end(kViews)) out.views.insert(s.integer("id"));
      });
    if (!done) return tl::unexpected(done.error());
    return out;
  }

  std::string inputsOf(const Members& nodes) const {
    const std::unordered_set<int64_t> own(nodes.begin(), nodes.end());
    std::vector<std::string_view> given;
    for (const int64_t node : nodes) {
      const auto read = inputs.find(node);
      if (read == inputs.end()) continue;
      for (const int64_t input : read->second) {
        const int64_t source = behindViews(input, own);
        const auto name = names.find(source);
        if (own.contains(source) || name == names.end()) continue;
        if (std::find(given.begin(), given.end(), name->second) == given.end()) given.push_back(name->second);
      }
    }
    std::string out;
    for (size_t i = 0; i < given.size() && i < kMostNamed; ++i) out.append(i ? ", " : "").append(given[i]);
    return given.size() > kMostNamed ? fmt::format("{}, +{}", out, given.size() - kMostNamed) : out;
  }

 private:
  int64_t behindViews(int64_t node, const std::unordered_set<int64_t>& own) const {
    for (int steps = 0; steps < kMostViews && views.contains(node) && !own.contains(node); ++steps) {
      const auto of = inputs.find(node);
      if (of == inputs.end() || of->second.empty()) break;
      node = of->second.front();
    }
    return node;
  }
};

}  // namespace

Result<std::unordered_map<int64_t, std::string>> loadKernelInputs(const Reader& reader, const std::string& chosen) {
  std::map<int64_t, std::unordered_map<int64_t, Members>> byGraph;
  std::unordered_map<int64_t, int64_t> firstGroup;
  std::vector<session::Cell> parameters;
  if (!chosen.empty()) parameters.emplace_back(chosen);
  auto done = reader.each(std::string("SELECT g.id AS group_id, g.kernel_id, g.graph_id, m.node_id FROM t_fusion_group g CROSS JOIN t_fusion_member m ON m.group_id = g.id WHERE "
                                      "g.kernel_id IS NOT NULL") +
                              (chosen.empty() ? "" : " AND g.kernel_id IN (SELECT value FROM json_each(?1))") + " ORDER BY g.id, m.position",
                          parameters, [&](const Statement& s) {
                            const int64_t kernel = s.integer("kernel_id"), group = s.integer("group_id");
                            if (firstGroup.emplace(kernel, group).first->second != group) return;
                            byGraph[s.integer("graph_id")][kernel].push_back(s.integer("node_id"));
                          });
  std::unordered_map<int64_t, std::string> out;
  for (const auto& [graph, kernels] : byGraph) {
    if (!done) break;
    auto nodes = GraphNodes::read(reader, graph);
    if (!nodes) return tl::unexpected(nodes.error());
    for (const auto& [id, members] : kernels) {
      if (std::string given = nodes->inputsOf(members); !given.empty()) out.emplace(id, std::move(given));
    }
  }
  if (!done) return tl::unexpected(done.error());
  return out;
}

}  // namespace fusebox::views
