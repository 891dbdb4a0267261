#pragma once

#include <deque>
#include <functional>
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

  struct Fetched {
    cache::Entry entry;
    bool isRemote = false;
  };
  /// The entry under a key, of whatever kind; else `why` says what was wrong with it, and stays empty where there is nothing.
  /// `isShared`: Redis is asked too.
  std::optional<Fetched> fetch(const cache::CacheKey& key, bool isShared, std::string& why);
  /// Writes an entry under its key, and tells what keeps it from being written. A graph gives way to one that is as good.
  void put(const cache::EntryHeader& header, std::string_view payload, bool isShared);

  struct Found {
    KeptGraph graph;
    cache::EntryHeader header;
    bool isRemote = false;
  };
  /// The graph under a key: fetch().
  std::optional<Found> find(const cache::CacheKey& key, const std::vector<graph::Symbol>& symbols, bool isShared,
                            std::string& why);
  /// Removes an entry whose code this process cannot use, and tells `why`, which says so then.
  void drop(const cache::CacheKey& key, std::string& why);
  /// In what the most similar entry differs, of the latest that were there when it was first asked and of those written since; empty
  /// where there is none to compare with.
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
  /// Runs `work` in the background, behind the kernels that are compiled there, and before flush() ends.
  void later(std::function<void()> work);
  /// Writes what waits, as it is. Belongs before exit().
  void flush();
  /// Entries that this process has used or written, as the folder has them.
  std::vector<std::string> used();
  /// The folder of this process, made where it is missing.
  Result<const cache::CacheFolder*> folder();
  /// These entries may come from elsewhere: they count as used.
  void noteUsed(const std::vector<std::string>& ids);

 private:
  Result<cache::Entry> take(const std::string& id, std::string_view bytes, cache::Trust trust);
  std::optional<Fetched> fetchRemote(const std::string& id, std::string& why);
  cache::RemoteCache* remote();
  const cache::CacheFolder* folder(bool make, std::string& why);
  void write(const Pending& pending);
  void workOldest();
  /// Once for each kind of problem: on standard error, and always in the session.
  void tell(const std::string& kind, const std::string& text);

  std::mutex mutex_;  ///< of all below
  std::string directory_;
  std::vector<std::unique_ptr<cache::CacheFolder>>
      folders_;  ///< the last one is that of directory_; earlier ones may be in use
  std::deque<std::function<void()>> pending_;
  std::map<std::string, bool> told_;
  std::vector<std::string> used_;
  std::map<const cache::CacheFolder*, std::vector<cache::CacheKey>> compared_;  ///< of graphs that nearest() looks at, read once
  std::unique_ptr<cache::RemoteCache> remote_;
  bool remoteAsked_ = false;
  int64_t stores_ = 0;
};

}  // namespace fusebox
