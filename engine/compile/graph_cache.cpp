#include "engine/compile/graph_cache.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <exception>
#include <utility>

#include "engine/cache/cache_settings.h"
#include "engine/compile/compiled_region.h"
#include "engine/compile/kernel_code.h"
#include "engine/record/recorder.h"

namespace fusebox {
namespace {

constexpr int64_t kStoresBetweenPrunes = 128;
constexpr size_t kComparedEntries = 256;  ///< looked at for the most similar one, the latest first

std::atomic<int64_t> hits{0}, misses{0}, bypasses{0}, stores{0}, problems{0}, remoteHits{0}, remoteStores{0};

bool isOptimised(const KeptGraph& graph) {
  for (size_t i = 0; i < graph.code.size(); ++i)
    if (!graph.gpuCode[i] && graph.code[i].tier == 0) return false;
  return true;
}

/// What a region is made of again, as it is now. Errors: a kernel without code.
Result<KeptGraph> keptForm(CompiledRegion& region, const graph::Graph& traced,
                           const std::vector<graph::Symbol>& symbols) {
  KeptGraph kept;
  kept.program = region.program().program();
  const auto jit = startedJit();
  const auto& kernels = region.program().kernels();
  const auto& onGpu = region.program().gpuKernels();
  kept.code.resize(kept.program.kernels.size());
  kept.gpuCode.resize(kept.program.kernels.size());
  for (size_t i = 0; i < kept.code.size(); ++i) {
    if (i < onGpu.size() && onGpu[i]) {
      kept.gpuCode[i] = onGpu[i]->image();
      continue;
    }
    if (!jit || i >= kernels.size() || !kernels[i]) return fail(ErrorCode::Unsupported, "a kernel has no code that can be kept");
    auto image = jit->image(*kernels[i], kept.program.kernels[i].sizeSymbols);
    if (!image) return tl::unexpected(image.error());
    kept.code[i] = std::move(*image);
  }
  kept.results = region.results();
  auto forms = region.forms();
  if (!forms) return tl::unexpected(forms.error());
  kept.forms = writeForms(**forms, traced, symbols);
  return kept;
}

}  // namespace

CacheCounters cacheCounters() { return {hits, misses, bypasses, stores, problems, remoteHits, remoteStores}; }
void countCache(CacheOutcome outcome) {
  (outcome == CacheOutcome::Hit    ? hits
   : outcome == CacheOutcome::Miss ? misses
                                   : bypasses)
      .fetch_add(1, std::memory_order_relaxed);
}

GraphCache& GraphCache::instance() {
  static auto* cache = new GraphCache;  // outlives statics: backward graphs may be compiled while the program ends
  return *cache;
}

void GraphCache::tell(const std::string& kind, const std::string& text) {
  problems.fetch_add(1, std::memory_order_relaxed);
  if (auto* recorder = record::Recorder::active()) recorder->loss("cache", 1, text);
  {
    std::lock_guard lock(mutex_);
    if (!told_.emplace(kind, true).second) return;
  }
  TORCH_WARN("fusebox: ", text);
}

const cache::CacheFolder* GraphCache::folder(bool make, std::string& why) {
  const std::string directory = cache::cacheDirectory();
  std::lock_guard lock(mutex_);
  if (directory == directory_ && !folders_.empty()) return folders_.back().get();
  auto opened = cache::CacheFolder::open(directory, make);
  if (!opened) {
    why = opened.error().text();
    return nullptr;
  }
  directory_ = directory;
  folders_.push_back(std::make_unique<cache::CacheFolder>(std::move(*opened)));
  return folders_.back().get();
}

Result<const cache::CacheFolder*> GraphCache::folder() {
  std::string why;
  const cache::CacheFolder* made = folder(true, why);
  if (!made) return fail(ErrorCode::Io, why);
  return made;
}

std::vector<std::string> GraphCache::used() {
  std::lock_guard lock(mutex_);
  return used_;
}

void GraphCache::noteUsed(const std::vector<std::string>& ids) {
  std::lock_guard lock(mutex_);
  for (const std::string& id : ids)
    if (std::find(used_.begin(), used_.end(), id) == used_.end()) used_.push_back(id);
}

/// The remote cache, for those who want it: what is wrong with the wish is told once.
cache::RemoteCache* GraphCache::remote() {
  std::string why;
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(remoteAsked_, true)) return remote_.get();
    auto address = cache::remoteAddress();
    if (!address)
      why = "the remote cache is not used: " + address.error().text();
    else if (cache::cacheSecret().empty())
      why =
          "the remote cache is not used: its entries are machine code that anybody may have written; give all that "
          "share it the same "
          "FUSEBOX_CACHE_KEY or FUSEBOX_CACHE_KEY_FILE";
    else
      remote_ = std::make_unique<cache::RemoteCache>(*address);
  }
  if (!why.empty()) tell("remote", why);
  std::lock_guard lock(mutex_);
  return remote_.get();
}

Result<cache::Entry> GraphCache::take(const std::string& id, std::string_view bytes, cache::Trust trust) {
  auto entry = cache::readEntry(bytes, trust, cache::cacheSecret());
  if (entry && entry->header.key.id() != id) return fail(ErrorCode::Corrupt, "the cache entry is another one than its name says", id);
  if (entry) noteUsed({id});
  return entry;
}

std::optional<GraphCache::Fetched> GraphCache::fetch(const cache::CacheKey& key, bool isShared, std::string& why) {
  const std::string id = key.id();
  std::string noFolder;
  if (const cache::CacheFolder* entries = folder(false, noFolder)) {
    auto bytes = entries->read(id);
    Error wrong = bytes ? Error{} : bytes.error();
    if (bytes) {
      if (auto entry = take(id, *bytes, entries->trust())) {
        entries->touch(id);
        return Fetched{std::move(*entry), false};
      } else {
        wrong = entry.error();
      }
    }
    if (wrong.code != ErrorCode::NotFound) {
      why = wrong.text();
      if (wrong.code == ErrorCode::Corrupt && entries->remove(id)) why += "; it was removed";
      tell(wrong.message, why);
    }
  }
  return isShared ? fetchRemote(id, why) : std::nullopt;
}

std::optional<GraphCache::Fetched> GraphCache::fetchRemote(const std::string& id, std::string& why) {
  cache::RemoteCache* remote = this->remote();
  if (!remote) return std::nullopt;
  auto bytes = remote->get(id);
  if (!bytes) {
    tell("remote", why = bytes.error().text());
    return std::nullopt;
  }
  if (!*bytes) return std::nullopt;
  auto entry = take(id, **bytes, cache::Trust::Signature);
  if (!entry) {
    tell("remote: " + entry.error().message, why = "from the remote cache: " + entry.error().text());
    return std::nullopt;
  }
  if (entry->header.kind == "graph") remoteHits.fetch_add(1, std::memory_order_relaxed);
  std::string noFolder;
  if (const cache::CacheFolder* entries = folder(true, noFolder))
    (void)entries->write(id, **bytes);  // the next process finds it here
  return Fetched{std::move(*entry), true};
}

std::optional<GraphCache::Found> GraphCache::find(const cache::CacheKey& key, const std::vector<graph::Symbol>& symbols,
                                                  bool isShared, std::string& why) {
  auto fetched = fetch(key, isShared, why);
  if (!fetched) return std::nullopt;
  auto graph = readKeptGraph(fetched->entry.payload, symbols);
  if (graph) return Found{std::move(*graph), std::move(fetched->entry.header), fetched->isRemote};
  why = graph.error().text();
  drop(key, why);
  return std::nullopt;
}

void GraphCache::drop(const cache::CacheKey& key, std::string& why) {
  std::string noFolder;
  const cache::CacheFolder* entries = folder(false, noFolder);
  const std::string reason = why;
  if (entries && entries->remove(key.id())) why += "; it was removed";
  tell(reason, why);
}

std::string GraphCache::nearest(const cache::CacheKey& key) {
  std::string noFolder;
  const cache::CacheFolder* entries = folder(false, noFolder);
  if (!entries) return {};
  std::unique_lock lock(mutex_);
  if (!compared_.contains(entries)) {  // a folder of many thousands takes a while to list: that is no part of each compilation
    lock.unlock();
    std::vector<cache::CacheKey> keys;
    auto items = entries->list();
    if (items.size() > kComparedEntries) items.resize(kComparedEntries);
    for (const auto& item : items) {
      auto head = entries->readHead(item.id);
      if (!head) continue;
      auto header = cache::readHeader(*head);
      if (header && header->kind == "graph") keys.push_back(std::move(header->key));
    }
    lock.lock();
    compared_.try_emplace(entries, std::move(keys));
  }
  std::vector<cache::KeyDifference> best;
  bool isFirst = true;
  for (const cache::CacheKey& other : compared_[entries]) {
    auto found = cache::differences(key, other);
    if (isFirst || found.size() < best.size()) best = std::move(found);
    isFirst = false;
  }
  return cache::differenceText(best);
}

void GraphCache::keep(Pending pending) {
  later([this, pending = std::move(pending)] { write(pending); });
}

void GraphCache::later(std::function<void()> work) {
  if (!backgroundLives()) return;
  {
    std::lock_guard lock(mutex_);
    pending_.push_back(std::move(work));
  }
  // Behind the kernels that were just handed to the background tier.
  if (auto jit = startedJit())
    jit->later([this] { workOldest(); });
  else
    workOldest();
}

void GraphCache::workOldest() {
  std::function<void()> work;
  {
    std::lock_guard lock(mutex_);
    if (pending_.empty()) return;
    work = std::move(pending_.front());
    pending_.pop_front();
  }
  try {
    work();
  } catch (const std::exception& error) {
    tell("cannot write", std::string("an entry cannot be written to the cache: ") + error.what());
  }
}

void GraphCache::flush() {
  for (;;) {
    {
      std::lock_guard lock(mutex_);
      if (pending_.empty()) return;
    }
    workOldest();
  }
}

Result<cache::Entry> GraphCache::entryOf(const Pending& pending) {
  auto kept = keptForm(*pending.region, *pending.traced, pending.symbols);
  if (!kept) return tl::unexpected(kept.error());
  cache::EntryHeader header{"graph", pending.key, pending.name, static_cast<int64_t>(std::time(nullptr)), pending.compileNs};
  header.kernels = static_cast<int64_t>(kept->code.size());
  header.nodes = static_cast<int64_t>(pending.traced->nodes().size());
  header.optimised = isOptimised(*kept);
  return cache::Entry{std::move(header), writeKeptGraph(*kept, pending.symbols)};
}

void GraphCache::write(const Pending& pending) {
  auto made = entryOf(pending);
  if (!made) return tell("no form", "a compiled graph cannot be kept: " + made.error().text());
  put(made->header, made->payload, pending.isShared);
}

void GraphCache::put(const cache::EntryHeader& header, std::string_view payload, bool isShared) {
  std::string why;
  const cache::CacheFolder* entries = folder(true, why);
  if (!entries) return tell("no folder", "compiled graphs are not kept: " + why);
  const std::string secret = cache::cacheSecret(), id = header.key.id();
  if (entries->trust() == cache::Trust::Signature && secret.empty())
    return tell("no key", "compiled graphs are not kept: others can write to " + entries->path() +
                              ", and FUSEBOX_CACHE_KEY is not set");
  // Many processes may have compiled it at once: one that is as good stays.
  if (header.kind == "graph")
    if (auto there = entries->read(id))
      if (auto entry = cache::readEntry(*there, entries->trust(), secret);
          entry && (entry->header.optimised || !header.optimised))
        return;
  const std::string bytes = cache::writeEntry(header, payload, secret);
  if (cache::RemoteCache* remote = isShared ? this->remote() : nullptr) {
    if (auto done = remote->put(id, bytes); !done)
      tell("remote", done.error().text());
    else if (header.kind == "graph" && !remote->isDown())
      remoteStores.fetch_add(1, std::memory_order_relaxed);
  }
  if (auto written = entries->write(id, bytes); !written)
    return tell("cannot write", "a " + header.kind + " cannot be written to the cache: " + written.error().text());
  noteUsed({id});
  if (header.kind == "graph") stores.fetch_add(1, std::memory_order_relaxed);
  bool isTime = false;
  {
    std::lock_guard lock(mutex_);
    isTime = stores_++ % kStoresBetweenPrunes == 0;
    const auto known = compared_.find(entries);
    if (known != compared_.end() && header.kind == "graph") {
      std::erase_if(known->second, [&](const cache::CacheKey& k) { return k.id() == id; });
      known->second.push_back(header.key);
      if (known->second.size() > 2 * kComparedEntries) known->second.erase(known->second.begin());
    }
  }
  if (isTime) entries->prune(cache::cacheLimit());
}

}  // namespace fusebox
