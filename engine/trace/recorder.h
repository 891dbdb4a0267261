#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <functional>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/graph/number_expr.h"
#include "engine/graph/shape_env.h"
#include "engine/trace/operator_facts.h"
#include "engine/trace/symbolic_geometry.h"

namespace fusebox::trace {

/// Writes operators into the joint graph of one trace. Knows nothing of dispatch keys: callers hand it values and metas.
class Recorder {
 public:
  using Geometry = std::shared_ptr<const SymbolicGeometry>;  ///< null: the meta tensor's
  Recorder(std::function<graph::Provenance()> provenance, std::shared_ptr<graph::ShapeEnv> shapes);

  /// A graph input; the result is a trace tensor over `meta`.
  at::Tensor placeholder(const std::string& name, const at::Tensor& meta, c10::Device device, int32_t index, bool requiresGrad,
                         Geometry geometry = nullptr);
  /// A tensor whose data is fixed now; keeps `data` itself.
  at::Tensor constant(const at::Tensor& data);
  /// Appends a call. `args` are the operator's arguments before tensors were replaced by metas; `results` are its meta results, which
  /// become trace tensors (results that are an argument's meta tensor become that argument again). `geometries` are those of the results'
  /// tensors, lists flattened, undefined ones left out; empty: none is symbolic.
  void call(const c10::OperatorHandle& op, const OperatorFacts& facts, c10::ArrayRef<c10::IValue> args,
            std::span<c10::IValue> results, c10::Device device, std::span<const Geometry> geometries = {});

  /// `now`, written over `before` where autograd does not hear of it: a trace tensor with the data of one and the history of the other.
  at::Tensor overwritten(const at::Tensor& now, const at::Tensor& before);
  /// Whether a value depends on an input that requires a gradient, in a way that autograd heard of.
  bool hasHistory(graph::ValueRef value);

  /// A trace tensor of a tensor that the graph has already.
  at::Tensor again(graph::ValueRef value);

  graph::Graph& graph() { return graph_; }
  const graph::Graph& graph() const { return graph_; }
  std::vector<at::Tensor>& constants() { return constants_; }
  uint64_t trace() const { return trace_; }
  size_t calls() const { return calls_; }
  graph::Provenance origin() const;  ///< of what is recorded now

  /// From now on nodes are marked as backward.
  void startBackward() { backward_ = true; }
  bool isBackward() const { return backward_; }
  /// The autograd node whose formula runs next; its forward operator's place is given to what it records.
  void setBackwardOrigin(uint64_t sequenceNumber);
  /// The float whose bits are the symbol is the one element of an input.
  void holdsFloat(graph::Symbol bits, const at::Tensor& traced);
  /// `traced` is computed from constants alone, and this is what it holds.
  void know(const at::Tensor& traced, at::Tensor data);
  /// Data of a trace tensor that is a constant or known, else undefined.
  at::Tensor constantData(const at::Tensor& traced) const;

 private:
  graph::Argument tensorArgument(const at::Tensor& t);
  /// as_strided names places of a memory: of a view it is recorded as of what was made there, since code may copy views.
  void readWholeMemory(graph::ArgumentList& args) const;
  graph::Argument symbolicArgument(const c10::SymNode& node);
  /// A float that is computed when the graph runs, as a tensor of float64 without dimensions.
  graph::ValueRef computed(const graph::NumberExpr& number);
  /// What a float beside the tensors of a call is to be recorded as, so that it changes no type; nullopt: its value has to be known.
  static std::optional<graph::DType> typeOfNumbers(c10::ArrayRef<c10::IValue> args, std::span<const c10::IValue> results);
  static bool hasHalf(c10::ArrayRef<c10::IValue> args);
  /// Whether a float that the program was given is one that float16 holds, which becomes a guard, with its sign: most operators raise for what is
  /// beyond. An infinity is taken for beyond.
  bool fitsHalf(const graph::NumberExpr& number) const;
  at::Tensor wrap(const at::Tensor& meta, c10::Device device, graph::ValueRef value, Geometry geometry = nullptr);

  graph::Graph graph_;
  std::vector<at::Tensor> constants_;
  std::function<graph::Provenance()> provenance_;
  std::shared_ptr<graph::ShapeEnv> shapes_;
  std::map<graph::ValueRef, at::Tensor> known_;
  std::vector<std::pair<graph::Symbol, graph::ValueRef>> floats_;  ///< inputs that hold them
  std::unordered_map<uint64_t, graph::NodeId> forwardNode_;  ///< autograd sequence number -> first node recorded after it
  graph::NodeId backwardOrigin_ = -1;
  std::vector<bool> hasHistory_;  ///< by node, those that hasHistory() has looked at
  uint64_t trace_;
  size_t calls_ = 0;
  bool backward_ = false;
  std::optional<graph::DType> numbersAs_;  ///< typeOfNumbers() of the call that is being recorded
  bool besideHalf_ = false;                ///< whether that call has a tensor of float16; known where there are symbols
};

}  // namespace fusebox::trace
