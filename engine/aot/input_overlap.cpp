#include "engine/aot/input_overlap.h"

#include <algorithm>
#include <vector>

#include "engine/aot/aot_function.h"

namespace fusebox::aot {
namespace {

/// First byte and one past the last, relative to the storage.
std::pair<int64_t, int64_t> extent(const at::Tensor& t) {
  int64_t first = t.storage_offset(), last = first;
  for (int64_t d = 0; d < t.dim(); ++d) last += (t.size(d) - 1) * t.stride(d);
  auto item = static_cast<int64_t>(t.element_size());
  return {first * item, (last + 1) * item};
}

}  // namespace

bool mayOverlap(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined() || a.numel() == 0 || b.numel() == 0) return false;
  if (!a.has_storage() || !b.has_storage()) return false;
  if (a.storage().data() == nullptr || a.storage().data() != b.storage().data()) return false;
  auto [aFirst, aEnd] = extent(a);
  auto [bFirst, bEnd] = extent(b);
  return aFirst < bEnd && bFirst < aEnd;
}

bool mutationsOverlap(const AotModule& module, const std::vector<at::Tensor>& inputs) {
  std::vector<bool> written(inputs.size());
  bool any = false;
  for (auto& m : module.mutations)
    if (m.result >= 0) written[static_cast<size_t>(m.input)] = any = true;
  if (!any) return false;
  // Sorted by memory, tensors that could overlap are neighbours in one run of equal pointers.
  std::vector<std::pair<const void*, int32_t>> byMemory;
  byMemory.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].defined() && inputs[i].has_storage()) byMemory.emplace_back(inputs[i].storage().data(), static_cast<int32_t>(i));
  std::sort(byMemory.begin(), byMemory.end());
  for (size_t i = 0; i < byMemory.size(); ++i)
    for (size_t j = i + 1; j < byMemory.size() && byMemory[j].first == byMemory[i].first; ++j) {
      auto a = byMemory[i].second, b = byMemory[j].second;
      if ((written[a] || written[b]) && mayOverlap(inputs[a], inputs[b])) return true;
    }
  return false;
}

}  // namespace fusebox::aot
