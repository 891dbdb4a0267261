#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/compile/graph_cache.h"
#include "engine/compile/graph_key.h"
#include "engine/compile/stored_graphs.h"
#include "engine/record/recorder.h"

namespace fusebox {

/// What one compilation has to do with the compiled-graph cache, and says of it in the session.
class GraphCaching {
 public:
  /// Why the cache is not to be used; empty: it is.
  struct NoCache {
    std::string why;
    bool isDisabled = false;  ///< by the user's settings; else by what this graph or this process is
  };
  /// `isShared`: by Redis too. `stored`: takes the place of folder and Redis.
  GraphCaching(std::shared_ptr<const graph::Graph> traced, GraphKeyFacts facts, NoCache whyNot, bool isShared, record::Id compile,
               std::string name, std::shared_ptr<StoredGraphs> stored = nullptr);

  /// The compiled graph of an entry, with its code linked; null where it has to be compiled.
  std::shared_ptr<CompiledRegion> load(const std::vector<at::Tensor>& constants);
  /// Why load() found nothing.
  const std::string& whyMissed() const { return whyMissed_; }
  /// Hands what was compiled, in `compileNs`, to the cache.
  void keep(std::shared_ptr<CompiledRegion> region, int64_t compileNs);

 private:
  std::shared_ptr<CompiledRegion> lookUp(const std::vector<at::Tensor>& constants);
  std::shared_ptr<CompiledRegion> make(GraphCache::Found found, const std::vector<at::Tensor>& constants,
                                       std::string& why);
  void record(const char* outcome, std::string reason, int64_t savedNs = 0) const;

  std::shared_ptr<const graph::Graph> traced_;
  GraphKeyFacts facts_;
  NoCache whyNot_;
  std::string name_, whyMissed_;
  bool isShared_ = false;
  record::Id compile_ = 0;
  std::shared_ptr<StoredGraphs> stored_;
  std::optional<cache::CacheKey> key_;
};

}  // namespace fusebox
