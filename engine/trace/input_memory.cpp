#include "engine/trace/input_memory.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace fusebox::trace {
namespace {

/// Positions in the storage of the first element and of the last.
std::pair<int64_t, int64_t> reachOf(const at::Tensor& t) {
  int64_t last = t.storage_offset();
  for (int64_t d = 0; d < t.dim(); ++d) last += (t.size(d) - 1) * t.stride(d);
  return {t.storage_offset(), last};
}

/// Dimensions from the one of the largest steps on.
std::vector<int64_t> outermostFirst(const at::Tensor& t) {
  std::vector<int64_t> order(static_cast<size_t>(t.dim()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return t.stride(a) > t.stride(b); });
  return order;
}

std::vector<int64_t> inverse(const std::vector<int64_t>& order) {
  std::vector<int64_t> made(order.size());
  for (size_t i = 0; i < order.size(); ++i) made[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return made;
}

bool hasMemory(const at::Tensor& t) { return t.has_storage() && t.numel() > 0 && !t.is_conj() && !t.is_neg(); }

}  // namespace

bool liesWithin(const at::Tensor& part, const at::Tensor& whole) {
  if (!hasMemory(part) || !hasMemory(whole) || !part.storage().is_alias_of(whole.storage())) return false;
  if (part.scalar_type() != whole.scalar_type() || !whole.is_non_overlapping_and_dense()) return false;
  const auto [first, last] = reachOf(part);
  const auto [begin, end] = reachOf(whole);
  return begin <= first && last <= end;
}

bool countsApart(const at::Tensor& view, const at::Tensor& base) {
  if (view.is_inference() || base.is_inference()) return false;
  auto counter = base.unsafeGetTensorImpl()->version_counter();
  const auto first = counter.current_version(), before = view.unsafeGetTensorImpl()->version_counter().current_version();
  counter.bump();
  const bool apart = view.unsafeGetTensorImpl()->version_counter().current_version() == before;
  counter.set_version(first);
  return apart;
}

at::Tensor viewLike(const at::Tensor& part, const at::Tensor& standIn, const at::Tensor& whole) {
  const at::AutoDispatchBelowADInplaceOrView noHistory;
  if (part.sizes() == whole.sizes() && part.strides() == whole.strides() && part.storage_offset() == whole.storage_offset()) return at::alias(standIn);
  const auto fits = [&](const at::Tensor& t) { return t.sizes() == part.sizes() && t.strides() == part.strides(); };
  if (part.is_non_overlapping_and_dense() && standIn.sizes() == whole.sizes() && standIn.strides() == whole.strides()) {
    const auto order = outermostFirst(part);
    std::vector<int64_t> sizes;
    for (int64_t d : order) sizes.push_back(part.size(d));
    const at::Tensor flat = standIn.permute(outermostFirst(whole)).reshape({-1});
    const at::Tensor view = flat.narrow(0, part.storage_offset() - whole.storage_offset(), part.numel()).view(sizes).permute(inverse(order));
    if (fits(view)) return view;
  }
  return at::as_strided(standIn, part.sizes(), part.strides(), part.storage_offset());
}

}  // namespace fusebox::trace
