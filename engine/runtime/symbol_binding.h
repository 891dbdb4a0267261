#pragma once

#include <ATen/core/Tensor.h>

#include "engine/graph/graph.h"
#include "engine/graph/symbol_values.h"

namespace fusebox::runtime {

/// Reads symbols that have no value yet off `tensor`, for graphs that run without whoever bound them (saved ones): from every size, stride
/// or offset of `meta` that is a multiple of one symbol, with something added.
inline void bindSymbols(graph::SymbolValues& values, const graph::TensorMeta& meta, const at::Tensor& tensor) {
  const auto bind = [&](const graph::SymExpr& expression, int64_t value) {
    if (expression.isConstant()) return;
    const auto symbols = expression.symbols();
    if (symbols.size() != 1) return;
    const auto factor = expression.strideOf(symbols[0]);
    if (!factor || *factor == 0) return;
    const graph::SymExpr added = expression - graph::SymExpr(symbols[0]) * *factor;
    if (added.isConstant() && (value - added.constant()) % *factor == 0) values.set(symbols[0], (value - added.constant()) / *factor);
  };
  for (size_t d = 0; d < meta.sizes.size() && d < static_cast<size_t>(tensor.dim()); ++d) {
    bind(meta.sizes[d], tensor.size(static_cast<int64_t>(d)));
    bind(meta.strides[d], tensor.stride(static_cast<int64_t>(d)));
  }
  bind(meta.storageOffset, tensor.storage_offset());
}

}  // namespace fusebox::runtime
