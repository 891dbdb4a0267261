#include "engine/capture/rules/unnoticed_calls.h"

#include "engine/graph/operator_facts.h"
#include "engine/trace/trace_context.h"

namespace fusebox::capture {

UnnoticedCalls::UnnoticedCalls(Evaluation& evaluation)
    : e_(evaluation), before_(e_.effectsSoFar()), made_(evaluation), first_(e_.trace().graph().nodes().size()) {}

std::string UnnoticedCalls::whyNoticed() const {
  if (!(e_.effectsSoFar() == before_) || made_.changed()) return "have side effects";
  const auto& nodes = e_.trace().graph().nodes();
  for (size_t i = first_; i < nodes.size(); ++i) {
    if (nodes[i].kind != graph::NodeKind::Call) continue;
    const graph::OperatorFacts& facts = graph::factsOf(nodes[i].op);
    if (graph::drawsRandom(nodes[i])) return "draw random numbers";
    if (facts.foreign || facts.effectful || facts.collective) return "call " + nodes[i].op + ", which others may notice";
  }
  return {};
}

}  // namespace fusebox::capture
