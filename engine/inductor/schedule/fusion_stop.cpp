#include "engine/inductor/schedule/fusion_stop.h"

#include <array>
#include <nlohmann/json.hpp>

#include "engine/inductor/schedule/kernel_finish.h"

namespace fusebox::inductor {
namespace {

using nlohmann::json;

constexpr size_t kShownPairs = 500;

class FusionSite : public debug::Site {
 public:
  explicit FusionSite(const FusionStop& stop) : stop_(stop) {}
  std::string title() override {
    return "fusion of " + operation(stop_.decision.a) + " (" + std::to_string(stop_.a.operations.size()) +
           " operations) with " + operation(stop_.decision.b) + " (" + std::to_string(stop_.b.operations.size()) +
           "): " + stop_.outlook();
  }
  json detail() override { return row(stop_.decision); }
  Result<json> answer(const std::string& question) override {
    if (question == "kernel")
      return json{{"name", operation(stop_.decision.a)},
                  {"loop_ir", stop_.a.kernel.str() + "\n" + stop_.b.kernel.str()}};
    if (question != "fusions") return Site::answer(question);
    json answer = row(stop_.decision);
    answer["outlook"] = stop_.outlook();
    const std::vector<FusionDecision> pending = stop_.pending();
    answer["pending_count"] = pending.size();
    answer["pending"] = json::array();
    for (size_t i = 0; i < pending.size() && i < kShownPairs; ++i) answer["pending"].push_back(row(pending[i]));
    return answer;
  }
  std::span<const std::string_view> questions() const override {
    static constexpr std::array<std::string_view, 2> kQuestions{"fusions", "kernel"};
    return kQuestions;
  }

 private:
  const std::string& operation(int32_t id) const { return stop_.lowered.operations[static_cast<size_t>(id)].name; }
  json row(const FusionDecision& d) const {
    return {{"a", operation(d.a)}, {"b", operation(d.b)}, {"kind", d.kind}, {"score_bytes", d.scoreBytes}};
  }
  const FusionStop& stop_;
};

/// The two first operations, then the others, nodes, and the fused kernel's name.
std::vector<std::string> namesOf(const FusionStop& stop) {
  const LoweredGraph& lowered = stop.lowered;
  const auto operation = [&](int32_t id) -> const Operation& { return lowered.operations[static_cast<size_t>(id)]; };
  std::vector<std::string> names{operation(stop.decision.a).name, operation(stop.decision.b).name};
  std::vector<int32_t> all = stop.a.operations;
  all.insert(all.end(), stop.b.operations.begin(), stop.b.operations.end());
  const std::string fused = fusedName(lowered, all, 0);
  names.push_back(fused.substr(0, fused.rfind('_')));
  for (int32_t id : all) {
    names.push_back(operation(id).name);
    for (graph::NodeId node : operation(id).origins)
      if (static_cast<size_t>(node) < lowered.nodeNames.size())
        names.push_back(lowered.nodeNames[static_cast<size_t>(node)]);
  }
  return names;
}

}  // namespace

debug::Verdict::Fusion stopAtFusion(const FusionStop& stop) {
  const std::vector<std::string> names = namesOf(stop);
  FusionSite site(stop);
  debug::Event event;
  event.kind = debug::Kind::Fusion;
  event.names = names;
  return debug::reach(event, site).fusion;
}

}  // namespace fusebox::inductor
