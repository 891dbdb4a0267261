#include "engine/compile/stored_graphs.h"

#include "engine/compile/compiled_region.h"

namespace fusebox {

Result<std::shared_ptr<StoredGraphs>> StoredGraphs::of(const std::vector<std::string>& entries, cache::Trust trust, const std::string& secret) {
  auto graphs = std::make_shared<StoredGraphs>();
  graphs->collects_ = false;
  graphs->isComplete_ = true;
  for (const std::string& bytes : entries) {
    auto entry = cache::readEntry(bytes, trust, secret);
    if (!entry) return tl::unexpected(entry.error());
    if (entry->header.kind != "graph") return fail(ErrorCode::Corrupt, "an entry of kind " + entry->header.kind + " is where a compiled graph is expected");
    std::string id = entry->header.key.id();
    graphs->stored_.emplace(std::move(id), std::move(*entry));
  }
  return graphs;
}

void StoredGraphs::collect(GraphCache::Pending made) {
  std::lock_guard lock(mutex_);
  if (collects_) made_.push_back(std::move(made));
}

Result<std::vector<std::string>> StoredGraphs::entries(const std::string& secret) {
  std::lock_guard lock(mutex_);
  std::vector<std::string> bytes;
  for (const GraphCache::Pending& made : made_) {
    auto entry = GraphCache::entryOf(made);
    if (!entry) return tl::unexpected(entry.error());
    bytes.push_back(cache::writeEntry(entry->header, entry->payload, secret));
  }
  return bytes;
}

std::optional<GraphCache::Found> StoredGraphs::find(const cache::CacheKey& key, const std::vector<graph::Symbol>& symbols, std::string& why) const {
  const auto at = stored_.find(key.id());
  if (at == stored_.end()) {
    std::vector<cache::KeyDifference> best;
    for (const auto& [id, entry] : stored_)
      if (auto found = cache::differences(key, entry.header.key); best.empty() || found.size() < best.size()) best = std::move(found);
    why = best.empty() ? "the file has no code for it" : "the code in the file is for something else: " + cache::differenceText(best);
    return std::nullopt;
  }
  auto graph = readKeptGraph(at->second.payload, symbols);
  if (!graph) {
    why = graph.error().text();
    return std::nullopt;
  }
  return GraphCache::Found{std::move(*graph), at->second.header};
}

}  // namespace fusebox
