#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/graph/shape_env.h"
#include "engine/trace/operator_facts.h"

namespace fusebox::trace {

class TraceContext;

/// Where the value of a data symbol (graph::ShapeEnv::dataSymbol) is read when the graph runs.
struct DataDefinition {
  graph::Symbol symbol;
  graph::ValueRef value;  ///< in the recorded graph
  int32_t dim = 0;        ///< of whose size it is; -1: of its one element
  std::string text;       ///< for people: "what aten::nonzero finds at model.py:12"
};

/// Operators whose results' sizes data decide, in one trace: a symbol for each such size, where they may be recorded at all.
class DataSizes {
 public:
  bool isAllowed = false;
  bool readsNumbers = false;  ///< the program has read one from a tensor, which may become a symbol
  /// Values that such sizes had in an earlier call, in the order in which their symbols are made: what decisions are made by.
  std::vector<int64_t> hints;
  /// Set where an operator has failed: values for all symbols so far with which it does not. Whoever hears of the failure takes them.
  std::optional<std::vector<int64_t>> fitting;

  const std::vector<DataDefinition>& definitions() const { return definitions_; }
  std::vector<DataDefinition>& definitions() { return definitions_; }
  /// For a message about an expression: where the data symbols in `text` come from.
  std::string origins(const std::string& text) const;

  /// A symbol for the size of `dim` of a value that is about to be recorded, at most `atMost`; `guess` if nothing is known of it.
  graph::SymExpr define(TraceContext& context, graph::ValueRef value, int32_t dim, int64_t guess, const graph::SymExpr* atMost, const std::string& who);
  /// A symbol for the number in a tensor of one element.
  graph::SymExpr defineNumber(TraceContext& context, graph::ValueRef value, const std::string& text);
  /// A symbol for the bool in a tensor of one element: 0 or 1.
  graph::SymExpr defineTruth(TraceContext& context, graph::ValueRef value, bool hint, const std::string& text);
  /// How many elements of a mask are set, as a symbol; nullptr: nobody has asked yet.
  const graph::SymExpr* countOf(graph::ValueRef mask) const;
  void setCount(graph::ValueRef mask, const graph::SymExpr& count) { counts_[mask] = count; }
  /// nonzero() of a mask of the trace, recorded once.
  at::Tensor positionsOf(const at::Tensor& mask);
  bool knowsPositions(graph::ValueRef mask) const { return positions_.contains(mask); }

 private:
  std::vector<DataDefinition> definitions_;
  std::map<graph::ValueRef, graph::SymExpr> counts_;
  std::map<graph::ValueRef, at::Tensor> positions_;
};

/// Whether nothing recorded so far has a size, stride or argument with the symbol.
bool isUnused(TraceContext& context, graph::Symbol symbol);

/// Lengths and positions that data decide are those of parts of a whole, which the operator demands: from here on, before its results are computed.
/// A position that may count from either end is made one from the front, in `args`.
void settleParts(const OperatorFacts& facts, std::vector<c10::IValue>& args, TraceContext& context);

/// Records an operator whose results' sizes data decide; its arguments on the stack are replaced by its results. False: it is none, or there is no
/// rule for it, or nothing of the kind may be recorded now.
bool recordDataSized(const c10::OperatorHandle& op, const OperatorFacts& facts, c10::Device device, TraceContext& context, torch::jit::Stack* stack);

/// Where data decide sizes of the arguments of an operator that the program describes, they are at least 2 from here on. (Our own rules hold for none and
/// one as well.)
void assumeSeveral(const OperatorFacts& facts, c10::ArrayRef<c10::IValue> args, graph::ShapeEnv& env);

/// Indexing by masks becomes indexing by the positions that are set, whose number is a symbol: reading always, writing where the values have such a
/// size. False: there are no masks, or that may not be.
bool indexByPositions(const c10::OperatorHandle& op, const OperatorFacts& facts, TraceContext& context, torch::jit::Stack* stack);

}  // namespace fusebox::trace
