#include "engine/aot/input_overlap.h"

#include <ATen/FunctionalTensorWrapper.h>

#include <algorithm>
#include <array>
#include <vector>

#include "engine/aot/aot_function.h"
#include "engine/trace/input_memory.h"

namespace fusebox::aot {
namespace {

/// Addresses of the first byte and of one past the last. Storages may share memory too: from_numpy gives each view of an array
/// its own.
struct Extent {
  explicit Extent(const at::Tensor& t) {
    int64_t last = t.storage_offset();
    for (int64_t d = 0; d < t.dim(); ++d) last += (t.size(d) - 1) * t.stride(d);
    const auto item = static_cast<int64_t>(t.element_size());
    const auto* start = static_cast<const char*>(t.storage().data());
    first = start + t.storage_offset() * item;
    end = start + (last + 1) * item;
  }
  const char *first = nullptr, *end = nullptr;
};

bool hasMemory(const at::Tensor& t) {
  return t.defined() && t.has_storage() && t.numel() > 0 && t.storage().data() != nullptr;
}

}  // namespace

bool mayOverlap(const at::Tensor& a, const at::Tensor& b) {
  if (!hasMemory(a) || !hasMemory(b) || a.device() != b.device()) return false;
  const Extent x(a), y(b);
  return x.first < y.end && y.first < x.end;
}

std::pair<const trace::TracedInput*, const trace::TracedInput*> writtenBeside(const trace::TraceContext& context) {
  const auto memoryOf = [](const trace::TracedInput& input) { return input.memoryOf < 0 ? input.index : input.memoryOf; };
  for (const trace::TracedInput& written : context.inputs()) {
    if (!at::functionalization::impl::unsafeGetFunctionalWrapper(written.standIn)->has_data_mutation()) continue;
    for (const trace::TracedInput& other : context.inputs())
      if (memoryOf(other) != memoryOf(written) && mayOverlap(written.real, other.real)) return {&written, &other};
  }
  return {};
}

std::vector<int64_t> sharedMemory(const std::vector<at::Tensor>& inputs) {
  std::vector<std::pair<Extent, size_t>> byMemory;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (hasMemory(inputs[i])) byMemory.emplace_back(Extent(inputs[i]), i);
  std::sort(byMemory.begin(), byMemory.end(),
            [](const auto& a, const auto& b) { return std::pair(a.first.first, a.second) < std::pair(b.first.first, b.second); });
  std::vector<std::array<int64_t, 4>> rows;
  for (size_t begin = 0, end = 0; begin < byMemory.size(); begin = end) {
    const char* last = byMemory[begin].first.end;
    size_t first = byMemory[begin].second;
    for (end = begin + 1; end < byMemory.size() && byMemory[end].first.first < last; ++end) {
      last = std::max(last, byMemory[end].first.end);
      first = std::min(first, byMemory[end].second);
    }
    std::vector<size_t> counted;  // one of each that count their writes together
    for (size_t i = begin; end - begin > 1 && i < end; ++i) {
      const size_t mine = byMemory[i].second;
      const auto together = std::find_if(counted.begin(), counted.end(), [&](size_t other) { return !trace::countsApart(inputs[mine], inputs[other]); });
      const auto counter = static_cast<int64_t>(together - counted.begin());
      if (together == counted.end()) counted.push_back(mine);
      rows.push_back({static_cast<int64_t>(mine), static_cast<int64_t>(first), byMemory[i].first.first - byMemory[begin].first.first, counter});
    }
  }
  std::sort(rows.begin(), rows.end());
  std::vector<int64_t> all;
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  return all;
}

bool mutationsOverlap(const AotModule& module, const std::vector<at::Tensor>& inputs) {
  const auto memoryOf = [&](size_t i) { return module.memoryOf.empty() || module.memoryOf[i] < 0 ? i : static_cast<size_t>(module.memoryOf[i]); };
  std::vector<bool> written(inputs.size());
  bool any = false;
  for (auto& m : module.mutations)
    if (m.result >= 0) written[static_cast<size_t>(m.input)] = any = true;
  if (!any) return false;
  // In the order of their first bytes, a tensor overlaps an earlier one where it begins before that ends.
  std::vector<std::pair<Extent, size_t>> byMemory;
  byMemory.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (hasMemory(inputs[i])) byMemory.emplace_back(Extent(inputs[i]), i);
  std::sort(byMemory.begin(), byMemory.end(), [](const auto& a, const auto& b) { return a.first.first < b.first.first; });
  for (size_t i = 0; i < byMemory.size(); ++i)
    for (size_t j = i + 1; j < byMemory.size() && byMemory[j].first.first < byMemory[i].first.end; ++j) {
      const size_t a = byMemory[i].second, b = byMemory[j].second;
      if (memoryOf(a) != memoryOf(b) && (written[a] || written[b]) && inputs[a].device() == inputs[b].device()) return true;
    }
  return false;
}

}  // namespace fusebox::aot
