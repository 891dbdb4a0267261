#pragma once

#include <ATen/ATen.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/graph/shape_env.h"
#include "engine/trace/break_error.h"
#include "engine/trace/data_sizes.h"
#include "engine/trace/symbolic_geometry.h"
#include "engine/trace/zero_tensors.h"

namespace fusebox::trace {

class TraceContext;
class Recorder;
class FunctionScope;

/// What to do with a real tensor that reached an operator without having been swapped for a stand-in.
struct Lift {
  enum class Kind : uint8_t {
    Input,     ///< it is input `index` of this trace (the policy called TraceContext::input)
    Constant,  ///< its data never changes: copy it into the graph
    Break,     ///< raise BreakError(UnknownTensor, reason, hint)
  } kind = Kind::Break;
  int32_t index = -1;
  std::string reason, hint;

  static Lift input(int32_t index) { return {Kind::Input, index, {}, {}}; }
  static Lift constant() { return {Kind::Constant, -1, {}, {}}; }
  static Lift breakWith(std::string reason, std::string hint) { return {Kind::Break, -1, std::move(reason), std::move(hint)}; }
};
using LiftPolicy = std::function<Lift(const at::Tensor& real)>;
/// The user's position at this moment; called once for every recorded operator, so it should only copy a shared pointer.
using ProvenanceSource = std::function<graph::Provenance()>;

/// One real tensor and what stands for it in the trace.
struct TracedInput {
  int32_t index = -1;
  std::string name;
  at::Tensor real;
  at::Tensor standIn;         ///< what user code computes with
  bool requiresGrad = false;  ///< of the real tensor, at the start
  bool isLeaf = true;
  graph::TensorMeta meta;
  const void* storage = nullptr;  ///< identity of the stand-in's storage at the start
  std::shared_ptr<torch::autograd::Node> gradEdge;  ///< where the stand-in's gradient arrives; null without requiresGrad
  int32_t memoryOf = -1;  ///< the earlier input whose memory the stand-in is a view of (TraceContext::setInputsShareMemory); -1: none
};

/// A call of a torch.autograd.Function of the program: its node, and the values of its results (by the node's inputs) and arguments (by its edges), where
/// they are of this trace.
struct TracedFunction {
  std::shared_ptr<torch::autograd::Node> node;
  std::vector<std::optional<graph::ValueRef>> outputs, inputs;
  bool callsOthers = false;  ///< a backward among those traced calls a function, whose own backward would be asked for its gradient
};

/// A checkpoint of the reentrant form: nodes of its function have sequence numbers from `first` on and before `end`.
struct ReentrantCheckpoint {
  uint64_t first = 0, end = 0;
};

/// One capture: owns the recorded graph and the stand-ins. Not thread-safe; active on the thread that holds an Active.
///
/// Usage: make it, call input() for what the frame reads, run the frame inside an `Active`, hand the results to
/// aot::finishTrace(). While a context is active every operator that libtorch dispatches on this thread is recorded instead of run.
class TraceContext {
 public:
  TraceContext(LiftPolicy lift, ProvenanceSource provenance);
  /// A trace inside of another one, with its symbols, of something that is thrown away: real tensors are constants.
  explicit TraceContext(TraceContext& outer);
  ~TraceContext();
  TraceContext(const TraceContext&) = delete;
  TraceContext& operator=(const TraceContext&) = delete;

  /// Turns tracing on for this thread; restores what was before. May be nested inside NoTrace.
  class Active {
   public:
    explicit Active(TraceContext& context);
    ~Active();
    Active(const Active&) = delete;

   private:
    struct State;
    std::unique_ptr<State> state_;
  };

  /// The stand-in of `real`: same dtype, device, sizes, strides, offset, requires_grad and leaf-ness, no data. The same tensor twice
  /// is one input. Its Python class is plain torch.Tensor; capture sets another. Throws BreakError for layouts that cannot be traced
  /// (sparse, quantised, nested, dispatch subclasses). Callable whether the context is active or not.
  /// Expressions in `geometry` are of shapes() and have the tensor's numbers now; without any it is static.
  const TracedInput& input(const at::Tensor& real, std::string name = {}, const SymbolicGeometry& geometry = {});
  /// From now on an input that lies within the memory of an earlier one is a view of that, so that a write to one is seen through the other.
  /// Otherwise inputs are computed with as if no two shared memory.
  void setInputsShareMemory(bool share) { inputsShareMemory_ = share; }
  /// The symbols of this trace and what was decided on them. Its decisions are guards; after the context's end none can be made.
  graph::ShapeEnv& shapes() { return *shapes_; }
  const std::shared_ptr<graph::ShapeEnv>& sharedShapes() const { return shapes_; }
  /// Input index of a real tensor or of its stand-in.
  std::optional<int32_t> inputOf(const at::Tensor& tensor) const;
  const std::deque<TracedInput>& inputs() const { return inputs_; }

  /// Whether an input was written or restrided so far, be it with another input's data.
  bool wroteInputs() const;

  /// Whether `tensor` carries no data because it belongs to this trace (stand-in or computed).
  bool owns(const at::Tensor& tensor) const;
  /// Number of operators recorded so far; capture uses it to tell whether a call traced something.
  size_t recordedOps() const;
  /// What was recorded so far, for tests and messages: functional, placeholders where they were first used.
  const graph::Graph& graph() const;
  /// Data of Constant nodes, by Node::index.
  const std::vector<at::Tensor>& constants() const;

  /// Asked with the name of an operator that is a function of Python before it is recorded: it will run with the graph. Raises BreakError
  /// where something that the program did before it would come later then.
  void setEffectPolicy(std::function<void(const std::string& op)> policy) { beforeEffect_ = std::move(policy); }
  const std::function<void(const std::string& op)>& effectPolicy() const { return beforeEffect_; }

  /// While this lives, an operator that takes a number may be given a 0-dimensional tensor of floats instead: the number is read when the
  /// graph runs. Otherwise, as where the program asks for item(), that is a break.
  class NumbersAreTensors {
   public:
    explicit NumbersAreTensors(TraceContext& context) : context_(context), before_(std::exchange(context.numbersAreTensors_, true)) {}
    ~NumbersAreTensors() { context_.numbersAreTensors_ = before_; }
    NumbersAreTensors(const NumbersAreTensors&) = delete;

   private:
    TraceContext& context_;
    bool before_;
  };
  bool numbersAreTensors() const { return numbersAreTensors_; }
  /// Whether capture may stop at an operator only because eager warns of it. It may until told otherwise.
  bool mayStop() const { return mayStop_; }
  void setMayStop(bool may) { mayStop_ = may; }
  /// Whether an operator of inference mode has written; where the region began in another mode, tensors of that mode are written in it again.
  bool writesInInference() const { return writesInInference_; }
  void noteInferenceWrite() { writesInInference_ = true; }
  /// Of the function that is being traced and runs as often as data say; null: none.
  FunctionScope* function() const { return function_; }
  void enterFunction(FunctionScope* function) { function_ = function; }
  ZeroTensors& zeroTensors() { return zeroTensors_; }
  DataSizes& dataSizes() { return dataSizes_; }
  std::vector<TracedFunction>& functions() { return functions_; }
  std::vector<ReentrantCheckpoint>& reentrantCheckpoints() { return reentrantCheckpoints_; }

  Recorder& recorder() { return *recorder_; }
  const LiftPolicy& liftPolicy() const { return lift_; }
  /// The context that is active on this thread, or null.
  static TraceContext* current();

 private:
  at::Tensor withPendingSign(const at::Tensor& traced, const at::Tensor& real);
  const TracedInput* memoryFor(const TracedInput& made) const;
  at::Tensor viewInto(const TracedInput& memory, const TracedInput& made);

  LiftPolicy lift_;
  std::function<void(const std::string& op)> beforeEffect_;
  bool inputsShareMemory_ = false;
  bool numbersAreTensors_ = false;
  bool mayStop_ = true, writesInInference_ = false;
  FunctionScope* function_ = nullptr;
  ZeroTensors zeroTensors_;
  DataSizes dataSizes_;
  std::vector<TracedFunction> functions_;
  std::vector<ReentrantCheckpoint> reentrantCheckpoints_;
  std::shared_ptr<graph::ShapeEnv> shapes_;
  bool ownsShapes_ = true;
  std::unique_ptr<Recorder> recorder_;
  std::deque<TracedInput> inputs_;
  std::unordered_map<const c10::TensorImpl*, int32_t> indexOf_;
};

/// Switches tracing off on this thread for a while, so that real work can be done inside a trace.
class NoTrace {
 public:
  NoTrace();
  ~NoTrace();
  NoTrace(const NoTrace&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// True for a tensor without data that belongs to any trace, finished ones included.
bool isTraceTensor(const at::Tensor& tensor);

}  // namespace fusebox::trace
