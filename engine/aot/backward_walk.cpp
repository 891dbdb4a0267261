#include "engine/aot/backward_walk.h"

#include <ATen/EmptyTensor.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>

#include <queue>
#include <unordered_map>

namespace fusebox::aot {
namespace {

using torch::autograd::Node;
using torch::autograd::variable_list;

/// What the walk knows of one node.
struct Visit {
  int pending = 0;       ///< edges into it that have not delivered
  bool needed = false;   ///< some end lies behind it
  variable_list inputs;  ///< gradients gathered so far
  std::vector<std::pair<size_t, uint32_t>> seeds;  ///< given for its inputs: position of the seed, and which input
  std::vector<std::pair<size_t, uint32_t>> views;  ///< WalkObserver::views that it is the history of, and which input
};

/// Runs `body` when the Engine reaches it.
struct Body : Node {
  explicit Body(std::function<void()> run) : run_(std::move(run)) {}
  variable_list apply(variable_list&&) override {
    run_();
    return {};
  }

 private:
  const std::function<void()> run_;
};

/// Runs `body` on this thread as if no backward were under way. Formulas skip what the backward that runs does not want (as inside
/// torch.autograd.grad(create_graph=True), whose backward meets a compiled function): in a backward of its own, which wants all, they don't.
void apartFromBackward(const std::function<void()>& body) {
  const auto* wanted = torch::autograd::get_current_graph_task_exec_info();
  if (!wanted || wanted->empty()) return body();
  auto node = std::make_shared<Body>(body);
  // One element on the CPU: the Engine stays on this thread. No dispatch: nothing of it is traced.
  const at::Tensor one = at::detail::empty_cpu({}, at::kFloat);
  node->add_input_metadata(one);
  torch::autograd::Engine::get_base_engine().execute({{node, 0}}, {one}, /*keep_graph=*/true, /*create_graph=*/false,
                                                     /*accumulate_grad=*/true);
}

class Walk {
 public:
  Walk(std::span<const GradientSeed> seeds, std::span<const std::shared_ptr<Node>> ends,
       const WalkObserver& observer)
      : observer_(observer), seeds_(seeds), results_(ends.size()) {
    for (size_t i = 0; i < ends.size(); ++i)
      if (ends[i]) ends_[ends[i].get()].push_back(i);
    for (size_t i = 0; i < seeds.size(); ++i) plant(i);
    explore();
    for (size_t i = 0; i < observer.views.size(); ++i) {
      const auto edge = torch::autograd::impl::gradient_edge(observer.views[i]);
      const auto reached = visits_.find(edge.function.get());
      if (reached == visits_.end()) continue;
      reached->second.views.emplace_back(i, edge.input_nr);
      keep_.push_back(edge.function);
    }
  }

  std::vector<at::Tensor> run() {
    for (auto* root : roots_)
      if (visits_.at(root).pending == 0) ready_.push(root);
    apartFromBackward([this] {
      at::NoGradGuard noGrad;
      while (!ready_.empty()) {
        auto* node = ready_.top();
        ready_.pop();
        step(node);
      }
    });
    return std::move(results_);
  }

 private:
  static void add(at::Tensor& into, const at::Tensor& gradient) {
    if (gradient.defined()) into = into.defined() ? at::add(into, gradient) : gradient;
  }

  variable_list& inputsOf(Node* node) {
    auto& inputs = visits_[node].inputs;
    if (inputs.empty()) inputs.resize(node->num_inputs());
    return inputs;
  }

  void plant(size_t seed) {
    auto edge = torch::autograd::impl::gradient_edge(seeds_[seed].root);
    auto* node = edge.function.get();
    if (!visits_.count(node)) roots_.push_back(node);
    visits_[node].seeds.emplace_back(seed, edge.input_nr);
    keep_.push_back(edge.function);
  }

  /// Adds what was given for the results that `visit` is the history of to what arrived from others.
  void addSeeds(const Visit& visit, variable_list& inputs) {
    const variable_list arrived = visit.seeds.empty() ? variable_list() : inputs;
    for (auto& [seed, slot] : visit.seeds) add(inputs[slot], seeds_[seed].gradient);
    for (auto& [seed, slot] : visit.seeds)
      if (arrived[slot].defined() && observer_.met) observer_.met(seed, arrived[slot], inputs[slot]);
    for (auto& [view, slot] : visit.views)
      if (inputs[slot].defined()) inputs[slot] = observer_.passing(view, inputs[slot]);
  }

  // Depth first without recursion: counts edges, and on leaving a node knows whether an end lies behind it.
  void explore() {
    std::vector<std::pair<Node*, size_t>> path;
    std::unordered_map<Node*, bool> entered;
    for (auto* root : roots_) {
      if (!entered.emplace(root, true).second) continue;
      path.emplace_back(root, 0);
      visits_[root].needed = ends_.count(root) > 0;
      while (!path.empty()) {
        auto& [node, next] = path.back();
        if (next == node->num_outputs()) {
          bool needed = visits_[node].needed;
          path.pop_back();
          if (!path.empty() && needed) visits_[path.back().first].needed = true;
          continue;
        }
        auto* target = node->next_edge(next++).function.get();
        if (!target) continue;
        auto& visit = visits_[target];
        ++visit.pending;
        if (entered.emplace(target, true).second) {
          visit.needed = ends_.count(target) > 0;
          path.emplace_back(target, 0);
        } else if (visit.needed) {
          visits_[path.back().first].needed = true;
        }
      }
    }
  }

  variable_list evaluate(Node* node, variable_list inputs) {
    if (observer_.before) observer_.before(*node);
    for (auto& hook : node->pre_hooks()) inputs = (*hook)(inputs);
    const variable_list given = inputs;
    auto outputs = (*node)(std::move(inputs));
    if (observer_.after) observer_.after(given, outputs);
    // Sums broadcast dimensions and casts dtypes, as the Engine does between nodes.
    torch::autograd::validate_outputs(node->next_edges(), outputs,
                                      [&](const std::string& message) { return node->name() + ": " + message; });
    for (auto& hook : node->post_hooks()) outputs = (*hook)(outputs, given);
    return outputs;
  }

  void step(Node* node) {
    auto inputs = std::move(inputsOf(node));
    bool needed = visits_.at(node).needed;
    addSeeds(visits_.at(node), inputs);
    for (auto& hook : node->tensor_pre_hooks()) inputs = (*hook)(inputs);
    for (auto& [index, hook] : node->retains_grad_hooks()) inputs = (*hook)(inputs);
    if (auto end = ends_.find(node); end != ends_.end())
      for (auto i : end->second) results_[i] = inputs[0];
    bool isLeaf = dynamic_cast<torch::autograd::AccumulateGrad*>(node) != nullptr;
    variable_list outputs;
    if (needed && !isLeaf && node->num_outputs() > 0) outputs = evaluate(node, std::move(inputs));
    for (size_t i = 0; i < node->num_outputs(); ++i) {
      auto& edge = node->next_edge(i);
      if (!edge.function) continue;
      if (i < outputs.size()) add(inputsOf(edge.function.get())[edge.input_nr], outputs[i]);
      if (--visits_.at(edge.function.get()).pending == 0) ready_.push(edge.function.get());
    }
  }

  struct Later {
    bool operator()(const Node* a, const Node* b) const { return a->sequence_nr() < b->sequence_nr(); }
  };
  const WalkObserver& observer_;
  std::span<const GradientSeed> seeds_;
  std::vector<at::Tensor> results_;
  std::unordered_map<Node*, std::vector<size_t>> ends_;
  std::unordered_map<Node*, Visit> visits_;
  std::vector<Node*> roots_;
  std::vector<std::shared_ptr<Node>> keep_;
  std::priority_queue<Node*, std::vector<Node*>, Later> ready_;
};

}  // namespace

std::vector<at::Tensor> walkBackward(std::span<const GradientSeed> seeds, std::span<const std::shared_ptr<Node>> ends,
                                     const WalkObserver& observer) {
  return Walk(seeds, ends, observer).run();
}

}  // namespace fusebox::aot
