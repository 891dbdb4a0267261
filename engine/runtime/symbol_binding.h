#pragma once

#include <map>
#include <optional>

#include <ATen/core/Tensor.h>

#include "engine/graph/graph.h"

namespace fusebox::runtime {

/// Values of size symbols, read off tensors whose metadata names them.
class SymbolBinding {
 public:
  /// Every size, stride or offset of `meta` that is one bare symbol takes `tensor`'s value; the first binding stands.
  void bind(const graph::TensorMeta& meta, const at::Tensor& tensor) {
    for (size_t d = 0; d < meta.sizes.size() && d < static_cast<size_t>(tensor.dim()); ++d) {
      bind(meta.sizes[d], tensor.size(static_cast<int64_t>(d)));
      bind(meta.strides[d], tensor.stride(static_cast<int64_t>(d)));
    }
    if (!meta.storageOffset.isConstant()) bind(meta.storageOffset, tensor.storage_offset());
  }

  std::optional<int64_t> value(graph::Symbol symbol) const {
    auto found = values_.find(symbol);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  void bind(const graph::SymExpr& expression, int64_t value) {
    if (expression.isConstant()) return;
    auto symbols = expression.symbols();
    if (symbols.size() == 1 && expression == graph::SymExpr(symbols[0])) values_.emplace(symbols[0], value);
  }
  std::map<graph::Symbol, int64_t> values_;
};

}  // namespace fusebox::runtime
