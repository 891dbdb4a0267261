#pragma once

#include "engine/inductor/lowering/node_args.h"
#include "engine/inductor/passes/passes.h"

/// Writing an operator as simpler ones: the language of the decompositions.
namespace fusebox::inductor {

using graph::DType;
using graph::OutputMeta;
using graph::SymExpr;
using graph::TensorMeta;
using graph::ValueRef;

class Rewriter;

/// A tensor of the graph being written; arithmetic on it appends nodes.
struct T {
  Rewriter* r = nullptr;
  ValueRef v;
  const TensorMeta& meta() const;
  DType dtype() const { return meta().dtype; }
  size_t rank() const { return meta().sizes.size(); }
  const SymExpr& size(int64_t dim) const { return meta().sizes[static_cast<size_t>(wrapDim(dim, rank()))]; }
};

using Dims = std::vector<int64_t>;
Dims allDims(T x);
/// Elements along some dimensions of a tensor.
struct Count {
  SymExpr n;
  std::optional<double> known() const;
  /// As a tensor without dimensions, on the device of `like` and of its type.
  T tensor(T like) const;
};
/// Throws NotLowered where it is 0.
Count countOf(T x, const Dims& dims);

/// Appends the nodes that stand for one node of the old graph. They inherit its provenance.
class Rewriter {
 public:
  Rewriter(GraphCopy& copy, const graph::Node& node) : copy_(copy), node_(node) {
    firstNew_ = static_cast<graph::NodeId>(copy.to().nodes().size());
  }

  const graph::Node& node() const { return node_; }
  NodeArgs args() const { return NodeArgs(node_); }
  /// Where a value of the old graph is in the new one.
  ValueRef mapped(ValueRef old) const { return copy_.mapped(old); }
  /// Operand `i` of the node.
  T in(size_t i) { return {this, copy_.mapped(args().ref(i))}; }
  /// All operands.
  graph::ArgumentList mappedArgs() const { return copy_.mappedArgs(node_); }
  bool has(size_t i) const { return args().isTensor(i); }
  const TensorMeta& outMeta(size_t i) const { return node_.outputs[i].tensor; }
  const TensorMeta& meta(ValueRef v) const { return copy_.to().meta(v).tensor; }

  /// Appends any operator with one result.
  T call(const char* op, graph::ArgumentList args, TensorMeta meta);
  std::vector<T> callMany(const char* op, graph::ArgumentList args, std::vector<TensorMeta> metas);
  std::vector<T> callMany(const char* op, graph::ArgumentList args, std::vector<OutputMeta> outputs);
  /// Appends a pointwise operator; its result has the broadcast shape and the type that the operands promote to, or `type`.
  T pointwise(const char* op, graph::ArgumentList args, DType type = DType::Undefined);
  T to(T x, DType type);
  /// In float32 if it is a 16-bit float.
  T upcast(T x);
  T view(T x, std::vector<SymExpr> sizes);
  T expand(T x, std::vector<SymExpr> sizes);
  T unsqueeze(T x, int64_t dim);
  /// sum, amax, amin, mean over `dims`.
  T reduce(const char* op, T x, const Dims& dims, bool keepDim);
  T sum(T x, const Dims& dims, bool keepDim) { return reduce("aten::sum.dim_IntList", x, dims, keepDim); }
  T full(std::vector<SymExpr> sizes, double value, DType type);
  T arange(const SymExpr& end);
  T where(T condition, T a, T b);
  T where(T condition, T a, double b);
  /// `x` is the same for autograd whatever it is computed from, for gradients of gradients that are taken operator by operator.
  T withoutGradient(T x);
  T unary(const char* op, T x) { return pointwise(op, {x.v}); }
  /// (variance, mean) over `dims`, dimensions kept.
  std::pair<T, T> varMean(T x, const Dims& dims);

  /// Declares output `i` of the node to be `value`, converted and laid out as the node's meta says.
  void output(size_t i, T value);
  std::vector<ValueRef> takeOutputs() { return std::move(outputs_); }
  /// Whether gradient `i` of a backward operator is asked for; `maskAt` is the position of output_mask.
  bool wanted(size_t maskAt, size_t i) const;

 private:
  GraphCopy& copy_;
  const graph::Node& node_;
  graph::NodeId firstNew_;
  std::vector<ValueRef> outputs_;
};

inline const TensorMeta& T::meta() const { return r->meta(v); }

T operator+(T a, T b);
T operator-(T a, T b);
T operator*(T a, T b);
T operator/(T a, T b);
T operator+(T a, double b);
T operator-(T a, double b);
T operator*(T a, double b);
T operator/(T a, double b);
T operator-(double a, T b);
T operator/(T a, const Count& b);
T operator-(T a);

/// Rewrites one node. Throws NotLowered where it does not cover the arguments: the node then stays.
using DecomposeFn = void (*)(Rewriter&);
/// When an operator is written as others already in the joint graph: where backward is better off with parts of it than with its result.
enum class BeforeCut : uint8_t {
  No,
  WhereRead,  ///< by an operator of backward; other calls stay whole for the passes that look for them
  Yes,
};
struct Decomposition {
  std::string_view op;
  DecomposeFn fn;
  BeforeCut beforeCut = BeforeCut::No;
  bool hostNumbers = false; ///< some of its operands may be tensors of the CPU that hold numbers, whatever device the others are on
};
using DecompositionTable = std::vector<Decomposition>;
void addNormalisationDecompositions(DecompositionTable& table);
void addBatchNormDecompositions(DecompositionTable& table);
void addSoftmaxDecompositions(DecompositionTable& table);
void addLossDecompositions(DecompositionTable& table);
void addOtherDecompositions(DecompositionTable& table);
void addForEachDecompositions(DecompositionTable& table);

}  // namespace fusebox::inductor
