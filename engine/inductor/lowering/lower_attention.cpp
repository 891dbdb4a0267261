#include <algorithm>
#include <optional>

#include "engine/inductor/lowering/lowering.h"

/// Attention as one kernel: what passes/pass_attention.cpp has found.
namespace fusebox::inductor {
namespace {

constexpr int64_t kDeepest = 256;  ///< elements of a head that the registers of a block hold
constexpr int64_t kPiece = 8;      ///< elements of 16 bits in the 16 bytes that are copied at once

/// The formula of a product that is only there inside of a kernel: notes where it is read.
struct Product {
  std::shared_ptr<std::vector<IndexList>> read = std::make_shared<std::vector<IndexList>>();
  ValueId operator()(BodyBuilder& b, const IndexList& index) const {
    read->push_back(index);
    return b.reduced(0, 0, DType::Float32);
  }
};

int64_t known(const SymExpr& e, const char* what) {
  const auto value = e.maybeConstant();
  if (!value) throw NotLowered(std::string(what) + " is not known when attention is compiled");
  return *value;
}

Axis axis(const char* name, int64_t extent) {
  return {Symbol::make(name, 0, std::max<int64_t>(extent - 1, 0)), SymExpr(extent)};
}

/// How the rows of scores of any rank are those of one product for each of P places.
struct Rows {
  std::vector<Axis> outer;  ///< places, heads that share one, row
  int sharing = 0;
  IndexList index;  ///< into the scores
  SymExpr place = 0, row = 0;
};

Rows rowsOf(const IndexList& sizes, int64_t places, int64_t rows, const Symbol& column) {
  Rows made;
  int64_t left = places;
  std::vector<Axis> inner;
  for (size_t d = 0; d + 1 < sizes.size(); ++d) {
    int64_t extent = known(sizes[d], "the number of rows");
    SymExpr at = 0;
    if (left > 1 && extent > 1) {
      const int64_t here = std::min(extent, left);
      if (left % here != 0 || extent % here != 0)
        throw NotLowered("heads of attention that are no whole number of groups");
      made.outer.push_back(axis("p", here));
      made.place = made.place * SymExpr(here) + SymExpr(made.outer.back().symbol);
      left /= here;
      extent /= here;
      at = SymExpr(made.outer.back().symbol) * SymExpr(extent);
    }
    if (extent > 1) {
      inner.push_back(axis("r", extent));
      made.row = made.row * SymExpr(extent) + SymExpr(inner.back().symbol);
      at += SymExpr(inner.back().symbol);
    }
    made.index.push_back(at);
  }
  if (left != 1 || inner.size() > 2) throw NotLowered("rows of attention that no two axes describe");
  if (inner.empty()) inner.push_back(axis("r", 1));
  if (known(graph::product(
                std::vector<SymExpr>{inner.front().extent, inner.size() > 1 ? inner.back().extent : SymExpr(1)}),
            "rows") != rows)
    throw NotLowered("rows of attention that are not the product's");
  made.sharing = static_cast<int>(inner.size()) - 1;
  made.outer.insert(made.outer.end(), inner.begin(), inner.end());
  made.index.push_back(column);
  return made;
}

/// Whether an address is a sum of multiples of the symbols.
bool isAffine(const SymExpr& index, const std::vector<Symbol>& symbols) {
  SymExpr rest = index;
  for (Symbol s : symbols) {
    const auto stride = rest.strideOf(s);
    if (!stride) return false;
    rest = rest - SymExpr(s) * SymExpr(*stride);
  }
  return rest.isConstant();
}

/// The load that an element of `tensor` is, if that is all.
bool isPlainLoad(const LazyTensor& tensor, const IndexList& index, const std::vector<Symbol>& symbols) {
  BodyBuilder trial;
  ValueId id = tensor.load(trial, index);
  const Value* v = &trial.value(id);
  if (v->op == Op::Cast) v = &trial.value(v->args[0]);
  return v->op == Op::Load && v->mask < 0 && v->type == tensor.dtype() && isAffine(v->index, symbols);
}

}  // namespace

LazyTensor Lowering::scores(const graph::TensorMeta& meta) {
  LazyTensor made = formula(meta, Product(), {}, 1);
  made.storage->inAttention = true;
  return made;
}

LazyTensor Lowering::attention(const LazyTensor& scores, const LazyTensor& product, const LazyTensor& query,
                               const LazyTensor& key, const LazyTensor& value, const graph::TensorMeta& meta,
                               bool safe) {
  const Product* inside = product.storage->isReal() ? nullptr : product.storage->compute.target<Product>();
  if (!inside) throw NotLowered("scores of attention that are rounded on the way");
  const int64_t places = known(query.sizes[0], "the number of heads"),
                rows = known(query.sizes[1], "the number of rows");
  const int64_t columns = known(key.sizes[2], "the number of columns"),
                width = known(query.sizes[2], "the width of a head");
  const int64_t depth = known(value.sizes[2], "the width of a value");
  if (width % kPiece != 0 || depth % kPiece != 0 || width > kDeepest || depth > kDeepest)
    throw NotLowered("a width of heads that has no attention kernel");
  if (places < 1 || rows < 1 || columns < 1 || width < 1 || depth < 1) throw NotLowered("attention without elements");

  auto how = std::make_shared<Attention>();
  how->width = axis("w", width);
  how->depth = axis("d", depth);
  how->safe = safe;
  const Axis column = axis("n", columns);
  const Symbol w = how->width.symbol, d = how->depth.symbol, n = column.symbol;
  Rows at = rowsOf(scores.sizes, places, rows, n);
  how->sharing = at.sharing;
  std::vector<Symbol> symbols{w, d, n};
  for (const Axis& a : at.outer) symbols.push_back(a.symbol);

  const IndexList ofQuery{at.place, at.row, w}, ofKey{at.place, w, n}, ofValue{at.place, n, d};
  const auto prepare = [&](const LazyTensor& t, const IndexList& index) {
    if (isPlainLoad(t, index, symbols)) return;
    realise(t);
    if (!isPlainLoad(t, index, symbols))
      throw NotLowered("an operand of attention whose elements lie in no regular order");
  };
  prepare(query, ofQuery);
  prepare(key, ofKey);
  prepare(value, ofValue);

  BodyBuilder b;
  const ValueId q = query.load(b, ofQuery), k = key.load(b, ofKey), v = value.load(b, ofValue);
  inside->read->clear();
  const ValueId score = b.cast(scores.load(b, at.index), DType::Float32);
  for (const IndexList& read : *inside->read)
    if (read.size() != 3 || !(read[0] == at.place) || !(read[1] == at.row) || !(read[2] == SymExpr(n)))
      throw NotLowered("a score of attention is made of another one's product");
  b.reduce(ReduceKind::Sum, 0, {q, k, -1});
  b.reduce(ReduceKind::OnlineSoftmax, 1, {score, v, -1});
  const BufferId out = newBuffer(LoweredBuffer::Kind::Computed, meta, {});
  b.store(out, at.place * meta.strides[0] + at.row * meta.strides[1] + SymExpr(d) * meta.strides[2],
          b.cast(v, meta.dtype));
  std::vector<graph::NodeId> origins = b.origins;
  if (current_ && std::find(origins.begin(), origins.end(), current_->id) == origins.end())
    origins.push_back(current_->id);
  Section section = b.finish({column}, true);
  requireCode(meta.device, section);
  Operation& op = newOperation(Operation::Kind::Loops);
  op.origins = std::move(origins);
  op.kernel.device = meta.device;
  op.kernel.outer = std::move(at.outer);
  op.kernel.attention = std::move(how);
  op.kernel.sections.push_back(std::move(section));
  finishLoops(op, {out});
  return bufferTensor(out, meta, current_ ? current_->id : -1);
}

void addAttentionLowerings(LowerTable& table) {
  table.emplace("fusebox::attention_scores", [](Lowering& lowering, const graph::Node& node) {
    return std::vector<LazyTensor>{lowering.scores(node.outputs[0].tensor)};
  });
  // (scores, product, query, key, value, safe)
  table.emplace("fusebox::attention", [](Lowering& lowering, const graph::Node& node) {
    const NodeArgs args(node);
    return std::vector<LazyTensor>{lowering.attention(
        lowering.tensor(args, 0), lowering.tensor(args, 1), lowering.tensor(args, 2), lowering.tensor(args, 3),
        lowering.tensor(args, 4), node.outputs[0].tensor, args.boolean(5))};
  });
}

}  // namespace fusebox::inductor
