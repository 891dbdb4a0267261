#pragma once

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/aot/aot_function.h"
#include "engine/aot/forward_streams.h"
#include "engine/aot/function_history.h"
#include "engine/aot/gradient_graph.h"
#include "engine/aot/kept_values.h"
#include "engine/aot/second_order.h"
#include "engine/aot/tensor_hooks.h"
#include "engine/graph/symbol_values.h"

namespace fusebox::aot {

/// Compiled code that outlives its AotFunction because autograd graphs still need it.
struct AotFunction::Shared {
  /// How gradients of one kind are computed; each part is made when it is first wanted.
  struct GradientCode {
    /// For one pass. What it does not read is not looked at: eager's operators beside its way do not either.
    struct Form {
      std::shared_ptr<const Executor> executor;
      std::vector<bool> reads;  ///< placeholders: saved values, then tangents
    };
    struct SecondForm {
      graph::Graph graph;
      std::vector<bool> reads;  ///< SecondOrder::feeds
      FunctionsAgain::Places functions;
      std::map<graph::ValueRef, size_t> saved;    ///< values it computes that were kept too: positions in AotModule::saved
      std::map<graph::ValueRef, size_t> results;  ///< values it computes that the program has: positions in AotModule::inner, from its end on in tangents
    };
    std::map<Pass, Form> forms;
    std::map<Pass, SecondForm> secondForms;
    std::shared_ptr<const SecondOrder> second;      ///< for gradients that are differentiated again (create_graph=True)
    std::vector<graph::TensorMeta> given;           ///< sizes, strides and dtypes that are expected of the given gradients
    std::vector<std::vector<int32_t>> tangentsRead; ///< for every result, the given gradients that it is computed from
  };

  std::shared_ptr<const AotModule> module;
  ForwardExecutor forward;
  BackwardCompiler compileBackward;
  std::once_flag savedOnce;
  std::vector<c10::DimVector> savedStrides;  ///< of the tensors kept for backward, the same in every call; set with the first. Not where there are symbols
  std::vector<c10::Device> otherDevices;     ///< of saved tensors and gradients, whose streams libtorch's engine does not set; set with it
  std::vector<bool> differentiatedFrom;      ///< inputs that gradients of gradients start from; set with the first call
  GradientBuckets buckets;
  std::atomic<bool> hooksPassedOver = false;  ///< a tensor hook on one of several results got no gradient: they get nodes of their own from then on
  std::mutex mutex;
  std::array<GradientCode, kGradientsKinds> code;  ///< guarded by mutex; nothing changes once it is set

  /// Compiles on the first call. Throws c10::Error when compiling failed. `allIsKept`: no saved value was given up, so that code for more than the
  /// pass could read them all.
  const GradientCode::Form& form(Gradients which, Pass pass, bool allIsKept = true);
  const SecondOrder& secondOrder(Gradients which);
  graph::Graph graphOf(Gradients which, const Pass& pass) const;
  const GradientCode::SecondForm& secondForm(Gradients which, Pass pass);
  /// With `given` and `tangentsRead` filled in.
  const GradientCode& interfaceOf(Gradients which);
  /// Inputs that the same results contribute to; those without a gradient are in none.
  struct Part {
    std::vector<int32_t> tangents;  ///< ascending
    std::vector<int32_t> gradients; ///< positions in AotModule::gradInputs, ascending
  };
  const std::vector<Part>& parts();
  /// What a whole pass runs one after the other; a single stage where nobody waits for some gradients before the others.
  struct Stage {
    BackwardStage cut;
    std::vector<bool> reads;  ///< placeholders: saved values, tangents, what was received
    std::shared_ptr<const Executor> executor;
  };
  const std::vector<Stage>& stages();
  size_t stageSlots() const { return stageSlots_; }  ///< of what stages hand on
  const Executor& executorOf(size_t stage);
  /// Of every saved value.
  const std::vector<std::vector<Way>>& readers();

 private:
  std::once_flag partsOnce_, readersOnce_, stagesOnce_;
  std::vector<Part> parts_;
  std::vector<Stage> stages_;
  size_t stageSlots_ = 0;
  std::vector<std::vector<Way>> readers_;

  GradientCode& describe(Gradients which, const graph::Graph& graph);
};

/// Tangents from `given`, undefined where the entry of `reads` from `first` on says that nobody looks.
std::vector<at::Tensor> gradientsAs(const std::vector<graph::TensorMeta>& expected, const graph::SymbolValues& symbols,
                                    const torch::autograd::variable_list& given, const std::vector<bool>& reads, size_t first);
/// Whether a transform (vmap) of the backward pass gives them: no memory that compiled code could read.
bool isTransformed(const torch::autograd::variable_list& given);
/// Results whose gradient comes only from tangents that got none: they get none either, where the graph would give zeros. `reads`: GradientCode::tangentsRead.
std::vector<size_t> withoutGradient(const std::vector<std::vector<int32_t>>& reads, const torch::autograd::variable_list& given);

/// The autograd node of one call of a compiled region: inputs are the gradients of AotModule::tangents, outputs those of gradInputs.
class CompiledNode : public torch::autograd::Node {
 public:
  /// `symbolValues`: of AotModule::symbols in this call.
  CompiledNode(std::shared_ptr<AotFunction::Shared> shared, torch::autograd::edge_list next, std::span<const int64_t> symbolValues);

  /// Keeps what backward reads. `results` are the forward graph's; call after the differentiable ones got their history.
  void save(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& results);
  torch::autograd::variable_list apply(torch::autograd::variable_list&& given) override;
  void release_variables() override;
  std::string name() const override { return "CompiledFunctionBackward"; }
  HooksOfResults::Hooks& tensor_pre_hooks() noexcept override;
  void compiled_args(torch::dynamo::autograd::CompiledNodeArgs& args) const override;
  torch::autograd::variable_list apply_with_saved(const torch::autograd::variable_list& given, torch::dynamo::autograd::SwapSavedVariables& swapped) override;
  /// What a call of gradients() that compiled autograd writes down depends on.
  void collectSaved(torch::dynamo::autograd::CompiledNodeArgs& args) const;
  /// applyPart() and gradients() of inner results, written down.
  torch::autograd::variable_list tracedPart(torch::dynamo::autograd::SwapSavedVariables& swapped, size_t part, const torch::autograd::variable_list& given);
  torch::autograd::variable_list tracedInner(torch::dynamo::autograd::SwapSavedVariables& swapped, const torch::autograd::variable_list& given);

  /// `given`: one gradient for every tangent, undefined where there is none. Differentiable in gradient mode.
  /// `isLast`: nobody asks again, so that what was saved is given up as soon as it has been read.
  torch::autograd::variable_list gradients(Gradients which, torch::autograd::variable_list given, bool isLast = false);

  /// The region's edges are those of `parts`, nodes in the order of Shared::parts().
  void split(const std::vector<std::shared_ptr<torch::autograd::Node>>& parts) { partNodes_.assign(parts.begin(), parts.end()); }
  bool isSplit() const { return !partNodes_.empty(); }
  /// Where it is split: the gradient of a tangent in the pass under way, ahead of the parts that it leads to.
  void note(size_t tangent, const at::Tensor& gradient);
  /// Gradients of a part's inputs; `given` are its tangents'.
  torch::autograd::variable_list applyPart(size_t part, const torch::autograd::variable_list& given);
  /// After applyPart(), where nothing is kept.
  void partWalked(size_t part);

  /// The region's edges are those of `stages`, nodes in the order of Shared::stages().
  void stage(const std::vector<std::shared_ptr<torch::autograd::Node>>& stages) { stageNodes_.assign(stages.begin(), stages.end()); }
  bool isStaged() const { return !stageNodes_.empty(); }
  /// The gradients of a stage, one for each of BackwardStage::gradients, then what leads to the next stage; `given` (looked at in the first) are the tangents.
  torch::autograd::variable_list applyStage(size_t stage, torch::autograd::variable_list&& given);
  /// After applyStage(), where nothing is kept.
  void stageWalked(size_t stage);

  /// Where the history of an entry of AotModule::inner begins.
  void addInner(size_t position, const torch::autograd::Edge& edge) { inner_.push_back({position, edge.function, edge.input_nr}); }
  /// Where the history of the result of a tangent begins.
  void addResult(size_t tangent, const torch::autograd::Edge& edge) { results_.push_back({tangent, edge.function, edge.input_nr}); }
  /// Whether anybody looks at the gradients of inner results in the backward pass under way. The first answer holds for all of it,
  /// since hooks can go away while it runs.
  bool innerWatched();
  /// Where compiled autograd writes a pass down, nodes of views are traced whatever arrives, and want a gradient.
  bool isCutWhereTraced();

 private:
  std::vector<at::Tensor> prepare(const std::vector<graph::TensorMeta>& expected, const torch::autograd::variable_list& given,
                                  const std::vector<bool>& reads, size_t first) const {
    return gradientsAs(expected, symbols_, given, reads, first);
  }
  torch::autograd::variable_list traced(torch::dynamo::autograd::SwapSavedVariables& swapped, Gradients which, const Pass& pass,
                                        const torch::autograd::variable_list& given);
  /// The node of a part or stage that gradient `k` of the inputs leaves from, and its place there; null: none does.
  std::pair<std::shared_ptr<torch::autograd::Node>, size_t> leavesFrom(size_t k) const;
  /// What gradient `k` of the inputs goes to; invalid where that is gone.
  torch::autograd::Edge edgeOf(size_t k) const;
  torch::autograd::edge_list edges() const;
  bool isWanted(size_t k) const;
  /// gradients() under the lock; `pass` names what is given and wanted.
  torch::autograd::variable_list compute(Gradients which, torch::autograd::variable_list given, const Pass& pass, bool isLast);
  /// The pass under way.
  Pass passOf(Gradients which, const torch::autograd::variable_list& given, size_t results) const;
  /// Throws where an operator on the way of `pass` gave up what it kept in an earlier one, or runs in whole passes alone.
  void refuse(const Way& pass) const;
  /// Gives up the saved values that only operators read which gave up what they kept.
  void giveUpSpent();
  /// What was saved for position `i`, with the strides that compiled code expects: hooks may have handed back others.
  at::Tensor unpackSaved(size_t i);
  /// None: a hook on saved tensors gave back other numbers than it was given, so that gradients are not what is computed of the inputs.
  std::optional<torch::autograd::variable_list> differentiable(const SecondOrder& second, const AotFunction::Shared::GradientCode::SecondForm& form,
                                                               const std::vector<at::Tensor>& given);
  bool isKeptAs(size_t saved, const at::Tensor& computed);
  torch::autograd::variable_list refuseDoubleBackward(torch::autograd::variable_list gradients, const torch::autograd::variable_list& given,
                                                      const std::string& why) const;

  struct Input {
    at::Tensor tensor;
    uint32_t version = 0;
  };
  static Input keptInput(const at::Tensor& input);
  /// `value`, which is input `input` or a copy of it, with the history that the input had in this call.
  at::Tensor withHistory(const at::Tensor& value, int32_t input) const;

  /// Devices of tensors that backward works with, but the one whose stream libtorch's engine makes current for this node.
  std::vector<c10::Device> otherDevices(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& results);

  std::shared_ptr<AotFunction::Shared> shared_;
  std::vector<int64_t> symbolValues_;
  graph::SymbolValues symbols_;
  std::vector<c10::DimVector> savedStrides_;  ///< Shared::savedStrides, of this call, where sizes change
  ForwardStreams streams_;
  std::vector<torch::autograd::SavedVariable> saved_;
  std::vector<bool> isGivenUp_;  ///< by saved value
  std::vector<Way> spent_;       ///< of passes after which nothing was kept
  std::optional<Way> latest_;    ///< of a pass that nothing is kept after
  std::vector<Input> inputs_;    ///< those that differentiating again starts from
  std::mutex mutex_;

  /// What parts have in common in one pass.
  struct Walk {
    int task = -1;                               ///< of libtorch's engine
    torch::autograd::variable_list given, made;  ///< by tangent and by gradient; `made` is empty until a part is reached
    std::vector<bool> isComputed;                ///< tangents that `made` was computed from
    std::vector<bool> isAwaited;                 ///< parts whose gradients are in `made`
    Way way;
  };
  Walk& walkUnderWay();
  void partWalkedLocked(size_t part, bool isKept);
  std::vector<std::weak_ptr<torch::autograd::Node>> partNodes_;
  std::deque<Walk> walks_;  ///< the latest ones

  /// What stages have in common in one pass.
  struct StagedPass {
    int task = -1;                               ///< of libtorch's engine
    bool isLast = false;                         ///< nobody asks again
    torch::autograd::variable_list made;         ///< of a pass that the first stage computed all of
    std::vector<at::Tensor> inputs;              ///< saved values and tangents, until their last stage
    std::vector<at::Tensor> slots;               ///< BackwardStages::slots
    bool isAtOnce() const { return inputs.empty(); }
  };
  StagedPass* stagedPassUnderWay();
  void endStages();
  at::Tensor stageToken() const;
  void beginStages(StagedPass& pass, torch::autograd::variable_list&& given);
  torch::autograd::variable_list runStage(StagedPass& pass, size_t stage);
  std::vector<std::weak_ptr<torch::autograd::Node>> stageNodes_;
  std::deque<StagedPass> stagedPasses_;  ///< the latest ones

  HooksOfResults::Hooks hooksOfResults_;  ///< one, made when the first hook is met; guarded by watchMutex_

  struct Beginning {
    size_t position;
    std::weak_ptr<torch::autograd::Node> node;
    uint32_t input;
  };
  std::vector<Beginning> inner_, results_;
  std::mutex watchMutex_;
  std::deque<std::pair<int, bool>> watched_;  ///< by graph task, the latest ones; guarded by watchMutex_
};

}  // namespace fusebox::aot
