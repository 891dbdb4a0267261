#include <algorithm>

#include "engine/trace/symbolic_rules.h"

namespace fusebox::trace {
namespace {

using c10::IValue;
using graph::SymExpr;
using Call = SymbolicCall;
using Shapes = std::vector<ResultShape>;

/// embedding(weight, indices, ...)
Shapes embedding(const Call& call) {
  auto made = call.sizes(1);
  auto weight = call.sizes(0);
  made.insert(made.end(), weight.begin() + 1, weight.end());
  return {{made}};
}
/// embedding_dense_backward(grad_output, indices, num_weights, ...)
Shapes embeddingBackward(const Call& call) { return {{{call.integer(2), call.sizes(0).back()}}}; }

/// _embedding_bag(weight, indices, offsets, ..., include_last_offset, ...): the bags, which bag each index is in, how many each bag holds, and
/// where the greatest were; what a mode does not need is empty, or has the sizes of another one.
Shapes embeddingBag(const Call& call) {
  const auto indices = call.sizes(1), offsets = call.sizes(2);
  Call::want(indices.size() == 1 && offsets.size() == 1);
  const SymExpr bags = offsets[0] - (call.value(static_cast<size_t>(call.position("include_last_offset"))).toBool() ? 1 : 0);
  const Exprs made{bags, call.sizes(0).back()};
  Shapes shapes{made};
  for (size_t k = 1; k < 4; ++k) {
    const auto found = call.result(k).sizes();
    const SymExpr known[] = {0, k == 1 ? indices[0] : bags, k == 1 ? indices[0] : offsets[0]};
    const auto* size = std::find_if(std::begin(known), std::end(known), [&](const SymExpr& e) { return found.size() == 1 && call.env().hint(e) == found[0]; });
    Call::want(found.size() == 2 ? k == 3 : size != std::end(known));
    shapes.emplace_back(found.size() == 2 ? made : Exprs{*size});
  }
  return shapes;
}
/// _embedding_bag_backward(grad, ..., num_weights, ...), _embedding_bag_dense_backward
Shapes embeddingBagBackward(const Call& call) {
  return {{{call.integer(static_cast<size_t>(call.position("num_weights"))), call.sizes(0).back()}}};
}

/// index_select(self, dim, index)
Shapes indexSelect(const Call& call) {
  auto x = call.sizes(0), index = call.sizes(2);
  if (x.empty()) return {{x}};
  x[static_cast<size_t>(call.dimension(call.value(1), x.size()))] = index.empty() ? SymExpr(1) : index[0];
  return {{x}};
}
/// index_select_backward(grad, self_sizes, dim, index)
Shapes sizesAt1(const Call& call) { return {{call.integers(1)}}; }

/// masked_scatter_backward(grad, mask, sizes)
Shapes sizesAt2(const Call& call) { return {{call.integers(2)}}; }

/// gather(self, dim, index): the index's sizes, each but along `dim` within self's.
Shapes gather(const Call& call) {
  auto x = call.sizes(0), index = call.sizes(2);
  if (!x.empty() && index.size() == x.size()) {
    const auto along = static_cast<size_t>(call.dimension(call.value(1), x.size()));
    for (size_t d = 0; d < x.size(); ++d)
      if (d != along) Call::want(call.lessEqual(index[d], x[d]));
  }
  return {{index}};
}

/// self's sizes, whatever is put where: scatter, index_add, index_copy, ...
Shapes self(const Call& call) { return symbolic::sameAs(call, 0); }

/// scatter(self, dim, index, src)
Shapes scatter(const Call& call) {
  auto x = call.sizes(0), index = call.sizes(2);
  if (x.empty() || index.size() != x.size()) return self(call);
  const auto along = static_cast<size_t>(call.dimension(call.value(1), x.size()));
  const Exprs source = call.isTensor(3) ? call.sizes(3) : Exprs();
  for (size_t d = 0; d < x.size(); ++d) {
    if (d != along) Call::want(call.lessEqual(index[d], x[d]));
    if (d < source.size()) Call::want(call.lessEqual(index[d], source[d]));
  }
  return {{x}};
}

/// index_add(self, dim, index, source, ...), index_copy, index_reduce
Shapes indexAdd(const Call& call) {
  auto x = call.sizes(0), index = call.sizes(2), source = call.sizes(3);
  if (x.empty() || source.size() != x.size()) return self(call);
  const auto along = static_cast<size_t>(call.dimension(call.value(1), x.size()));
  for (size_t d = 0; d < x.size(); ++d) Call::want(call.equal(source[d], d == along ? (index.empty() ? SymExpr(1) : index[0]) : x[d]));
  return {{x}};
}

/// index.Tensor(self, indices): where the indices stand side by side, their sizes stand there, else in front. Masks are not symbolic.
Exprs indexed(const Call& call) {
  auto x = call.sizes(0);
  std::vector<std::optional<Exprs>> indices;
  for (const IValue& element : call.value(1).toListRef()) {
    if (!element.isTensor() || !element.toTensor().defined()) {
      indices.emplace_back();
      continue;
    }
    const at::Tensor& t = element.toTensor();
    Call::want(t.scalar_type() != at::kBool && t.scalar_type() != at::kByte);
    indices.emplace_back(Call::geometryOf(t).sizes);
  }
  Call::want(indices.size() <= x.size());
  std::vector<Exprs> operands;
  std::optional<size_t> first, last;
  for (size_t d = 0; d < indices.size(); ++d)
    if (indices[d]) {
      operands.push_back(*indices[d]);
      if (!first) first = d;
      last = d;
    }
  Call::want(first.has_value());
  auto common = call.broadcast(operands);
  const bool together = *last - *first + 1 == operands.size();
  Exprs made;
  if (!together) made = common;
  for (size_t d = 0; d < x.size(); ++d) {
    if (together && d == *first) made.insert(made.end(), common.begin(), common.end());
    if (d >= indices.size() || !indices[d]) made.push_back(x[d]);
  }
  return made;
}
Shapes index(const Call& call) { return {{indexed(call)}}; }
/// index_put(self, indices, values, ...)
Shapes indexPut(const Call& call) {
  bool masks = false;
  for (const IValue& element : call.value(1).toListRef())
    if (element.isTensor() && element.toTensor().defined())
      masks |= element.toTensor().scalar_type() == at::kBool || element.toTensor().scalar_type() == at::kByte;
  if (!masks) {
    auto sizes = indexed(call);
    Call::want(call.broadcast({sizes, call.sizes(2)}).size() == sizes.size());
  }
  return self(call);
}

/// put(self, index, source, accumulate)
Shapes put(const Call& call) {
  Call::want(call.equal(call.geometry(1).numel(), call.geometry(2).numel()));
  return self(call);
}

/// masked_scatter(self, mask, source): self and the mask broadcast together
Shapes maskedScatter(const Call& call) { return {{call.broadcast({call.sizes(0), call.sizes(1)})}}; }

/// take(self, index)
Shapes take(const Call& call) { return symbolic::sameAs(call, 1); }

/// A weight for each class.
void wantWeights(const Call& call, size_t position, const SymExpr& classes) {
  if (call.isTensor(position)) Call::want(call.equal(call.geometry(position).numel(), classes));
}

/// nll_loss_forward(self, target, weight, reduction, ignore_index)
Shapes nllForward(const Call& call) {
  auto x = call.sizes(0);
  wantWeights(call, 2, x.back());
  const bool none = call.value(3).toInt() == 0;  // Reduction::None
  Shapes made;
  made.emplace_back(none && x.size() == 2 ? Exprs{x[0]} : Exprs{});
  made.emplace_back(Exprs{});
  if (x.size() == 2) Call::want(call.equal(x[0], call.sizes(1)[0]));
  return made;
}
Shapes nll2dForward(const Call& call) {
  auto x = call.sizes(0), target = call.sizes(1);
  Call::want(x.size() == 4 && target.size() == 3);
  for (size_t d : {0, 1, 2}) Call::want(call.equal(x[d == 0 ? 0 : d + 1], target[d]));
  wantWeights(call, 2, x[1]);
  const bool none = call.value(3).toInt() == 0;
  return {{none ? target : Exprs{}}, {Exprs{}}};
}
Shapes second(const Call& call) { return symbolic::sameAs(call, 1); }

/// searchsorted.Tensor(sorted_sequence, self): one sequence, or one for each row
Shapes searchsorted(const Call& call) {
  auto sequence = call.sizes(0), x = call.sizes(1);
  if (sequence.size() > 1) {
    Call::want(sequence.size() == x.size());
    for (size_t d = 0; d + 1 < x.size(); ++d) Call::want(call.equal(sequence[d], x[d]));
  }
  return second(call);
}

/// One place for a number.
Shapes placeOfNumber(const Call& call) { return symbolic::all(call, {}); }

/// nonzero_static(self, size, fill_value)
Shapes nonzeroStatic(const Call& call) { return {{{call.integer(1), static_cast<int64_t>(call.sizes(0).size())}}}; }

/// bucketize.Tensor(self, boundaries)
Shapes isin(const Call& call) { return symbolic::sameAs(call, 0); }

/// one_hot of a known number of classes arrives in parts; cdist: (x1, x2, ...)
Shapes cdist(const Call& call) {
  auto x = call.sizes(0), y = call.sizes(1);
  Call::want(x.size() >= 2 && y.size() >= 2 && call.equal(x.back(), y.back()));
  auto made = call.broadcast({Exprs(x.begin(), x.end() - 2), Exprs(y.begin(), y.end() - 2)});
  made.push_back(x[x.size() - 2]);
  made.push_back(y[y.size() - 2]);
  return {{made}};
}

/// (self, p): a distance for each pair of rows
Shapes pdist(const Call& call) {
  const auto x = call.sizes(0);
  Call::want(x.size() == 2);
  return {{{graph::floorDiv(x[0] * (x[0] - 1), 2)}}};
}

}  // namespace

const SymbolicTable& symbolicIndexingRules() {
  static const SymbolicTable table{
      {"aten::embedding", embedding},
      {"aten::embedding_dense_backward", embeddingBackward},
      {"aten::_embedding_bag", embeddingBag},
      {"aten::_embedding_bag_forward_only", embeddingBag},
      {"aten::_embedding_bag_backward", embeddingBagBackward},
      {"aten::_embedding_bag_dense_backward", embeddingBagBackward},
      {"aten::_embedding_bag_per_sample_weights_backward", symbolic::like<2>},
      {"aten::index_select", indexSelect},
      {"aten::index_select_backward", sizesAt1},
      {"aten::gather", gather},
      {"aten::scatter.src", scatter},
      {"aten::scatter.value", scatter},
      {"aten::scatter.reduce", scatter},
      {"aten::scatter.value_reduce", scatter},
      {"aten::scatter_add", scatter},
      {"aten::scatter_reduce.two", scatter},
      {"aten::index_add", indexAdd},
      {"aten::index_copy", indexAdd},
      {"aten::index_reduce", indexAdd},
      {"aten::index_fill.int_Scalar", self},
      {"aten::index_fill.int_Tensor", self},
      {"aten::index.Tensor", index},
      {"aten::_unsafe_index.Tensor", index},
      {"aten::index_put", indexPut},
      {"aten::_unsafe_index_put", indexPut},
      {"aten::_index_put_impl", indexPut},
      {"aten::take", take},
      {"aten::put", put},
      {"aten::masked_scatter", maskedScatter},
      {"aten::masked_scatter_backward", sizesAt2},
      {"aten::nll_loss_forward", nllForward},
      {"aten::nll_loss_backward", second},
      {"aten::nll_loss2d_forward", nll2dForward},
      {"aten::nll_loss2d_backward", second},
      {"aten::searchsorted.Tensor", searchsorted},
      {"aten::bucketize.Tensor", isin},
      {"aten::isin.Tensor_Tensor", isin},
      {"aten::isin.Tensor_Scalar", isin},
      {"aten::isin.Scalar_Tensor", placeOfNumber},
      {"aten::searchsorted.Scalar", placeOfNumber},
      {"aten::bucketize.Scalar", placeOfNumber},
      {"aten::nonzero_static", nonzeroStatic},
      {"aten::_cdist_forward", cdist},
      {"aten::_euclidean_dist", cdist},
      {"aten::_cdist_backward", second},
      {"aten::_pdist_forward", pdist},
      {"aten::_pdist_backward", second},
  };
  return table;
}

}  // namespace fusebox::trace
