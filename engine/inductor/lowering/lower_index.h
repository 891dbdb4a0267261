#pragma once

#include "engine/inductor/lowering/lowering.h"

/// Positions that are themselves data, for reading at them and for adding to them.
namespace fusebox::inductor {

/// The element of `index` at `at` as an index expression into a dimension of `size`. Only x[i] lets negative positions count from
/// the end. Positions outside the dimension are reported (`Fault::None`: taken to be right), and kept inside it, so that no kernel
/// touches foreign memory.
SymExpr loadedIndex(BodyBuilder& b, const LazyTensor& index, const IndexList& at, const SymExpr& size, Fault fault);

bool isIndexType(DType type);

/// x[index list]: the indexed dimensions become the broadcast shape of the indices, in place if they are neighbours, else in front.
struct IndexedDims {
  std::vector<int> slot;            ///< by dimension of x: position in `indices`, -1 where it is not indexed
  std::vector<LazyTensor> indices;  ///< broadcast to `shape`
  IndexList shape;
  size_t start = 0;                 ///< where the result has the dimensions of `shape`

  /// The point of x (with `sizes`) that the result has at `i`.
  IndexList at(BodyBuilder& b, const IndexList& i, const IndexList& sizes, Fault fault) const;
};
/// Throws NotLowered for what has no loops.
IndexedDims indexedDims(Lowering& lowering, const graph::ArgumentList& list, const LazyTensor& x);

}  // namespace fusebox::inductor
