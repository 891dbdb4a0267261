#pragma once

#include "engine/graph/graph.h"

/// Short ways to write graphs in tests.
namespace fusebox::graph::testing {

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
