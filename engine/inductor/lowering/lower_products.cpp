#include "engine/inductor/ir/val.h"
#include "engine/inductor/lowering/lowering.h"
#include "engine/inductor/lowering/realise_policy.h"
#include "engine/inductor/lowering/windows.h"

/// Products of small matrices on a CPU. ATen multiplies those of a batch one after the other, element by element; here neighbouring elements of the
/// results are computed at once, with what comes before and after.
namespace fusebox::inductor {
namespace {

using graph::Node;
using graph::TensorMeta;
using Values = std::vector<LazyTensor>;

constexpr int64_t kPlainLoops = 400;  ///< multiplications for a matrix of a batch, from where ATen calls a library

/// Extents of a product of (rows, terms) and (terms, columns).
struct Extents {
  int64_t rows, terms, columns;
};

Extents extentsOf(const IndexList& left, const IndexList& right) {
  constexpr const char* kWhat = "a product of matrices";
  const size_t rank = left.size();
  return {knownSize(left[rank - 2], kWhat), knownSize(left[rank - 1], kWhat), knownSize(right[rank - 1], kWhat)};
}

/// Whether loops are faster than a library, which is called once for each matrix of a batch, and once for a single one.
bool isForLoops(const Extents& e, bool isBatch) {
  if (e.terms < 1) return false;
  if (isBatch) return e.rows * e.terms * e.columns < kPlainLoops || e.terms == 1 || (e.rows == 1 && e.columns == 1);
  return e.terms == 1 || (e.terms <= realise_policy::kUnrolledReduction && (e.rows == 1 || e.columns == 1));
}

/// An operand of which each element is read for so many results.
LazyTensor operand(Lowering& lowering, const LazyTensor& x, int64_t readers) {
  const Storage& s = *x.storage;
  if (!s.isReal() && readers > 1 && (s.heavy || s.gathers || s.opCount * readers > realise_policy::kRepeated)) lowering.realise(x);
  return x;
}

/// (self, mat2), of matrices or of batches of them.
Values product(Lowering& lowering, const Node& node) {
  const NodeArgs args(node);
  const TensorMeta& meta = node.outputs[0].tensor;
  if (meta.device.kind != graph::DeviceKind::Cpu || !graph::isFloatingPoint(meta.dtype)) throw NotLowered("a product for a library");
  const LazyTensor &a = lowering.tensor(args, 0), &c = lowering.tensor(args, 1);
  if (a.dtype() != meta.dtype || c.dtype() != meta.dtype) throw NotLowered("matrices of several types");
  const Extents extents = extentsOf(a.sizes, c.sizes);
  if (!isForLoops(extents, a.rank() == 3)) throw NotLowered("matrices that a library multiplies faster than loops");
  const LazyTensor left = operand(lowering, a, extents.columns), right = operand(lowering, c, extents.rows);
  const DType type = computeType(meta.dtype);
  // As a library's result: what a product gives has no more digits than its type, whoever reads it.
  const auto stored = [type, held = meta.dtype](BodyBuilder& b, ValueId made) { return held == type ? made : b.round(made, held); };
  const auto factors = [=](BodyBuilder& b, const IndexList& point, const SymExpr& term) {
    IndexList at = point, from = point;
    at.back() = term;
    from[from.size() - 2] = term;
    return std::pair{Val{&b, left.load(b, at)}.to(type), Val{&b, right.load(b, from)}.to(type)};
  };
  if (extents.terms <= realise_policy::kUnrolledReduction) {
    const auto compute = [=](BodyBuilder& b, const IndexList& point) {
      Val total{&b, b.constant(0, type)};  // which makes 0 of -0
      for (int64_t k = 0; k < extents.terms; ++k) {
        const auto [x, y] = factors(b, point, k);
        total = total + x * y;
      }
      return stored(b, total.id);
    };
    return {lowering.formula(meta, compute, {left, right}, static_cast<int>(2 * extents.terms), /*heavy=*/true)};
  }
  IndexList sizes = a.sizes;
  sizes.back() = c.sizes.back();
  sizes.emplace_back(extents.terms);
  std::vector<bool> summed(sizes.size());
  summed.back() = true;
  const ReductionSpec sum{ReduceKind::Sum, type, [=](BodyBuilder& b, const IndexList& index) {
    const auto [x, y] = factors(b, IndexList(index.begin(), index.end() - 1), index.back());
    return std::array<ValueId, 3>{(x * y).id, -1, -1};
  }};
  return lowering.reduce(sizes, summed, {sum}, {{meta, [=](BodyBuilder& b) { return stored(b, b.reduced(0, 0, type)); }}}, {left, right});
}

}  // namespace

void addProductLowerings(LowerTable& table) {
  table.emplace("aten::mm", product);
  table.emplace("aten::bmm", product);
}

}  // namespace fusebox::inductor
