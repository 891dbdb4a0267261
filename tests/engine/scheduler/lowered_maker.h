#pragma once

#include <functional>

#include "engine/inductor/ir/body_builder.h"
#include "engine/inductor/ir/lowered_graph.h"

namespace fusebox::inductor::testing {

using IndexList = std::vector<SymExpr>;
using PointFn = std::function<ValueId(BodyBuilder&, const IndexList&)>;

/// Short ways to write lowered graphs.
class LoweredMaker {
 public:
  LoweredMaker() { graph.name = "test"; }
  LoweredGraph graph;

  BufferId input(std::vector<int64_t> sizes, DType type = DType::Float32) {
    BufferId id = buffer(std::move(sizes), type, LoweredBuffer::Kind::Input);
    graph.buffers.back().index = graph.inputCount++;
    return id;
  }

  /// out[i] = fn(i) for every index into `sizes`.
  BufferId pointwise(const std::string& name, std::vector<int64_t> sizes, const PointFn& fn, DType type = DType::Float32) {
    BufferId out = buffer(sizes, type, LoweredBuffer::Kind::Computed);
    Kernel kernel;
    IndexList index = axes(sizes, "i", kernel.outer);
    BodyBuilder b;
    b.store(out, at(out, index), b.cast(fn(b, index), type));
    kernel.sections.push_back(b.finish({}, false));
    add(name, std::move(kernel));
    return out;
  }

  /// Reduces the dimensions in `reduced`; the others remain.
  BufferId reduce(const std::string& name, std::vector<int64_t> sizes, std::vector<bool> reduced, ReduceKind kind, const PointFn& fn,
                  int component = 0, const std::function<ValueId(BodyBuilder&, ValueId)>& after = {}) {
    Kernel kernel;
    std::vector<Axis> inner;
    IndexList index, kept;
    std::vector<int64_t> keptSizes;
    for (size_t d = 0; d < sizes.size(); ++d) {
      auto& list = reduced[d] ? inner : kernel.outer;
      Symbol symbol = Symbol::make((reduced[d] ? "r" : "i") + std::to_string(list.size()), 0, sizes[d] - 1);
      list.push_back({symbol, sizes[d]});
      index.push_back(symbol);
      if (reduced[d]) continue;
      kept.push_back(symbol);
      keptSizes.push_back(sizes[d]);
    }
    const bool positional = kind == ReduceKind::ArgMax || kind == ReduceKind::ArgMin;
    const DType type = positional ? DType::Int64 : DType::Float32;
    BufferId out = buffer(keptSizes, type, LoweredBuffer::Kind::Computed);
    BodyBuilder b;
    b.reduce(kind, 0, {fn(b, index), -1, -1});
    kernel.sections.push_back(b.finish(std::move(inner), true));
    ValueId result = b.reduced(0, component, type);
    b.store(out, at(out, kept), after ? after(b, result) : result);
    kernel.sections.push_back(b.finish({}, false));
    add(name, std::move(kernel));
    return out;
  }

  /// An extern call of one tensor.
  BufferId external(const std::string& op, BufferId from, const std::string& outVariant = {}, Operation::Order order = Operation::Order::Free) {
    BufferId out = buffer(sizesOf(from), DType::Float32, LoweredBuffer::Kind::Computed);
    Operation operation;
    operation.id = static_cast<int32_t>(graph.operations.size());
    operation.name = op;
    operation.kind = Operation::Kind::Extern;
    operation.call.op = op;
    operation.call.args = {graph::ValueRef{from, 0}};
    operation.call.results = {out};
    operation.call.outVariant = outVariant;
    operation.reads = {from};
    operation.writes = {out};
    operation.order = order;
    graph.operations.push_back(std::move(operation));
    return out;
  }

  void result(BufferId id) { graph.results.emplace_back(graph::ValueRef{id, 0}); }

  ValueId load(BodyBuilder& b, BufferId id, const IndexList& index) const {
    return b.load(id, graph.buffers[static_cast<size_t>(id)].meta.dtype, at(id, index));
  }

  std::vector<int64_t> sizesOf(BufferId id) const {
    std::vector<int64_t> sizes;
    for (const SymExpr& size : graph.buffers[static_cast<size_t>(id)].meta.sizes) sizes.push_back(size.constant());
    return sizes;
  }

 private:
  SymExpr at(BufferId id, const IndexList& index) const {
    SymExpr address = 0;
    const auto& strides = graph.buffers[static_cast<size_t>(id)].meta.strides;
    for (size_t d = 0; d < index.size(); ++d) address += index[d] * strides[d];
    return address;
  }

  static IndexList axes(const std::vector<int64_t>& sizes, const char* prefix, std::vector<Axis>& out) {
    IndexList index;
    for (int64_t size : sizes) {
      Symbol symbol = Symbol::make(prefix + std::to_string(out.size()), 0, size - 1);
      out.push_back({symbol, size});
      index.push_back(symbol);
    }
    return index;
  }

  BufferId buffer(std::vector<int64_t> sizes, DType type, LoweredBuffer::Kind kind) {
    LoweredBuffer b;
    b.id = static_cast<BufferId>(graph.buffers.size());
    b.name = (kind == LoweredBuffer::Kind::Input ? "arg" : "buf") + std::to_string(b.id);
    for (int64_t size : sizes) b.meta.sizes.emplace_back(size);
    b.meta.strides = graph::contiguousStrides(b.meta.sizes);
    b.meta.dtype = type;
    b.kind = kind;
    graph.buffers.push_back(std::move(b));
    return graph.buffers.back().id;
  }

  void add(const std::string& name, Kernel kernel) {
    Operation operation;
    operation.id = static_cast<int32_t>(graph.operations.size());
    operation.name = name + "_" + std::to_string(operation.id);
    operation.kernel = std::move(kernel);
    for (const Section& section : operation.kernel.sections) {
      for (const Value& value : section.values)
        if (value.op == Op::Load) operation.reads.push_back(value.buffer);
      for (const Statement& statement : section.body)
        if (statement.kind != Statement::Kind::Reduce) operation.writes.push_back(statement.buffer);
    }
    graph.operations.push_back(std::move(operation));
  }
};

}  // namespace fusebox::inductor::testing
