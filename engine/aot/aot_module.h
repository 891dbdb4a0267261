#pragma once

#include <ATen/ATen.h>
#include <ATen/FunctionalTensorWrapper.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/aot/compiler_traits.h"
#include "engine/aot/walked_way.h"
#include "engine/graph/graph.h"
#include "engine/graph/shape_env.h"
#include "engine/support/result.h"
#include "engine/trace/trace_context.h"

namespace fusebox::aot {

/// How one user-visible result is made from what the forward graph returns and from the real inputs.
struct OutputPlan {
  enum class Kind : uint8_t {
    Graph,       ///< forward result `index` itself
    Input,       ///< real input `index` itself (after write-back)
    InputView,   ///< a view of real input `index` (after write-back)
    ResultView,  ///< a view of forward result `index`, so that results alias each other as in eager
  } kind = Kind::Graph;
  int32_t index = -1;
  std::vector<std::shared_ptr<at::functionalization::ViewMeta>> views;  ///< replayed in order, none with symbols; empty: as_strided to `meta`
  int32_t parent = -1;    ///< a view that was made of output `parent`, a view too: it is made of that one, `views` starting there
  int32_t inputMemory = -1;   ///< Graph: what a function of the program's gave as a view lies in the memory of this real input, with a history of its own
  int32_t resultMemory = -1;  ///< Graph: likewise, in the memory of this forward result
  int32_t sibling = -1;   ///< output that one operator gave together with this one: they have its node in common
  uint32_t versions = 0;  ///< Graph and ResultView: how often the program wrote to it
  bool detached = false;  ///< the view is cut off from its base's gradient
  bool ownVersions = false;  ///< the view came by .data: writes to it are not counted as its base's
  bool unrecorded = false;  ///< the view was made under no_grad: eager refuses writes to it that have a gradient
  bool inference = false;   ///< a tensor of inference mode; a view is one where its base is
  bool isStale = false;     ///< its base was written since: libtorch makes its history when that is asked for, and refuses writes until then
  bool isPlain = false;     ///< the view is its strides over its base: the same elements, no pending sign
  torch::autograd::CreationMeta creation = torch::autograd::CreationMeta::DEFAULT;  ///< whether eager refuses writes to the view that it is, of any view made in inference mode
  graph::TensorMeta meta; ///< with requiresGrad as traced

  /// A view that hands its gradient on to what it is a view of.
  bool handsGradientOn() const {
    return (kind == Kind::InputView || kind == Kind::ResultView) && meta.requiresGrad && !detached && !ownVersions && !unrecorded;
  }
};

/// A write to an input that the caller must see.
struct MutationPlan {
  int32_t input = -1;
  int32_t result = -1;          ///< forward result with the new data; -1: only sizes and strides changed
  bool differentiable = false;  ///< the new value has a gradient; otherwise it is written without recording one
  bool metadata = false;        ///< sizes, strides or offset changed: restride the input to `meta` after writing
  bool inference = false;       ///< of a tensor of inference mode, written in that mode
  uint32_t versions = 1;        ///< by how much eager moves the input's version counter on
  graph::TensorMeta meta;
};

/// A tensor kept from forward for backward, in the order of the backward graph's leading placeholders.
struct SavedPlan {
  enum class Kind : uint8_t { Input, Result } kind = Kind::Result;
  int32_t index = -1;              ///< real input, or forward result
  int32_t aliasedResult = -1;      ///< a result the user sees that shares this one's memory: version checks follow it
  graph::ValueRef joint;           ///< the value in AotModule::joint
};

/// A result that other results are computed from: hooks on it, retain_grad() and autograd.grad(other, result) speak of its whole
/// gradient, not only of what the caller gave for it. A view of an input or of a result is none of the tangents: outside of the region it hands
/// its gradient on to what it is a view of.
struct InnerResult {
  int32_t tangent = -1;        ///< position in AotModule::tangents; -1: a view
  graph::ValueRef arriving;    ///< what the other results' gradients contribute, in AotModule::joint
  graph::ValueRef whole;       ///< with what was given for it; of a view, `arriving` again
  int32_t output = -1;         ///< of a view: position in AotModule::outputs
  graph::ValueRef value;       ///< the result itself, in AotModule::joint
  std::vector<int32_t> from;   ///< tangents that `arriving` is computed from
};

/// Where forward finds the value of a symbol that data decide.
struct DataSize {
  size_t symbol = 0;      ///< position in AotModule::symbols
  graph::ValueRef value;  ///< in AotModule::forward; its node's operator has no other result sizes that are unknown before it has run
  int32_t dim = 0;        ///< of whose size it is; -1: of its one element
  std::string text;       ///< for people: "what aten::nonzero finds at model.py:12"
};

/// A torch.autograd.Function of the program: how the gradients of its inputs were computed, which `AotModule::joint` does not say, where its forward
/// has no history.
struct FunctionHistory {
  graph::Graph gradient;                ///< placeholders: `reads`, then gradients of `given`; results: gradients of `inputs`
  std::vector<graph::ValueRef> outputs; ///< in AotModule::joint, as `inputs` and `reads`
  std::vector<int32_t> given;           ///< positions of `outputs` that got a gradient, ascending
  std::vector<graph::ValueRef> inputs;  ///< those that get one
  std::vector<graph::ValueRef> reads;   ///< values of forward
};

/// Everything a compiled region needs at run time. Forward results are, in order: new data of mutated inputs, results the user sees
/// or that views are made of, saved intermediates.
struct AotModule {
  graph::Graph joint;                     ///< forward and backward nodes together, as they were cut apart
  std::optional<graph::Graph> traced;     ///< `joint` as traced, where CompilerTraits::rewrite made another one of it; for people and records
  graph::Graph forward;                   ///< placeholders are the inputs, in order
  std::optional<graph::Graph> backward;   ///< placeholders: saved tensors, then one gradient for every entry of `tangents`
  std::vector<at::Tensor> constants;      ///< by Node::index of Constant nodes, shared by both graphs
  std::vector<graph::TensorMeta> inputs;
  std::vector<int32_t> memoryOf;          ///< by input: the input whose memory it was traced as a view of; -1: none. Empty: none of all
  std::vector<OutputPlan> outputs;        ///< one for each tensor given to finishTrace
  std::vector<MutationPlan> mutations;
  std::vector<SavedPlan> saved;
  std::vector<int32_t> tangents;          ///< forward results that carry a gradient, in order of the autograd node's outputs
  std::vector<int32_t> gradInputs;        ///< inputs that get a gradient; backward's outputs, in order (an output may be None)
  std::vector<InnerResult> inner;         ///< upstream first
  std::vector<Way> keepers;               ///< of operators that keep something for backward in eager
  std::vector<Way> reentrant;             ///< of checkpoints of the reentrant form, which run in whole passes alone
  std::vector<FunctionHistory> functions;
  int32_t forwardResults = 0;
  /// Sizes that may differ from call to call; every expression in the graphs and plans above is over these. AotFunction::call gets their
  /// values in this order.
  std::vector<graph::Symbol> symbols;
  std::vector<int64_t> hints;              ///< what they were while tracing
  std::vector<DataSize> dataSizes;         ///< symbols among them that forward itself gives their values, in the order in which it can
  std::vector<graph::Relation> assumptions;  ///< what was decided on those: a call for which it does not hold is another program's
  std::function<void()> beforeBackward;    ///< null, or throws where a gradient formula of the user's would now read other numbers than it did; without the GIL
  bool opaqueHistory = false;              ///< a gradient formula of the user's is inside that is none of `functions`: `joint` does not say how values depend on inputs
};

/// Ends the trace: reads off mutations and aliasing, walks backward when some output needs a gradient of some input, and splits the
/// joint graph. `outputs` are what the captured region hands on (undefined tensors allowed), `compiler` will compile the graphs.
/// Errors: Unsupported (with the reason) for programs whose effects cannot be reproduced; the caller falls back to eager.
Result<AotModule> finishTrace(trace::TraceContext& context, const std::vector<at::Tensor>& outputs, const CompilerTraits& compiler = {});

}  // namespace fusebox::aot
