#include <algorithm>
#include <unordered_set>

#include "engine/inductor/lowering/node_args.h"
#include "engine/inductor/passes/attention_finder.h"
#include "engine/inductor/passes/attention_gradient.h"
#include "engine/inductor/passes/passes.h"

/// softmax(f(query @ key)) @ value, where f changes every score by itself, is one kernel that never writes the scores:
/// flex_attention's functions, and attention as people write it. Its gradients are one as well.
namespace fusebox::inductor {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueRef;

namespace {

Graph fuseForward(const Graph& graph, const AttentionFinder& finder) {
  std::unordered_set<NodeId> products, sums;
  for (const auto& [last, found] : finder.found) {
    products.insert(found.first);
    if (found.logsumexp >= 0) sums.insert(found.logsumexp);
  }
  GraphCopy copy(graph);
  for (const Node& n : graph.nodes()) {
    if (sums.contains(n.id)) continue;  // it comes with the result
    if (products.contains(n.id)) {
      graph::ArgumentList args = copy.mappedArgs(n);
      args.resize(2);
      copy.replace(n,
                   {ValueRef{copy.to().addCall("fusebox::attention_scores", std::move(args), n.outputs, n.origin), 0}});
    } else if (const auto at = finder.found.find(n.id); at != finder.found.end()) {
      const FoundAttention& found = at->second;
      const Node& first = graph.node(found.first);
      const auto in = [&](const Node& of, size_t i) { return graph::Argument(copy.mapped(NodeArgs(of).ref(i))); };
      graph::ArgumentList args{in(graph.node(found.softmax), 0),
                               graph::Argument(copy.mapped({first.id, 0})),
                               in(first, 0),
                               in(first, 1),
                               in(n, 1),
                               graph::Argument(found.safe)};
      std::vector<graph::OutputMeta> outputs = n.outputs;
      if (found.logsumexp >= 0) outputs.push_back(graph.node(found.logsumexp).outputs[0]);
      const NodeId made = copy.to().addCall("fusebox::attention", std::move(args), std::move(outputs), n.origin);
      copy.replace(n, {ValueRef{made, 0}});
      if (found.logsumexp >= 0) copy.replace(graph.node(found.logsumexp), {ValueRef{made, 1}});
    } else {
      copy.keep(n);
    }
  }
  return withoutDeadCode(copy.to());  // the softmax, which is inside now
}

}  // namespace

PassResult fuseAttention(const Graph& whole) {
  const auto isBatched = [](const Node& n) { return isBatchedProduct(n) && isOnGpu(n); };
  if (std::count_if(whole.nodes().begin(), whole.nodes().end(), isBatched) < 2) return {};
  const Graph live = withoutDeadCode(whole);  // what nobody reads would keep the scores
  const AttentionFinder finder(live, liveNodes(live), false);
  PassResult out;
  if (!finder.found.empty()) {
    out.changed = true;
    out.graph = fuseForward(live, finder);
    out.detail = std::to_string(finder.found.size()) + " attentions as one kernel each";
  }
  PassResult gradients = fuseAttentionGradients(out.changed ? out.graph : live);
  if (!gradients.changed) return out;
  gradients.detail = out.detail + (out.changed ? ", " : "") + gradients.detail;
  return gradients;
}

}  // namespace fusebox::inductor
