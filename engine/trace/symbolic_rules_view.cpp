#include <algorithm>

#include "engine/trace/symbolic_rules.h"

// Argument positions are those of native_functions' schemas.
namespace fusebox::trace {
namespace {

using c10::IValue;
using graph::SymExpr;
using Call = SymbolicCall;
using Shapes = std::vector<ResultShape>;

ResultShape shapeOf(SymbolicGeometry g) { return {std::move(g.sizes), std::move(g.strides), std::move(g.offset)}; }
Shapes one(SymbolicGeometry g) { return {shapeOf(std::move(g))}; }

Shapes alias(const Call& call) { return one(call.geometry(0)); }

/// Sizes that a program asks for, with -1 for one that follows.
Exprs inferred(const Call& call, Exprs wanted, const SymExpr& numel) {
  SymExpr known = 1;
  std::optional<size_t> open;
  for (size_t d = 0; d < wanted.size(); ++d)
    if (wanted[d] == SymExpr(-1)) open = d;
    else known *= wanted[d];
  if (!open) {
    Call::want(call.equal(numel, known));
    return wanted;
  }
  // Where nothing is left for it that is a relation of the two; a quotient of one would be a constant for each size.
  const auto& env = call.env();
  if (!env.isOfData(numel) && !env.isOfData(known) && env.hint(numel) == env.hint(known) && call.equal(numel, known)) {
    wanted[*open] = 1;
    return wanted;
  }
  Call::want(call.equal(graph::mod(numel, known), 0));
  wanted[*open] = graph::floorDiv(numel, known);
  return wanted;
}

/// at::detail::computeStride over expressions. A dimension of as many rows as data say may be passed over or not where that is one: its stride counts for
/// nothing then.
Exprs viewStrides(const Call& call, const SymbolicGeometry& from, const Exprs& sizes) {
  const auto less = [&](const SymExpr& a, const SymExpr& b) {
    const bool isOfData = call.env().isOfData(a) || call.env().isOfData(b);
    const auto usual = isOfData ? call.env().usually(graph::Compare::Lt, a, b) : std::nullopt;
    return usual ? *usual : call.less(a, b);
  };
  Exprs made(sizes.size(), SymExpr(1));
  if (from.sizes.empty()) return made;
  auto at = static_cast<int64_t>(sizes.size()) - 1;
  SymExpr base = from.strides.back(), have = 1, used = 1;
  for (size_t d = from.sizes.size(); d-- > 0;) {
    have *= from.sizes[d];
    const bool ends = d == 0 || (from.sizes[d - 1] != SymExpr(1) && !call.equal(from.strides[d - 1], have * base));
    if (!ends) continue;
    while (at >= 0 && (sizes[static_cast<size_t>(at)] == SymExpr(1) || less(used, have))) {
      made[static_cast<size_t>(at)] = used * base;
      used *= sizes[static_cast<size_t>(at)];
      --at;
    }
    Call::want(call.equal(used, have));
    if (d > 0) {
      base = from.strides[d - 1];
      have = used = 1;
    }
  }
  Call::want(at == -1);
  return made;
}

Shapes view(const Call& call) {
  auto from = call.geometry(0);
  auto sizes = inferred(call, call.integers(1), from.numel());
  auto strides = viewStrides(call, from, sizes);
  return {{std::move(sizes), std::move(strides), from.offset}};
}

/// _reshape_alias(self, size, stride)
Shapes reshapeAlias(const Call& call) { return {{call.integers(1), call.integers(2), call.geometry(0).offset}}; }

/// _unsafe_view gives a view; reshape_copy and view_copy new memory, whose strides follow by themselves.
Shapes viewCopy(const Call& call) { return {{inferred(call, call.integers(1), call.geometry(0).numel())}}; }

Shapes expand(const Call& call) {
  auto from = call.geometry(0);
  auto wanted = call.integers(1);
  const size_t rank = wanted.size(), extra = rank - from.sizes.size();
  Exprs sizes(rank), strides(rank);
  for (size_t d = rank; d-- > 0;) {
    const bool own = d >= extra;
    SymExpr size = own ? from.sizes[d - extra] : SymExpr(1);
    SymExpr stride = own ? from.strides[d - extra] : from.sizes.empty() ? SymExpr(0) : sizes[d + 1] * strides[d + 1];  // libtorch's of a number are 0
    SymExpr target = wanted[d] == SymExpr(-1) ? size : wanted[d];
    if (size == SymExpr(1)) {
      if (target != SymExpr(1)) {
        // Of one element of data the stride counts for nothing.
        if (!call.env().isOfData(target)) Call::want(!call.equal(target, 1));
        size = target;
        stride = 0;
      }
    } else {
      Call::want(call.equal(size, target));
    }
    sizes[d] = size;
    strides[d] = stride;
  }
  return {{std::move(sizes), std::move(strides), from.offset}};
}

Shapes permute(const Call& call) {
  auto from = call.geometry(0);
  SymbolicGeometry made;
  made.offset = from.offset;
  for (auto& d : call.integers(1)) {
    const auto at = static_cast<size_t>(c10::maybe_wrap_dim(call.specialise(d), static_cast<int64_t>(from.sizes.size())));
    made.sizes.push_back(from.sizes[at]);
    made.strides.push_back(from.strides[at]);
  }
  return one(std::move(made));
}

Shapes transposed(SymbolicGeometry g, int64_t x, int64_t y) {
  if (!g.sizes.empty()) {
    std::swap(g.sizes[static_cast<size_t>(x)], g.sizes[static_cast<size_t>(y)]);
    std::swap(g.strides[static_cast<size_t>(x)], g.strides[static_cast<size_t>(y)]);
  }
  return one(std::move(g));
}
Shapes transpose(const Call& call) {
  auto g = call.geometry(0);
  const size_t rank = g.sizes.size();
  const int64_t x = call.dimension(call.value(1), rank), y = call.dimension(call.value(2), rank);
  return transposed(std::move(g), x, y);
}
Shapes t(const Call& call) {
  auto g = call.geometry(0);
  return g.sizes.size() < 2 ? one(std::move(g)) : transposed(std::move(g), 0, 1);
}

/// A bound of a slice as an offset from the front, between 0 and `size`.
SymExpr bounded(const Call& call, SymExpr bound, const SymExpr& size) {
  if (call.less(bound, 0)) bound = bound + size;
  if (call.less(bound, 0)) return 0;
  return call.less(size, bound) ? size : bound;
}

/// What is written back into `self` has the sizes of the part.
Shapes scattered(const Call& call, const SymbolicGeometry& part) {
  auto source = call.sizes(1);
  Call::want(source.size() == part.sizes.size());
  for (size_t d = 0; d < source.size(); ++d) Call::want(call.equal(source[d], part.sizes[d]));
  return symbolic::sameAs(call, 0);
}

/// A part of self; `at`: where among the arguments (dim, start, end, step) begin.
SymbolicGeometry sliced(const Call& call, size_t at) {
  auto g = call.geometry(0);
  const auto d = static_cast<size_t>(call.dimension(call.value(at), g.sizes.size()));
  const SymExpr size = g.sizes[d], step = call.integer(at + 3);
  Call::want(call.less(0, step));
  SymExpr start = call.value(at + 1).isNone() ? SymExpr(0) : bounded(call, call.integer(at + 1), size);
  SymExpr end = size;
  if (!call.value(at + 2).isNone()) {
    SymExpr given = call.integer(at + 2);
    constexpr int64_t kToTheEnd = int64_t{1} << 62;  // Python's x[a:] gives the largest number
    if (!(given.isConstant() && given.constant() >= kToTheEnd)) end = bounded(call, given, size);
  }
  if (call.less(end, start)) end = start;
  g.sizes[d] = graph::floorDiv(end - start + step - 1, step);
  g.offset += start * g.strides[d];
  g.strides[d] *= step;
  return g;
}
Shapes slice(const Call& call) { return one(sliced(call, 1)); }
Shapes sliceScatter(const Call& call) { return scattered(call, sliced(call, 2)); }

/// (dim, index) from argument `at` on
SymbolicGeometry selected(const Call& call, size_t at) {
  auto g = call.geometry(0);
  const auto d = call.dimension(call.value(at), g.sizes.size());
  const auto gone = static_cast<size_t>(d);
  SymExpr index = call.integer(at + 1);
  if (call.less(index, 0)) {
    index = index + g.sizes[gone];
    Call::want(call.lessEqual(0, index));
  }
  Call::want(call.less(index, g.sizes[gone]));
  g.offset += index * g.strides[gone];
  g.sizes.erase(g.sizes.begin() + d);
  g.strides.erase(g.strides.begin() + d);
  return g;
}
Shapes select(const Call& call) { return one(selected(call, 1)); }
Shapes selectScatter(const Call& call) { return scattered(call, selected(call, 2)); }

Shapes squeezed(SymbolicGeometry g, const std::function<bool(int64_t)>& goes) {
  SymbolicGeometry made;
  made.offset = g.offset;
  for (size_t d = 0; d < g.sizes.size(); ++d) {
    if (g.sizes[d] == SymExpr(1) && goes(static_cast<int64_t>(d))) continue;
    made.sizes.push_back(g.sizes[d]);
    made.strides.push_back(g.strides[d]);
  }
  return one(std::move(made));
}
Shapes squeeze(const Call& call) {
  return squeezed(call.geometry(0), [](int64_t) { return true; });
}
Shapes squeezeDims(const Call& call) {
  auto g = call.geometry(0);
  std::vector<int64_t> dims;
  for (auto& d : call.integers(1)) dims.push_back(c10::maybe_wrap_dim(call.specialise(d), static_cast<int64_t>(g.sizes.size())));
  return squeezed(std::move(g), [&](int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); });
}
Shapes unsqueeze(const Call& call) {
  auto g = call.geometry(0);
  const auto d = call.dimension(call.value(1), g.sizes.size() + 1);
  const auto at = static_cast<size_t>(d);
  const SymExpr stride = at >= g.sizes.size() ? SymExpr(1) : g.sizes[at] * g.strides[at];
  g.sizes.insert(g.sizes.begin() + d, SymExpr(1));
  g.strides.insert(g.strides.begin() + d, stride);
  return one(std::move(g));
}

/// as_strided(self, size, stride, storage_offset): within what self itself reaches, which is all that is known of its memory.
Shapes asStrided(const Call& call) {
  auto from = call.geometry(0);
  SymbolicGeometry g;
  g.sizes = call.integers(1);
  g.strides = call.integers(2);
  g.offset = call.value(3).isNone() ? from.offset : call.integer(3);
  Call::want(g.sizes.size() == g.strides.size() && call.lessEqual(0, g.offset));
  for (auto& s : g.strides) Call::want(call.lessEqual(0, s));
  // Beyond what self reaches (a part of a larger tensor) only the storage at capture tells.
  Call::want(call.env().hint(g.reach()) <= call.env().hint(from.reach()));
  Call::want(call.lessEqual(g.reach(), from.reach()));
  return one(std::move(g));
}

/// as_strided_scatter(self, src, size, stride, storage_offset)
Shapes asStridedScatter(const Call& call) {
  SymbolicGeometry part;
  part.sizes = call.integers(2);
  return scattered(call, part);
}

/// (offset, dim1, dim2) from argument `at` on
SymbolicGeometry diagonalOf(const Call& call, size_t at) {
  auto g = call.geometry(0);
  const size_t rank = g.sizes.size();
  const auto offset = call.specialise(call.integer(at));
  const auto x = call.dimension(call.value(at + 1), rank), y = call.dimension(call.value(at + 2), rank);
  const SymExpr rows = g.sizes[static_cast<size_t>(x)], columns = g.sizes[static_cast<size_t>(y)];
  const SymExpr a = offset >= 0 ? rows : rows + offset, b = offset >= 0 ? columns - offset : columns;
  Call::want(call.less(0, a) && call.less(0, b));
  const SymExpr size = call.lessEqual(a, b) ? a : b;
  const SymExpr stride = g.strides[static_cast<size_t>(x)] + g.strides[static_cast<size_t>(y)];
  g.offset += offset >= 0 ? g.strides[static_cast<size_t>(y)] * offset : g.strides[static_cast<size_t>(x)] * -offset;
  for (auto d : {std::max(x, y), std::min(x, y)}) {
    g.sizes.erase(g.sizes.begin() + d);
    g.strides.erase(g.strides.begin() + d);
  }
  g.sizes.push_back(size);
  g.strides.push_back(stride);
  return g;
}
Shapes diagonal(const Call& call) { return one(diagonalOf(call, 1)); }
Shapes diagonalScatter(const Call& call) { return scattered(call, diagonalOf(call, 2)); }

/// unfold(self, dimension, size, step)
Shapes unfold(const Call& call) {
  auto g = call.geometry(0);
  if (g.sizes.empty()) throw NoSymbolicRule();
  const auto d = static_cast<size_t>(call.dimension(call.value(1), g.sizes.size()));
  const SymExpr size = call.integer(2), step = call.integer(3);
  Call::want(call.less(0, step) && call.lessEqual(size, g.sizes[d]));
  g.sizes.push_back(size);
  g.strides.push_back(g.strides[d]);
  g.sizes[d] = graph::floorDiv(g.sizes[d] - size, step) + 1;
  g.strides[d] *= step;
  return one(std::move(g));
}

/// Parts along a dimension, from where each begins and how long it is.
Shapes parts(const Call& call, const SymbolicGeometry& from, size_t d, const Exprs& lengths) {
  Call::want(lengths.size() == call.results());
  Shapes made;
  SymExpr start = 0;
  for (auto& length : lengths) {
    auto g = from;
    g.sizes[d] = length;
    g.offset += start * from.strides[d];
    start += length;
    made.push_back(shapeOf(std::move(g)));
  }
  return made;
}

/// As many parts as there were at capture.
Exprs equalParts(const Call& call, const SymExpr& size, const SymExpr& length) {
  const auto count = static_cast<int64_t>(call.results());
  Call::want(count > 0 && call.less(0, length));
  const SymExpr last = size - length * (count - 1);
  Call::want(call.less(0, last) && call.lessEqual(last, length));
  Exprs lengths(static_cast<size_t>(count), length);
  lengths.back() = last;
  return lengths;
}
Shapes split(const Call& call) {
  auto g = call.geometry(0);
  const auto d = static_cast<size_t>(call.dimension(call.value(2), g.sizes.size()));
  return parts(call, g, d, equalParts(call, g.sizes[d], call.integer(1)));
}
Shapes splitSizes(const Call& call) {
  auto g = call.geometry(0);
  const auto d = static_cast<size_t>(call.dimension(call.value(2), g.sizes.size()));
  auto lengths = call.integers(1);
  SymExpr sum = 0;
  for (auto& l : lengths) sum += l;
  Call::want(call.equal(sum, g.sizes[d]));
  return parts(call, g, d, lengths);
}

/// unsafe_split gives parts in memory of their own to those who look at aliasing, yet they are views.
Shapes unbind(const Call& call) {
  auto g = call.geometry(0);
  const auto d = call.dimension(call.value(1), g.sizes.size());
  const auto at = static_cast<size_t>(d);
  Call::want(call.specialise(g.sizes[at]) == static_cast<int64_t>(call.results()));
  Shapes made;
  for (size_t k = 0; k < call.results(); ++k) {
    auto part = g;
    part.offset += g.strides[at] * static_cast<int64_t>(k);
    part.sizes.erase(part.sizes.begin() + d);
    part.strides.erase(part.strides.begin() + d);
    made.push_back(shapeOf(std::move(part)));
  }
  return made;
}

Shapes viewAsReal(const Call& call) {
  auto g = call.geometry(0);
  for (auto& s : g.strides) s *= 2;
  g.offset *= 2;
  g.sizes.emplace_back(2);
  g.strides.emplace_back(1);
  return one(std::move(g));
}
Shapes viewAsComplex(const Call& call) {
  auto g = call.geometry(0);
  g.sizes.pop_back();
  g.strides.pop_back();
  for (auto& s : g.strides) {
    Call::want(call.equal(graph::mod(s, 2), 0));
    s = graph::floorDiv(s, 2);
  }
  Call::want(call.equal(graph::mod(g.offset, 2), 0));
  g.offset = graph::floorDiv(g.offset, 2);
  return one(std::move(g));
}
/// view.dtype: an element becomes several smaller ones, or is one as large.
Shapes viewDtype(const Call& call) {
  const auto from = static_cast<int64_t>(call.tensor(0).element_size()), to = static_cast<int64_t>(call.result(0).element_size());
  auto g = call.geometry(0);
  Call::want(from % to == 0 && (from == to || (!g.sizes.empty() && g.strides.back() == SymExpr(1))));
  if (from == to) return one(std::move(g));
  g.sizes.back() *= from / to;
  for (size_t d = 0; d + 1 < g.strides.size(); ++d) g.strides[d] *= from / to;
  g.offset *= from / to;
  return one(std::move(g));
}

/// Geometry in front of a backward of a view: (grad, input_sizes, ...).
Shapes inputSizes(const Call& call) { return {{call.integers(1)}}; }

}  // namespace

const SymbolicTable& symbolicViewRules() {
  static const SymbolicTable table{
      {"aten::view", view},
      {"aten::_unsafe_view", view},
      {"aten::view_copy", viewCopy},
      {"aten::reshape_copy", viewCopy},
      {"aten::_reshape_alias", reshapeAlias},
      {"aten::expand", expand},
      {"aten::permute", permute},
      {"aten::transpose.int", transpose},
      {"aten::t", t},
      {"aten::numpy_T", t},
      {"aten::slice.Tensor", slice},
      {"aten::select.int", select},
      {"aten::squeeze", squeeze},
      {"aten::squeeze.dim", squeezeDims},
      {"aten::squeeze.dims", squeezeDims},
      {"aten::unsqueeze", unsqueeze},
      {"aten::as_strided", asStrided},
      {"aten::diagonal", diagonal},
      {"aten::slice_scatter", sliceScatter},
      {"aten::select_scatter", selectScatter},
      {"aten::diagonal_scatter", diagonalScatter},
      {"aten::as_strided_scatter", asStridedScatter},
      {"aten::unfold", unfold},
      {"aten::split.Tensor", split},
      {"aten::unsafe_split.Tensor", split},
      {"aten::split_with_sizes", splitSizes},
      {"aten::unsafe_split_with_sizes", splitSizes},
      {"aten::unbind.int", unbind},
      {"aten::alias", alias},
      {"aten::detach", alias},
      {"aten::_conj", alias},
      {"aten::_neg_view", alias},
      {"aten::view_as_real", viewAsReal},
      {"aten::view_as_complex", viewAsComplex},
      {"aten::view.dtype", viewDtype},
      {"aten::slice_backward", inputSizes},
      {"aten::select_backward", inputSizes},
      {"aten::diagonal_backward", inputSizes},
      {"aten::unfold_backward", inputSizes},
      {"aten::lift", alias},
  };
  return table;
}

}  // namespace fusebox::trace
