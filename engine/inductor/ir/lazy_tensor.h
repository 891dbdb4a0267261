#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/graph/layout.h"
#include "engine/inductor/ir/body_builder.h"

namespace fusebox::inductor {

using IndexList = std::vector<SymExpr>;
/// The value of one element, in computeType of the tensor's dtype.
using ValueFn = std::function<ValueId(BodyBuilder&, const IndexList&)>;
/// Index of a view's element in the tensor that it views.
using Reindex = std::function<IndexList(const IndexList&)>;

/// A tensor that is either still a formula or lies in a buffer. Shared by all views of it, so that all see it become real.
struct Storage {
  graph::TensorMeta meta;  ///< sizes, dtype, and the strides it has (or will have) in its buffer
  ValueFn compute;         ///< while it is a formula
  BufferId buffer = -1;    ///< once it is real
  SymExpr offset;          ///< of element 0 in the buffer
  int opCount = 0;         ///< operations in the formula, producers included
  bool heavy = false;      ///< contains something worth computing only once (exp, sigmoid, ...)
  bool gathers = false;    ///< the formula reads at indices that it reads
  bool copyOnly = false;   ///< the formula only moves data
  bool inAttention = false;///< a formula of scores, which are there inside of an attention kernel only: it cannot become real
  bool inPairs = false;    ///< a hint: the formula may choose between two for neighbours in memory, as those of complex numbers' parts do
  bool relaid = false;     ///< lies otherwise than the trace saw, because an extern call is faster so
  std::vector<BufferId> reads;          ///< buffers the formula reads, distinct
  std::vector<graph::NodeId> origins;   ///< nodes that this formula itself stands for
  graph::NodeId node() const { return origins.empty() ? -1 : origins.back(); }  ///< the last of them, or -1

  bool isReal() const { return buffer >= 0; }
};

/// A tensor value during lowering: a storage, seen through a view.
struct LazyTensor {
  std::shared_ptr<Storage> storage;
  IndexList sizes;
  Reindex reindex;  ///< empty: the storage itself
  std::vector<graph::NodeId> viewOrigins;

  DType dtype() const { return storage->meta.dtype; }
  size_t rank() const { return sizes.size(); }
  /// The element at `index`, computed or loaded.
  ValueId load(BodyBuilder& b, const IndexList& index) const;
  /// A view with `sizes`; `map` gives, for an index into the view, the index into *this.
  LazyTensor view(IndexList sizes, Reindex map) const;
};

/// Strides and offset, in elements of the buffer.
struct StridedLayout {
  std::vector<SymExpr> strides;
  SymExpr offset;
};

/// The layout of a real tensor as a strided view of its buffer; nullopt where the view is not strided.
std::optional<StridedLayout> stridedLayout(const LazyTensor& tensor);

/// Address of an element of a storage in its buffer.
SymExpr address(const Storage& storage, const IndexList& index);

/// Strides of a dense tensor with `sizes` whose dimensions follow each other in memory as those of `tensor` do, through its view; nullopt
/// where they have no such order (broadcast dimensions, views that are not strided). `tensor` may still be a formula.
std::optional<std::vector<SymExpr>> stridesInOrderOf(const LazyTensor& tensor, const IndexList& sizes);

/// Strides of a rank-4 tensor (batch, channels, height, width) whose channels are neighbours in memory.
std::vector<SymExpr> channelsLastStrides(const IndexList& sizes);

using graph::isDense;

/// Whether no two elements share memory.
bool hasOwnPlaces(const IndexList& sizes, const std::vector<SymExpr>& strides);

/// One fresh symbol for each size ("i0", "i1", ... for prefix "i"); sizes of 1 give the constant 0.
IndexList freshIndex(const IndexList& sizes, const char* prefix);

/// Index map for reading `from` broadcast to `to`.
LazyTensor broadcastTo(const LazyTensor& tensor, const IndexList& sizes);
/// Row-major reshape; the element counts are equal.
LazyTensor reshape(const LazyTensor& tensor, const IndexList& sizes);
LazyTensor permute(const LazyTensor& tensor, const std::vector<int64_t>& order);

}  // namespace fusebox::inductor
