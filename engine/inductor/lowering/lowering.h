#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/graph/axis_symbol.h"
#include "engine/graph/symbol_values.h"
#include "engine/inductor/ir/lazy_tensor.h"
#include "engine/inductor/ir/lowered_graph.h"
#include "engine/inductor/lowering/node_args.h"

namespace fusebox::inductor {

/// One reduction inside an operation made by Lowering::reduce.
struct ReductionSpec {
  ReduceKind kind = ReduceKind::Sum;
  DType type = DType::Float32;  ///< of the accumulator (the inputs' type)
  /// Values to accumulate, for a point of the reduced tensor.
  std::function<std::array<ValueId, 3>(BodyBuilder&, const IndexList&)> inputs;
  bool mayBeOfNothing = false;  ///< the results see to what holds over no elements; sums need not
};

/// One result of a reduction: computed from the reductions' results, stored in a tensor of its own.
struct ReductionResult {
  graph::TensorMeta meta;
  std::function<ValueId(BodyBuilder&)> value;  ///< use BodyBuilder::reduced
};

/// One result of a scan: what `value` makes of the element at each point (by BodyBuilder::scan).
struct ScanOutput {
  graph::TensorMeta meta;
  std::function<ValueId(BodyBuilder&, ValueId element)> value;
};

/// What a point of the updates adds to: an element of the target, where `mask` (-1: always) is true.
struct ScatteredValue {
  IndexList at;
  ValueId value = -1;
  ValueId mask = -1;
};

/// Dimensions as they follow each other in memory, so that neighbouring points are neighbouring elements.
std::vector<size_t> inOrderOfMemory(const graph::TensorMeta& meta);
/// A loop over each dimension of more than one element, in that order, and the point that they are at.
std::pair<std::vector<Axis>, IndexList> axesOver(const IndexList& sizes, const std::vector<size_t>& order);
/// The same in the order of the dimensions.
std::pair<std::vector<Axis>, IndexList> axesOver(const IndexList& sizes);

/// Operands in, the point to write and the value out.
using Update = std::function<ScatteredValue(BodyBuilder&, const IndexList&, const std::vector<LazyTensor>& operands)>;

/// How an extern call's operands lie in memory: as traced; those of rank 4, and its results, channels last; or, where no library would take its
/// matrices as they lie, row by row.
enum class ExternLayout : uint8_t { AsTraced, ChannelsLast, Matrices };

/// State of lowering one graph: values of nodes lowered so far, buffers and operations made so far. Lowerings of single operators
/// (tables in lower_*.cpp) work through it.
constexpr int kStreamBits = 40;  ///< a stream of random numbers has 2^40 counters of its own

class Lowering {
 public:
  Lowering(const graph::Graph& graph, const LowerOptions& options) : graph_(graph), options_(options) {}

  Result<LoweredGraph> run();

  // --- for operator lowerings -------------------------------------------------------------------------------------------
  const graph::Graph& graph() const { return graph_; }
  const LazyTensor& tensor(graph::ValueRef v) const;
  const LazyTensor& tensor(const NodeArgs& args, size_t i) const { return tensor(args.ref(i)); }
  const graph::TensorMeta& meta(graph::ValueRef v) const { return graph_.meta(v).tensor; }
  const graph::Node& current() const { return *current_; }
  bool isDeterministic() const { return options_.deterministic; }
  /// Whether a value is a result that must lie in memory as it was traced.
  bool isSeen(graph::ValueRef value) const;

  /// A tensor given by a formula. `reading` are the tensors it reads, for the accounting that decides when to make it real.
  LazyTensor formula(const graph::TensorMeta& meta, ValueFn compute, const std::vector<LazyTensor>& reading, int opCount = 1,
                     bool heavy = false);
  /// Whether a formula takes functions of tens of instructions for each element.
  static bool isDear(const Storage& storage);
  /// Memory of `meta` to which every piece is written at its start along `dim`, each by a loop of its own.
  LazyTensor joined(const graph::TensorMeta& meta, const std::vector<LazyTensor>& pieces, const std::vector<SymExpr>& starts, size_t dim);
  /// Makes the tensor's storage real, by an operation that computes it if need be.
  void realise(const LazyTensor& tensor);
  /// What it is computed from lies in memory afterwards, as nearly as is worth it: a formula that only widens narrower values is one of those still.
  void keepInMemory(const LazyTensor& tensor);
  /// Whether the tensor is, or is a view of, an input or a constant of the graph.
  bool isFromOutside(const LazyTensor& tensor) const;
  /// A real tensor that reads the buffer behind `base` with strides of its own; offset in elements of the buffer.
  LazyTensor restrided(const LazyTensor& base, const graph::TensorMeta& meta, const SymExpr& offset);
  /// One operation with a reduction section over `reducedDims` of a tensor with `sizes` and a section that stores the results.
  /// The results' sizes are those of the kept dimensions, with 1 for reduced ones where their rank says so.
  std::vector<LazyTensor> reduce(const IndexList& sizes, const std::vector<bool>& reducedDims,
                                 const std::vector<ReductionSpec>& reductions, const std::vector<ReductionResult>& results,
                                 const std::vector<LazyTensor>& reading);
  /// A copy of `start` to which every point of `sizes` adds what `update` says, by atomics. `meta` is the result's. Throws NotLowered
  /// where there are none, or where their order would matter to the program.
  LazyTensor addInto(const LazyTensor& start, const graph::TensorMeta& meta, const IndexList& sizes, const std::vector<LazyTensor>& reading,
                     const std::function<ScatteredValue(BodyBuilder&, const IndexList&)>& update);
  /// `self` with the elements that `update` names replaced, for every point of `sizes`: in the memory of `self`, where nobody needs its old
  /// value any more. nullopt where somebody does; then nothing was done. No point of `sizes` may be written twice, unless any order is right.
  std::optional<LazyTensor> storeInto(const LazyTensor& self, const IndexList& sizes, std::vector<LazyTensor> operands, const Update& update);
  /// The product of a query and a key, inside of the attention() that computes it. Nothing else may read what is made of it.
  LazyTensor scores(const graph::TensorMeta& meta);
  /// softmax(scores) @ value, of (P, R, N) scores that are a formula of product = scores() of (P, R, D) and (P, D, N), in one kernel,
  /// and the logarithm of the sums of their exponentials where `sums` is not null. Throws NotLowered where that cannot be.
  std::vector<LazyTensor> attention(const LazyTensor& scores, const LazyTensor& product, const LazyTensor& query, const LazyTensor& key,
                                    const LazyTensor& value, const graph::TensorMeta& meta, const graph::TensorMeta* sums, bool safe);
  /// The products that a fusebox::attention_gradient node stands for, in one kernel. Throws NotLowered where that cannot be.
  std::vector<LazyTensor> attentionGradient(const graph::Node& node);
  /// One operation that runs along `dim` of x, elements as `type`, in order, for all other dimensions. The results have x's sizes.
  std::vector<LazyTensor> scan(const LazyTensor& x, size_t dim, DType type, const std::vector<ScanOutput>& outputs);
  /// Random numbers of generated kernels: a number on `device` that torch's generator draws anew in every run of the graph, and for
  /// every caller a stream of counters of its own, to be added to an element's position. Throws NotLowered where eager's random
  /// numbers are wanted.
  LazyTensor randomSeed(const Device& device);
  int64_t newRandomStream() { return (randomStreams_++) << kStreamBits; }
  /// The node as a call of its operator through the dispatcher.
  std::vector<LazyTensor> externCall(const graph::Node& node, std::string reason, ExternLayout layout = ExternLayout::AsTraced);

 private:
  Result<void> lowerNode(const graph::Node& node);
  /// Whether the current node may change `self`'s memory. What still has to read it is made real first. `operands` are the node's others.
  bool mayAddTo(const LazyTensor& start, const std::vector<LazyTensor>& reading);
  bool mayChange(const LazyTensor& self, const std::vector<LazyTensor>& operands, bool repeatable);
  /// Why not; empty: it may.
  std::string whyNotChange(const LazyTensor& self, const std::vector<LazyTensor>& operands, bool repeatable);
  std::string readLater(BufferId id, const std::vector<graph::NodeId>& putBack);
  /// Nodes after the current one that only put what it makes of a part of a tensor back into that, innermost first. Empty: it is no part, or its
  /// value is looked at elsewhere.
  std::vector<graph::NodeId> putBackBy(const LazyTensor& self) const;
  bool isRead(BufferId id) const;
  bool isWrittenInput(BufferId id) const;
  /// Notes that `op`, the last operation, changes `id` in place.
  void changesInPlace(Operation& op, BufferId id);
  /// The node's operator in its in-place form, where it has one and its first operand may be changed.
  std::optional<std::vector<LazyTensor>> callInPlace(const graph::Node& node, const std::string& reason);
  std::optional<std::string> unsupportedReason(const graph::Node& node) const;
  std::optional<LazyTensor> viewWithoutCode(const graph::Node& node);
  std::optional<LazyTensor> partsOf(const LazyTensor& numbers, graph::TensorMeta meta);
  LazyTensor pairsOf(graph::TensorMeta numbers, const LazyTensor& re, const LazyTensor& im);
  std::optional<LazyTensor> numbersOf(const graph::Node& node);
  /// Throws NotLowered where a device other than the CPU lacks code for one of the values.
  void requireCode(const Device& device, const Section& section) const;
  void settle(const graph::Node& node, std::vector<LazyTensor> values);
  /// Whether the current node's value is computed or read in several places, which must see one number, or decides where a result jumps. Then 16-bit
  /// floats lose the digits that memory would not keep: a mean is of what is subtracted from it later, a maximum is among what it is compared with.
  bool isOneNumber() const;
  /// Makes the values real, and computed although nobody may read them.
  void keep(const std::vector<LazyTensor>& values);
  bool worthRealising(const Storage& storage, size_t users) const;
  /// How many elements of its result all its readers read together.
  int64_t elementsRead(const graph::Node& node) const;
  /// Whether the formula reads half as many bytes again as its result has, which lies in memory anyway (neededInMemory()).
  bool isSmallerInMemory(const graph::Node& node, const Storage& s) const;
  /// Whether this is a sum on its way (gradients of what is used often) that should not wait for its last term, with all others in memory.
  bool isAccumulating(const graph::Node& node, const Storage& s) const;
  /// Whether a formula with symbolic sizes goes through so many views that computing where it reads takes more than reading a buffer: divisions
  /// by unknown sizes do not cancel, and each view repeats those before it.
  bool readsFarAround(const LazyTensor& v) const;
  /// Whether its value is read by nothing but a cast to a smaller type, which had better be what lies in memory.
  bool isOnlyNarrowed(const graph::Node& node) const;
  BufferId newBuffer(LoweredBuffer::Kind kind, const graph::TensorMeta& meta, std::string name, int32_t index = -1);
  Operation& newOperation(Operation::Kind kind);
  void finishLoops(Operation& op, std::vector<BufferId> writes);
  std::vector<LazyTensor> finishAttention(BodyBuilder& b, const Axis& column, std::vector<Axis> outer, std::shared_ptr<const Attention> how,
                                          const std::vector<BufferId>& writes, const std::vector<graph::TensorMeta>& metas);
  /// An operation of the current node, made of the formulas of `origins`. Throws NotLowered as requireCode().
  Operation& addLoops(const Device& device, std::vector<graph::NodeId> origins, std::vector<Axis> outer, std::vector<Section> sections,
                      std::vector<BufferId> writes);
  LazyTensor bufferTensor(BufferId id, const graph::TensorMeta& meta, graph::NodeId node);
  /// A buffer that holds exactly `tensor` with the strides of `wanted`: its own, a view of it, or a copy.
  BufferId bufferFor(const LazyTensor& tensor, const graph::TensorMeta& wanted);
  /// The same where there is no code for the type: a copy made by operators. nullopt if the tensor is no strided view of a buffer.
  std::optional<BufferId> copyByOperator(const LazyTensor& tensor, const graph::TensorMeta& wanted);
  /// Makes real what may raise, so that it does before the effect that comes next.
  void realiseChecks();
  BufferId viewBuffer(BufferId base, const graph::TensorMeta& meta, const SymExpr& offset);
  graph::Argument externArgument(const graph::Argument& arg, ExternLayout layout, std::vector<BufferId>& reads);
  const InputWrite* writeOf(size_t position) const;
  LazyTensor resultOf(size_t position, const LazyTensor& value);
  /// The buffer of result `position` with the strides of `layout`, which what the program sees must have.
  BufferId resultBuffer(size_t position, graph::ValueRef ref, const graph::TensorMeta& layout);
  Result<void> emitResults(const graph::Node& output);
  BufferId baseOf(BufferId id) const {
    while (out_.buffers[static_cast<size_t>(id)].kind == LoweredBuffer::Kind::View) id = out_.buffers[static_cast<size_t>(id)].base;
    return id;
  }
  /// How a value made of `reading` is to lie in memory, and whether otherwise than it was traced: what is computed from an image that was laid
  /// otherwise for an extern call is best laid so too.
  std::pair<graph::TensorMeta, bool> laid(graph::TensorMeta meta, const std::vector<LazyTensor>& reading) const;
  /// layout_choice.cpp: whether the result of the current call, which is traced as `meta`, is better row-major.
  bool liesBetterInRows(const graph::TensorMeta& meta) const;
  std::optional<int> readersOfRows(const graph::Node& node, const IndexList& sizes, int distance) const;
  /// How result `position` is to lie in memory: as traced, or as it is laid where only compiled code reads it.
  /// A written input's new value lies as the input does.
  graph::TensorMeta resultLayout(size_t position, const LazyTensor& value, graph::TensorMeta traced) const;

  const graph::Graph& graph_;
  const LowerOptions& options_;
  const graph::Node* current_ = nullptr;
  LoweredGraph out_;
  std::vector<std::vector<LazyTensor>> values_;
  std::vector<std::vector<graph::NodeId>> users_;
  std::vector<std::pair<Device, LazyTensor>> seeds_;
  std::unordered_map<BufferId, std::vector<BufferId>> views_;  ///< by base
  std::vector<graph::NodeId> toPutBack_;  ///< by what comes after the current node, if that changes what mayChange() was asked about
  std::unordered_set<graph::NodeId> isPutBack_;  ///< nodes whose result lies in their first operand's memory when they are come to: a part was written there
  std::vector<char> isReadWhole_;  ///< by node
  std::vector<char> isReadByJumps_;  ///< by node
  std::vector<char> isInMemory_;     ///< by node: neededInMemory()
  int64_t randomStreams_ = 0;
  graph::NodeId lastRaising_ = -2;  ///< the last node that data may make raise; -2: not looked for yet
  size_t checksRealised_ = 0;  ///< of the values of this many nodes
};

/// Lowers one node to the values of its outputs. Throws NotLowered where it does not cover the arguments.
using LowerFn = std::function<std::vector<LazyTensor>(Lowering&, const graph::Node&)>;

/// All lowerings by operator name; the tables of lower_*.cpp joined.
const std::unordered_map<std::string_view, LowerFn>& loweringTable();

using LowerTable = std::unordered_map<std::string_view, LowerFn>;
void addPointwiseLowerings(LowerTable& table);
void addActivationLowerings(LowerTable& table);
void addViewLowerings(LowerTable& table);
void addJoinLowerings(LowerTable& table);
void addReductionLowerings(LowerTable& table);
void addFactoryLowerings(LowerTable& table);
void addRandomLowerings(LowerTable& table);
void addIndexingLowerings(LowerTable& table);
void addScatterLowerings(LowerTable& table);
void addScanLowerings(LowerTable& table);
void addPoolingLowerings(LowerTable& table);
void addPoolingBackwardLowerings(LowerTable& table);
void addResamplingLowerings(LowerTable& table);
void addConvolutionLowerings(LowerTable& table);
void addAttentionLowerings(LowerTable& table);
void addProductLowerings(LowerTable& table);

}  // namespace fusebox::inductor
