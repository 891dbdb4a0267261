#pragma once

#include <algorithm>
#include <string_view>

#include "engine/graph/graph.h"
#include "engine/graph/operator_facts.h"

/// Short ways to write graphs in tests.
namespace fusebox::graph::testing {

/// What a dispatcher would say of the operators that tests use.
inline bool factsForTests(const std::string& op, OperatorFacts& facts) {
  constexpr std::string_view kViews[] = {"aten::view", "aten::view.dtype", "aten::_unsafe_view", "aten::permute", "aten::transpose.int", "aten::t",
                                         "aten::expand", "aten::slice.Tensor", "aten::select.int", "aten::unsqueeze", "aten::squeeze.dim",
                                         "aten::as_strided", "aten::alias", "aten::detach", "aten::split.Tensor"};
  if (!op.starts_with("aten::")) return false;
  facts.view = std::find(std::begin(kViews), std::end(kViews), op) != std::end(kViews);
  facts.reinterprets = op == "aten::view.dtype";
  facts.random = op.starts_with("aten::bernoulli") || op.starts_with("aten::rand");
  facts.effectful = op == "aten::_assert_async";
  constexpr std::string_view kPointwise[] = {"aten::mul.Scalar", "aten::where.self", "aten::sub.Tensor", "aten::mul.Tensor", "aten::exp"};
  facts.pointwise = std::find(std::begin(kPointwise), std::end(kPointwise), op) != std::end(kPointwise);
  return true;
}
inline const bool kFactsForTests = (setOperatorFactsSource(&factsForTests), true);

inline OutputMeta tensor(std::vector<SymExpr> sizes, DType type = DType::Float32) {
  OutputMeta m;
  m.tensor.strides = contiguousStrides(sizes);
  m.tensor.sizes = std::move(sizes);
  m.tensor.dtype = type;
  return m;
}

inline OutputMeta strided(std::vector<SymExpr> sizes, std::vector<SymExpr> strides, DType type = DType::Float32) {
  OutputMeta m = tensor(std::move(sizes), type);
  m.tensor.strides = std::move(strides);
  return m;
}

class GraphMaker {
 public:
  GraphMaker() { graph.name = "test"; }
  ValueRef input(OutputMeta meta) { return {graph.addPlaceholder("x", std::move(meta)), 0}; }
  ValueRef call(const char* op, ArgumentList args, OutputMeta meta) {
    return {graph.addCall(op, std::move(args), {std::move(meta)}), 0};
  }
  NodeId callMany(const char* op, ArgumentList args, std::vector<OutputMeta> metas) {
    return graph.addCall(op, std::move(args), std::move(metas));
  }
  Graph& returning(ArgumentList results) {
    graph.setOutputs(std::move(results));
    return graph;
  }
  Graph graph;
};

}  // namespace fusebox::graph::testing
