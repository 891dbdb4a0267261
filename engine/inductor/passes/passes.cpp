#include "engine/inductor/passes/passes.h"

#include <algorithm>

#include "engine/debug/site.h"
#include "engine/support/clock.h"

namespace fusebox::inductor {
namespace {

struct Pass {
  const char* name;
  PassResult (*run)(const graph::Graph&);
};

/// In this order. Attention is found by its softmax, which is decomposed next. Dead code goes last because every other pass may leave some.
constexpr Pass kPasses[] = {
    {"sums_of_products", sumsOfProducts},
    {"narrow_products", narrowProducts},
    {"attention", fuseAttention},
    {"complex_parts", writeComplexByParts},
    {"decompose", decompose},
    {"wide_products", widenHalfProducts},
    {"host_numbers", sendHostNumbers},
    {"remove_noops", removeNoops},
    {"common_subexpressions", eliminateCommonSubexpressions},
    {"joined_products", joinProducts},
    {"pad_products", padProducts},
    {"matmul_epilogues", fuseMatmulEpilogues},
    {"dead_code", removeDeadCode},
};

}  // namespace

std::vector<std::string> graphPassNames() {
  std::vector<std::string> names;
  for (const Pass& pass : kPasses) names.emplace_back(pass.name);
  return names;
}

Result<graph::Graph> runGraphPasses(graph::Graph graph, std::vector<PassLog>* log, const std::vector<std::string>& skipped) {
  if (auto ok = graph.verify(); !ok) return tl::unexpected(ok.error());
  // From here on `from` names nodes of the graph that came in, whatever the passes do.
  for (const graph::Node& n : graph.nodes()) graph.node(n.id).origin.from = {n.id};
  for (const Pass& pass : kPasses) {
    const int64_t start = nowNs();
    const auto before = static_cast<int64_t>(graph.nodes().size());
    const bool watched = debug::armed(debug::Kind::Pass);
    if (watched) debug::reachPass(debug::When::Before, pass.name, 1, [&] { return graph.str(); });
    const bool isSkipped = std::find(skipped.begin(), skipped.end(), pass.name) != skipped.end();
    PassResult result = isSkipped ? PassResult{{}, false, "left out: skip_passes"} : pass.run(graph);
    if (result.changed) {
      if (auto ok = result.graph.verify(); !ok) {
        return fail(ErrorCode::Internal, std::string("pass ") + pass.name + " broke the graph: " + ok.error().message,
                    graph.name);
      }
      if (watched) debug::reachPass(debug::When::After, pass.name, 1, [&] { return graph.str(); }, [&] { return result.graph.str(); });
      graph = std::move(result.graph);
    } else if (watched) {
      debug::reachPass(debug::When::After, pass.name, 1, [&] { return graph.str(); }, [&] { return graph.str(); });
    }
    if (!log) continue;
    log->push_back({pass.name, start, nowNs() - start, before, static_cast<int64_t>(graph.nodes().size()), result.changed,
                    std::move(result.detail)});
  }
  return graph;
}

}  // namespace fusebox::inductor
