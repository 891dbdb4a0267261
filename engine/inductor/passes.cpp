#include "engine/inductor/passes.h"

#include <chrono>

namespace fusebox::inductor {
namespace {

struct Pass {
  const char* name;
  PassResult (*run)(const graph::Graph&);
};

/// In this order. Dead code goes last because every other pass may leave some.
constexpr Pass kPasses[] = {
    {"decompose", decompose},
    {"remove_noops", removeNoops},
    {"common_subexpressions", eliminateCommonSubexpressions},
    {"dead_code", removeDeadCode},
};

}  // namespace

Result<graph::Graph> runGraphPasses(graph::Graph graph, std::vector<PassLog>* log) {
  if (auto ok = graph.verify(); !ok) return tl::unexpected(ok.error());
  // From here on `from` names nodes of the graph that came in, whatever the passes do.
  for (const graph::Node& n : graph.nodes()) graph.node(n.id).origin.from = {n.id};
  for (const Pass& pass : kPasses) {
    auto start = std::chrono::steady_clock::now();
    PassResult result = pass.run(graph);
    if (result.changed) {
      if (auto ok = result.graph.verify(); !ok) {
        return fail(ErrorCode::Internal, std::string("pass ") + pass.name + " broke the graph: " + ok.error().message,
                    graph.name);
      }
      graph = std::move(result.graph);
    }
    if (!log) continue;
    auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count();
    log->push_back({pass.name, ns, result.changed, std::move(result.detail)});
  }
  return graph;
}

}  // namespace fusebox::inductor
