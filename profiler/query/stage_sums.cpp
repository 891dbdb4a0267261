#include "profiler/query/stage_sums.h"

#include <algorithm>
#include <unordered_map>

#include "profiler/query/bounded.h"

namespace fusebox::query {

Result<std::vector<StageSum>> stageSums(const session::Reader& reader) {
  std::unordered_map<int64_t, int64_t> inner;  // time of the stages inside, by stage
  auto read = reader.each("SELECT parent_id, end_ns - start_ns AS length_ns FROM t_stage WHERE parent_id IS NOT NULL AND end_ns IS NOT NULL", {},
                          [&](const session::Statement& s) { inner[s.integer("parent_id")] += boundedAmount(s.integer("length_ns")); });
  if (!read) return tl::unexpected(read.error());
  std::vector<StageSum> out;
  std::unordered_map<std::string, size_t> known;
  std::string key;
  read = reader.each("SELECT id, end_ns - start_ns AS length_ns, name, phase FROM t_stage WHERE end_ns IS NOT NULL AND start_ns IS NOT NULL", {},
                     [&](const session::Statement& s) {
    key.assign(s.text("name")).push_back('\0');
    key.append(s.text("phase"));
    const auto [at, isNew] = known.try_emplace(key, out.size());
    if (isNew) out.push_back({s.string("name"), s.string("phase")});
    StageSum& sum = out[at->second];
    const int64_t ns = boundedAmount(s.integer("length_ns"));
    const auto inside = inner.find(s.integer("id"));
    ++sum.runs;
    sum.totalNs = boundedAmount(sum.totalNs + ns);
    sum.ownNs = boundedAmount(sum.ownNs + std::max<int64_t>(0, ns - (inside == inner.end() ? 0 : boundedAmount(inside->second))));
  });
  if (!read) return tl::unexpected(read.error());
  std::stable_sort(out.begin(), out.end(), [](const StageSum& a, const StageSum& b) { return a.ownNs != b.ownNs ? a.ownNs > b.ownNs : a.totalNs > b.totalNs; });
  return out;
}

}  // namespace fusebox::query
