#include "engine/graph/layout.h"

#include <algorithm>

#include "engine/graph/symbol_values.h"

namespace fusebox::graph {

bool isDense(const TensorMeta& meta) {
  std::vector<size_t> order;
  for (size_t i = 0; i < meta.sizes.size(); i++) {
    if (meta.sizes[i] == SymExpr(0)) return true;
    if (!(meta.sizes[i] == SymExpr(1))) order.push_back(i);
  }
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return hint(meta.strides[a]) < hint(meta.strides[b]); });
  SymExpr expected = 1;
  for (size_t i : order) {
    if (!(meta.strides[i] == expected)) return false;
    expected *= meta.sizes[i];
  }
  return true;
}

}  // namespace fusebox::graph
