#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/compile/graph_cache.h"

namespace fusebox {

/// The compiled graphs of one file that was made ahead of time: collected while it is made, looked up when it is loaded. Thread-safe.
class StoredGraphs {
 public:
  /// Collects.
  StoredGraphs() = default;
  /// Has these entries. Errors: of cache::readEntry().
  static Result<std::shared_ptr<StoredGraphs>> of(const std::vector<std::string>& entries, cache::Trust trust, const std::string& secret);

  void collect(GraphCache::Pending made);
  /// Entries of what was collected, with the code that there is now.
  Result<std::vector<std::string>> entries(const std::string& secret);
  /// What there is under a key; else `why` says in what the most similar entry differs.
  std::optional<GraphCache::Found> find(const cache::CacheKey& key, const std::vector<graph::Symbol>& symbols, std::string& why) const;

  /// Whether a graph that is not there is an error, rather than compiled.
  bool isComplete() const { return isComplete_; }
  /// From now on what is not there (an unusual backward pass) is compiled.
  void open() { isComplete_ = false; }

 private:
  std::mutex mutex_;
  std::vector<GraphCache::Pending> made_;
  std::map<std::string, cache::Entry> stored_;
  bool collects_ = true;
  std::atomic<bool> isComplete_{false};
};

}  // namespace fusebox
