#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "engine/aot/second_order.h"
#include "engine/graph/symbol_values.h"

namespace torch::autograd {
struct Node;
}

namespace fusebox::aot {

/// What happened as the gradient of a function of the program's own was traced: its gradients, and where they come from. Nodes before `begun` were there already.
struct TracedFormula {
  std::span<const std::optional<graph::ValueRef>> outputs, inputs;  ///< of the function, in AotModule::joint
  std::span<const at::Tensor> given, made;                          ///< gradients, below functionalisation
  graph::NodeId begun = 0;
};

/// None where the formula reads what is neither of forward nor a gradient that it was given, draws numbers, or is not known to be linear in what it was given.
std::optional<FunctionHistory> functionHistory(const graph::Graph& joint, const TracedFormula& traced);

/// Values of the joint graph that functions need whose results are computed for `results`: what their inputs are and their formulas read.
std::vector<graph::ValueRef> neededByFunctions(const AotModule& module, const std::vector<graph::ValueRef>& given,
                                               const std::vector<std::optional<graph::ValueRef>>& results);

/// Gives the results of such functions their history while the graph that they are in runs again.
class FunctionsAgain {
 public:
  /// Where a value of the graph that runs belongs to a function.
  struct Place {
    enum class Kind : uint8_t { Output, Input, Read } kind = Kind::Output;
    size_t function = 0, index = 0;
  };
  using Places = std::multimap<graph::ValueRef, Place>;

  /// `places` outlive this.
  FunctionsAgain(std::shared_ptr<const AotModule> module, const Places& places, const graph::SymbolValues& symbols);
  ~FunctionsAgain();
  FunctionsAgain(const FunctionsAgain&) = delete;

  /// In the order of the graph, its inputs first; again where a value was exchanged.
  void met(graph::ValueRef ref, at::Tensor& value);

 private:
  class Formula;
  struct Call;
  void giveHistory(const Place& place, at::Tensor& value);

  std::shared_ptr<const AotModule> module_;
  const Places& places_;
  const graph::SymbolValues symbols_;
  std::vector<Call> calls_;
};

}  // namespace fusebox::aot
