#include <algorithm>
#include <optional>

#include "engine/inductor/lowering/lowering.h"

/// Attention as one kernel: what passes/pass_attention.cpp has found.
namespace fusebox::inductor {
namespace {

constexpr int64_t kDeepest = 256;  ///< elements of a head that the registers of a block hold
constexpr int64_t kPiece = 8;      ///< elements of 16 bits in the 16 bytes that are copied at once

bool isEqual(const SymExpr& a, const SymExpr& b) {
  return a == b || (a - b).bounds() == std::pair<int64_t, int64_t>(0, 0);  // along an axis of one element
}

/// The formula of a product that is only there inside of a kernel: notes where it is read.
struct Product {
  struct Seen {
    int reduction = 0;
    std::vector<IndexList> read;
  };
  std::shared_ptr<Seen> seen = std::make_shared<Seen>();
  ValueId operator()(BodyBuilder& b, const IndexList& index) const {
    seen->read.push_back(index);
    return b.reduced(seen->reduction, 0, DType::Float32);
  }
  static const Product& of(const LazyTensor& tensor) {
    const Product* made = tensor.storage->isReal() ? nullptr : tensor.storage->compute.target<Product>();
    if (!made) throw NotLowered("scores of attention that are rounded on the way");
    return *made;
  }
  /// Whether every element that was read is that of `index`.
  bool isReadAt(const IndexList& index) const {
    return std::all_of(seen->read.begin(), seen->read.end(), [&](const IndexList& at) {
      return at.size() == index.size() && std::equal(at.begin(), at.end(), index.begin(), isEqual);
    });
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

SymExpr addressIn(const graph::TensorMeta& meta, const IndexList& index) {
  SymExpr made = 0;
  for (size_t i = 0; i < meta.sizes.size(); ++i)
    if (!(meta.sizes[i] == SymExpr(1))) made += index[i] * meta.strides[i];
  return made;
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
  if (options_.emulatePrecisionCasts) throw NotLowered("scores of attention that are rounded on the way");
  LazyTensor made = formula(meta, Product(), {}, 0);
  made.storage->opCount = 1;
  made.storage->copyOnly = false;
  made.storage->inAttention = true;
  return made;
}

std::vector<LazyTensor> Lowering::finishAttention(BodyBuilder& b, const Axis& column, std::vector<Axis> outer,
                                                  std::shared_ptr<const Attention> how,
                                                  const std::vector<BufferId>& writes,
                                                  const std::vector<graph::TensorMeta>& metas) {
  std::vector<graph::NodeId> origins = b.origins;
  if (current_ && std::find(origins.begin(), origins.end(), current_->id) == origins.end())
    origins.push_back(current_->id);
  Section section = b.finish({column}, true);
  requireCode(metas[0].device, section);
  Operation& op = newOperation(Operation::Kind::Loops);
  op.origins = std::move(origins);
  op.kernel.device = metas[0].device;
  op.kernel.outer = std::move(outer);
  op.kernel.attention = std::move(how);
  op.kernel.sections.push_back(std::move(section));
  finishLoops(op, writes);
  std::vector<LazyTensor> made;
  for (size_t i = 0; i < writes.size(); ++i)
    made.push_back(bufferTensor(writes[i], metas[i], current_ ? current_->id : -1));
  return made;
}

std::vector<LazyTensor> Lowering::attention(const LazyTensor& scores, const LazyTensor& product,
                                            const LazyTensor& query, const LazyTensor& key, const LazyTensor& value,
                                            const graph::TensorMeta& meta, const graph::TensorMeta* sums, bool safe) {
  const Product& inside = Product::of(product);
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
  inside.seen->read.clear();
  const ValueId score = b.cast(scores.load(b, at.index), DType::Float32);
  if (!inside.isReadAt({at.place, at.row, n}))
    throw NotLowered("a score of attention is made of another one's product");
  b.reduce(ReduceKind::Sum, 0, {q, k, -1});
  b.reduce(ReduceKind::OnlineSoftmax, 1, {score, v, -1});
  const BufferId out = newBuffer(LoweredBuffer::Kind::Computed, meta, {});
  b.store(out, at.place * meta.strides[0] + at.row * meta.strides[1] + SymExpr(d) * meta.strides[2],
          b.cast(v, meta.dtype));
  std::vector<BufferId> writes{out};
  std::vector<graph::TensorMeta> metas{meta};
  if (sums) {
    writes.push_back(newBuffer(LoweredBuffer::Kind::Computed, *sums, {}));
    metas.push_back(*sums);
    b.store(writes.back(), addressIn(*sums, at.index), score);
  }
  return finishAttention(b, column, std::move(at.outer), std::move(how), writes, metas);
}

std::vector<LazyTensor> Lowering::attentionGradient(const graph::Node& node) {
  const NodeArgs args(node);
  const LazyTensor &power = tensor(args, 0), &scores = tensor(args, 1), &weights = tensor(args, 2);
  const LazyTensor &query = tensor(args, 3), &key = tensor(args, 4), &gradient = tensor(args, 5),
                   &value = tensor(args, 6);
  const Product &ofScores = Product::of(scores), &ofWeights = Product::of(weights);
  ofWeights.seen->reduction = 1;
  const int64_t places = known(query.sizes[0], "the number of heads"),
                rows = known(query.sizes[1], "the number of rows");
  const int64_t columns = known(key.sizes[2], "the number of columns"),
                width = known(query.sizes[2], "the width of a head");
  const int64_t depth = known(gradient.sizes[2], "the width of a value");
  if (width % kPiece != 0 || depth % kPiece != 0) throw NotLowered("a width of heads that has no attention kernel");
  if (places < 1 || rows < 1 || columns < 1 || width < 1 || depth < 1) throw NotLowered("attention without elements");

  auto how = std::make_shared<Attention>();
  how->width = axis("w", width);
  how->depth = axis("d", depth);
  const Axis column = axis("n", columns);
  const Symbol w = how->width.symbol, d = how->depth.symbol, n = column.symbol;
  Rows at = rowsOf(power.sizes, places, rows, n);
  how->sharing = at.sharing;
  std::vector<Symbol> symbols{w, d, n};
  for (const Axis& a : at.outer) symbols.push_back(a.symbol);
  const IndexList ofQuery{at.place, at.row, w}, ofKey{at.place, w, n}, ofGradient{at.place, at.row, d},
      ofValue{at.place, d, n};
  const IndexList here{at.place, at.row, n}, across{at.place, n, at.row};
  const auto prepare = [&](const LazyTensor& t, const IndexList& index) {
    if (isPlainLoad(t, index, symbols)) return;
    realise(t);
    if (!isPlainLoad(t, index, symbols))
      throw NotLowered("an operand of attention whose elements lie in no regular order");
  };
  prepare(query, ofQuery);
  prepare(key, ofKey);
  prepare(gradient, ofGradient);
  prepare(value, ofValue);

  BodyBuilder b;
  const ValueId q = query.load(b, ofQuery), k = key.load(b, ofKey), g = gradient.load(b, ofGradient),
                v = value.load(b, ofValue);
  const auto isLoad = [&](const LazyTensor& t, const IndexList& index, ValueId like) {
    const auto behind = [&](ValueId id) -> const Value& {
      return b.value(b.value(id).op == Op::Cast ? b.value(id).args[0] : id);
    };
    const IndexList& sizes = t.sizes;
    for (size_t i = 0; i < index.size(); ++i)
      if (index[i].bounds().second >= sizes[i].bounds().second) return false;
    const ValueId id = t.load(b, index);
    const Value &own = behind(id), &other = behind(like);
    return own.op == Op::Load && other.op == Op::Load && own.mask < 0 && own.buffer == other.buffer &&
           isEqual(own.index, other.index);
  };
  const auto elementOf = [&](const LazyTensor& t, const IndexList& index) -> ValueId {
    if (!(t.sizes[1] == SymExpr(index == here ? rows : columns))) return -1;
    ofScores.seen->read.clear();
    ofWeights.seen->read.clear();
    const ValueId id = b.cast(t.load(b, index), DType::Float32);
    return ofScores.isReadAt(here) && ofWeights.isReadAt(here) ? id : -1;
  };
  const ValueId exponential = b.cast(power.load(b, at.index), DType::Float32);
  b.reduce(ReduceKind::Sum, 0, {q, k, exponential});
  b.reduce(ReduceKind::Sum, 1, {g, v, -1});
  std::vector<BufferId> writes;
  std::vector<graph::TensorMeta> metas;
  constexpr size_t kFirstSink = 7;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const LazyTensor &made = tensor(args, kFirstSink + 3 * i), &other = tensor(args, kFirstSink + 3 * i + 1);
    const bool isFirst = args.boolean(kFirstSink + 3 * i + 2);
    const auto turned = [&](const SymExpr& along, Symbol fast) {
      return isFirst ? IndexList{at.place, along, fast} : IndexList{at.place, fast, along};
    };
    // As the one operand of a product, what is made of the scores is summed over its last axis, as the other one over
    // the one before.
    ValueId element = -1;
    int which = -1;
    bool overColumns = false;
    for (const bool isHere : {true, false}) {
      element = elementOf(made, isHere ? here : across);
      if (element < 0) continue;
      overColumns = isFirst == isHere;
      if (overColumns && isLoad(other, turned(n, w), k)) which = 0;
      if (!overColumns && isLoad(other, turned(at.row, w), q)) which = 1;
      if (!overColumns && which < 0 && isLoad(other, turned(at.row, d), g)) which = 2;
      if (which >= 0 && how->stores[static_cast<size_t>(which)] >= 0) which = -1;
      if (which >= 0) break;
    }
    if (which < 0)
      throw NotLowered("a product of attention's gradients with another operand than its query, key or gradient");
    how->stores[static_cast<size_t>(which)] = static_cast<int>(2 + i);
    const graph::TensorMeta& meta = node.outputs[i].tensor;
    writes.push_back(newBuffer(LoweredBuffer::Kind::Computed, meta, {}));
    metas.push_back(meta);
    b.store(writes.back(), addressIn(meta, turned(overColumns ? at.row : SymExpr(n), which == 2 ? d : w)), element);
  }
  return finishAttention(b, column, std::move(at.outer), std::move(how), writes, metas);
}

void addAttentionLowerings(LowerTable& table) {
  table.emplace("fusebox::attention_scores", [](Lowering& lowering, const graph::Node& node) {
    return std::vector<LazyTensor>{lowering.scores(node.outputs[0].tensor)};
  });
  // (scores, product, query, key, value, safe)
  table.emplace("fusebox::attention", [](Lowering& lowering, const graph::Node& node) {
    const NodeArgs args(node);
    return lowering.attention(lowering.tensor(args, 0), lowering.tensor(args, 1), lowering.tensor(args, 2),
                              lowering.tensor(args, 3), lowering.tensor(args, 4), node.outputs[0].tensor,
                              node.outputs.size() > 1 ? &node.outputs[1].tensor : nullptr, args.boolean(5));
  });
  // (exponentials, product of query and key, product of gradient and value, query, key, gradient, value, then of each
  // result what is made of the scores, what it is multiplied with, and whether it comes first)
  table.emplace("fusebox::attention_gradient",
                [](Lowering& lowering, const graph::Node& node) { return lowering.attentionGradient(node); });
}

}  // namespace fusebox::inductor
