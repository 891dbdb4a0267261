// Hooks on gradients, which are set when the graph has run.
#include <unordered_set>

#include <torch/csrc/autograd/function.h>

#include "engine/capture/effects/recipes.h"
#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/torch_objects.h"

namespace fusebox::capture {

namespace {

/// Results of the graph in what `recipe` makes.
void addResults(const Recipe* recipe, std::unordered_set<const Recipe*>& seen, std::vector<int64_t>& results) {
  if (!recipe || !seen.insert(recipe).second) return;
  if (recipe->kind == Recipe::Kind::GraphOutput) results.push_back(recipe->index);
  for (const RecipePtr& child : recipe->children) addResults(child.get(), seen, results);
  for (const auto& [member, value] : recipe->slots) addResults(value.get(), seen, results);
  addResults(recipe->base.get(), seen, results);
}

bool leadsTo(const at::Tensor& result, const torch::autograd::Node* leaf) {
  if (!result.defined() || !result.requires_grad()) return false;
  std::unordered_set<const torch::autograd::Node*> seen;
  std::vector<const torch::autograd::Node*> open{torch::autograd::impl::gradient_edge(result).function.get()};
  while (!open.empty()) {
    const torch::autograd::Node* node = open.back();
    open.pop_back();
    if (!node || !seen.insert(node).second) continue;
    if (node == leaf) return true;
    for (const torch::autograd::Edge& edge : node->next_edges()) open.push_back(edge.function.get());
  }
  return false;
}

}  // namespace

void Evaluation::noteHooked(PyObject* tensor) {
  hooked_.push_back({PyRef::borrow(tensor), PyRef::steal(PyObject_GetAttrString(tensor, "grad_fn")), rootCount_});
}

/// A hook that is set when the graph has run finds the history that the tensor has by then; where it was written to, eager's hook sees another gradient.
void Evaluation::requireHistories() const {
  for (const Hooked& hooked : hooked_) {
    const PyRef now = PyRef::steal(PyObject_GetAttrString(hooked.tensor.get(), "grad_fn"));
    if (now.get() != hooked.history.get())
      throw CaptureBreak{{"tensor internals", "a tensor is written to after register_hook", "", place(), stackPlaces()}, hooked.at};
  }
}

void Evaluation::noteHookedLeaf(PyObject* tensor, PyObject* hook) { hookedLeaves_.push_back({PyRef::borrow(tensor), PyRef::borrow(hook), rootCount_}); }

/// The results of a graph have one history. Where a hook on a leaf holds a result that owes it nothing, and another is made of it, the leaf would hold that
/// history and the history the leaf, which nothing frees: the graph ends before the hook is set.
void Evaluation::requireNoCycles(RecipeMaker& recipes) const {
  if (options_.fullgraph) return;
  for (const HookedLeaf& hooked : hookedLeaves_) {
    std::unordered_set<const Recipe*> seen;
    std::vector<int64_t> held;
    addResults(recipes.make(hooked.hook.get()).get(), seen, held);
    if (held.empty()) continue;
    const auto leaf = torch::autograd::impl::gradient_edge(tensorOf(hooked.tensor.get())).function;
    const std::vector<at::Tensor>& results = recipes.graphOutputs();
    const bool isApart = std::any_of(held.begin(), held.end(), [&](int64_t i) {
      const at::Tensor& result = results[static_cast<size_t>(i)];
      return result.requires_grad() && !leadsTo(result, leaf.get());
    });
    if (isApart && std::any_of(results.begin(), results.end(), [&](const at::Tensor& t) { return leadsTo(t, leaf.get()); }))
      throw CaptureBreak{{"tensor internals", "a hook on the gradient of an input holds a result, whose history would hold the input", "", place(), stackPlaces()}, hooked.at};
  }
}

}  // namespace fusebox::capture
