#include "engine/inductor/ir/lazy_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "engine/graph/axis_symbol.h"
#include "engine/graph/symbol_values.h"

namespace fusebox::inductor {

SymExpr address(const Storage& storage, const IndexList& index) {
  SymExpr at = storage.offset;
  for (size_t i = 0; i < index.size(); i++) {
    if (!(index[i] == SymExpr(0))) at += index[i] * storage.meta.strides[i];
  }
  return at;
}

ValueId LazyTensor::load(BodyBuilder& b, const IndexList& index) const {
  IndexList mapped;
  const IndexList* at = &index;
  if (reindex) {
    mapped = reindex(index);
    at = &mapped;
    b.addOrigins(viewOrigins);
  }
  const Storage& s = *storage;
  if (s.isReal()) return b.load(s.buffer, s.meta.dtype, address(s, *at));
  if (b.isReadOnly()) return b.load(0, s.meta.dtype, 0);
  if (ValueId known = b.recall(&s, *at); known >= 0) return known;
  const ValueId v = [&] {
    const BodyBuilder::Formula within(b, s.node());
    return s.compute(b, *at);
  }();
  b.addOrigins(s.origins);
  b.remember(&s, *at, v);
  return v;
}

LazyTensor LazyTensor::view(IndexList viewSizes, Reindex map) const {
  LazyTensor out{storage, std::move(viewSizes), std::move(map), viewOrigins};
  if (reindex) {
    out.reindex = [outer = reindex, inner = std::move(out.reindex)](const IndexList& i) { return outer(inner(i)); };
  }
  return out;
}

IndexList freshIndex(const IndexList& sizes, const char* prefix) {
  IndexList out;
  for (size_t i = 0; i < sizes.size(); i++) {
    out.push_back(sizes[i].bounds().second <= 1 ? SymExpr(0) : SymExpr(graph::axisSymbol(prefix + std::to_string(i), sizes[i])));
  }
  return out;
}

namespace {

/// As stridedLayout, of a formula too: as it will lie.
std::optional<StridedLayout> viewLayout(const LazyTensor& t) {
  const Storage& s = *t.storage;
  if (!t.reindex) return StridedLayout{s.meta.strides, s.offset};
  IndexList index;
  std::vector<Symbol> symbols;
  for (size_t i = 0; i < t.sizes.size(); i++) {
    symbols.push_back(graph::axisSymbol(fmt::format("i{}", i), t.sizes[i]));
    index.emplace_back(symbols.back());
  }
  SymExpr rest = address(s, t.reindex(index));
  StridedLayout out;
  SymExpr running = 1;
  for (size_t i = 0; i < t.sizes.size(); i++) {
    const auto stride = graph::symbolicStride(rest, symbols[i]);
    if (!stride) return std::nullopt;
    out.strides.push_back(*stride);
  }
  for (size_t i = 0; i < t.sizes.size(); i++) rest = rest - SymExpr(symbols[i]) * out.strides[i];
  // A dimension of one element may have any stride; give it the one a row-major tensor would have.
  for (size_t i = t.sizes.size(); i-- > 0;) {
    if (t.sizes[i] == SymExpr(1)) {
      out.strides[i] = i + 1 < t.sizes.size() ? out.strides[i + 1] * t.sizes[i + 1] : SymExpr(1);
    }
  }
  out.offset = rest;
  return out;
}

}  // namespace

std::optional<StridedLayout> stridedLayout(const LazyTensor& t) {
  if (!t.storage->isReal()) return std::nullopt;
  return viewLayout(t);
}

std::optional<std::vector<SymExpr>> stridesInOrderOf(const LazyTensor& t, const IndexList& sizes) {
  if (t.rank() != sizes.size()) return std::nullopt;
  auto layout = viewLayout(t);
  if (!layout) return std::nullopt;
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t i : order)
    if (layout->strides[i] == SymExpr(0) && !(sizes[i] == SymExpr(1))) return std::nullopt;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return graph::hint(layout->strides[a]) > graph::hint(layout->strides[b]);
  });
  std::vector<SymExpr> strides(sizes.size(), 1);
  SymExpr running = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = running;
    running *= sizes[order[i]];
  }
  return strides;
}

std::vector<SymExpr> channelsLastStrides(const IndexList& sizes) {
  const SymExpr &channels = sizes[1], row = sizes[3] * channels;
  return {sizes[2] * row, 1, row, channels};
}

bool hasOwnPlaces(const IndexList& sizes, const std::vector<SymExpr>& strides) {
  std::vector<size_t> order;
  for (size_t i = 0; i < sizes.size(); i++)
    if (!(sizes[i] == SymExpr(1))) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return graph::hint(strides[a]) < graph::hint(strides[b]); });
  SymExpr last = 0;
  for (size_t i : order) {
    if ((strides[i] - last).bounds().first < 1) return false;
    last += (sizes[i] - 1) * strides[i];
  }
  return true;
}

LazyTensor broadcastTo(const LazyTensor& t, const IndexList& sizes) {
  if (t.sizes == sizes) return t;
  size_t lead = sizes.size() - t.sizes.size();
  std::vector<bool> repeated;
  for (size_t i = 0; i < t.sizes.size(); i++) repeated.push_back(t.sizes[i] == SymExpr(1) && !(sizes[lead + i] == SymExpr(1)));
  return t.view(sizes, [lead, repeated](const IndexList& index) {
    IndexList out;
    for (size_t i = 0; i < repeated.size(); i++) out.push_back(repeated[i] ? SymExpr(0) : index[lead + i]);
    return out;
  });
}

namespace {

/// A run of dimensions of the old shape and the run of the new shape with the same number of elements.
struct Group {
  size_t oldBegin, oldEnd, newBegin, newEnd;
};

std::vector<Group> matchGroups(const IndexList& from, const IndexList& to) {
  std::vector<Group> groups;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    Group g{i, i, j, j};
    if (i < from.size() && j < to.size() && from[i] == to[j]) {
      g.oldEnd = ++i;
      g.newEnd = ++j;
      groups.push_back(g);
      continue;
    }
    SymExpr a = i < from.size() ? from[i++] : SymExpr(1), b = j < to.size() ? to[j++] : SymExpr(1);
    while (!(a == b) && (i < from.size() || j < to.size())) {
      // Where the hints say nothing wrong, the runs end together as early as they can; if not, the rest is one run, which is right too.
      const bool growNew = j < to.size() && (i == from.size() || graph::hint(b) < graph::hint(a));
      if (growNew) b *= to[j++];
      else if (i < from.size()) a *= from[i++];
      else b *= to[j++];
    }
    g.oldEnd = i;
    g.newEnd = j;
    groups.push_back(g);
  }
  return groups;
}

void mapGroup(const Group& g, const IndexList& from, const IndexList& to, const IndexList& index, IndexList& out) {
  if (g.oldEnd == g.oldBegin + 1 && g.newEnd == g.newBegin + 1) {
    out[g.oldBegin] = index[g.newBegin];
    return;
  }
  SymExpr flat = 0;
  for (size_t j = g.newBegin; j < g.newEnd; j++) flat = flat * to[j] + index[j];
  for (size_t i = g.oldEnd; i-- > g.oldBegin;) {
    if (i == g.oldBegin) {
      out[i] = flat;
    } else {
      out[i] = mod(flat, from[i]);
      flat = floorDiv(flat, from[i]);
    }
  }
}

}  // namespace

LazyTensor reshape(const LazyTensor& t, const IndexList& sizes) {
  if (t.sizes == sizes) return t;
  for (const SymExpr& s : sizes) {
    if (s == SymExpr(0)) return t.view(sizes, [n = t.sizes.size()](const IndexList&) { return IndexList(n, SymExpr(0)); });
  }
  return t.view(sizes, [from = t.sizes, to = sizes, groups = matchGroups(t.sizes, sizes)](const IndexList& index) {
    IndexList out(from.size(), SymExpr(0));
    for (const Group& g : groups) {
      if (g.oldEnd > g.oldBegin) mapGroup(g, from, to, index, out);
    }
    return out;
  });
}

LazyTensor permute(const LazyTensor& t, const std::vector<int64_t>& order) {
  IndexList sizes;
  for (int64_t d : order) sizes.push_back(t.sizes[static_cast<size_t>(d)]);
  return t.view(std::move(sizes), [order](const IndexList& index) {
    IndexList out(order.size());
    for (size_t i = 0; i < order.size(); i++) out[static_cast<size_t>(order[i])] = index[i];
    return out;
  });
}

}  // namespace fusebox::inductor
