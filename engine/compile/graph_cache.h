#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/cache/cache_folder.h"
#include "engine/cache/cache_key.h"
#include "engine/cache/entry_file.h"
#include "engine/cache/remote_cache.h"
#include "engine/compile/kept_graph.h"

namespace fusebox {

class CompiledRegion;

/// How the cache was of use in this process, for `fusebox.counters()`.
struct CacheCounters {
  int64_t hits = 0, misses = 0, bypasses = 0, stores = 0, problems = 0;
  int64_t remoteHits = 0, remoteStores = 0;  ///< of hits and stores
};
CacheCounters cacheCounters();
enum class CacheOutcome : uint8_t { Hit, Miss, Bypass };
void countCache(CacheOutcome outcome);

/// The process's compiled-graph cache: finds entries, and writes new ones in the background once their code is of the
/// best tier. Thread-safe.
class GraphCache {
 public:
  static GraphCache& instance();

  struct Found {
    KeptGraph graph;
    cache::EntryHeader header;
    bool isRemote = false;
  };
  /// What there is under a key; else `why` says what was wrong with it, and stays empty where there is nothing.
  /// `isShared`: Redis is asked too.
  std::optional<Found> find(const cache::CacheKey& key, const std::vector<graph::Symbol>& symbols, bool isShared,
                            std::string& why);
  /// Removes an entry whose code this process cannot use, and tells `why`, which says so then.
  void drop(const cache::CacheKey& key, std::string& why);
  /// In what the most similar entry differs; empty where there is none to compare with.
  std::string nearest(const cache::CacheKey& key);

  struct Pending {
    cache::CacheKey key;
    std::string name;
    int64_t compileNs = 0;
    std::shared_ptr<CompiledRegion> region;
    std::shared_ptr<const graph::Graph> traced;
    std::vector<graph::Symbol> symbols;
    bool isShared = false;  ///< goes to Redis too
  };
  /// As an entry, with the code that there is now. Errors: a kernel without code.
  static Result<cache::Entry> entryOf(const Pending& pending);
  /// Writes it when the background tier is done with its kernels, or with flush().
  void keep(Pending pending);
  /// Writes what waits, as it is. Belongs before exit().
  void flush();
  /// Entries that this process has used or written, as the folder has them.
  std::vector<std::string> used();
  /// The folder of this process, made where it is missing.
  Result<const cache::CacheFolder*> folder();
  /// These entries may come from elsewhere: they count as used.
  void noteUsed(const std::vector<std::string>& ids);

 private:
  std::optional<Found> take(const std::string& id, std::string_view bytes, cache::Trust trust,
                            const std::vector<graph::Symbol>& symbols, Error& wrong);
  std::optional<Found> findRemote(const std::string& id, const std::vector<graph::Symbol>& symbols, std::string& why);
  cache::RemoteCache* remote();
  const cache::CacheFolder* folder(bool make, std::string& why);
  void write(const Pending& pending);
  void writeOldest();
  /// Once for each kind of problem: on standard error, and always in the session.
  void tell(const std::string& kind, const std::string& text);

  std::mutex mutex_;  ///< of all below
  std::string directory_;
  std::vector<std::unique_ptr<cache::CacheFolder>>
      folders_;  ///< the last one is that of directory_; earlier ones may be in use
  std::vector<Pending> pending_;
  std::map<std::string, bool> told_;
  std::vector<std::string> used_;
  std::unique_ptr<cache::RemoteCache> remote_;
  bool remoteAsked_ = false;
  int64_t stores_ = 0;
};

}  // namespace fusebox
