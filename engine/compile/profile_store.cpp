#include "engine/compile/profile_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/cache/cache_settings.h"
#include "engine/cache/entry_file.h"
#include "engine/cache/remote_cache.h"
#include "engine/compile/graph_cache.h"

namespace fusebox {
namespace {

constexpr size_t kMostBytes = size_t{64} << 20;

cache::CacheKey keyOf(const ProfileName& name) {
  cache::CacheKey key;
  key.add("format", "profile 1");
  key.add("job", name.job);
  key.add("rank", name.rank);
  key.add("cache key tag", name.tag);
  return key;
}

/// Held by the one process that reads, merges and writes.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder)
      : fd_(::open((folder + "/.profiles").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {
    constexpr int kTries = 200;
    for (int i = 0; fd_ >= 0 && i < kTries && ::flock(fd_, LOCK_EX | LOCK_NB) != 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ~FolderLock() {
    if (fd_ >= 0) ::close(fd_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_;
};

std::mutex& remoteMutex() {
  static std::mutex mutex;
  return mutex;
}

/// Null where its address is none.
cache::RemoteCache* remoteProfiles(std::vector<std::string>& problems) {
  static std::unique_ptr<cache::RemoteCache> remote;
  std::lock_guard lock(remoteMutex());
  if (remote) return remote.get();
  auto address = cache::remoteAddress();
  if (!address) problems.push_back("profiles are not shared: " + address.error().text());
  else remote = std::make_unique<cache::RemoteCache>(*address);
  return remote.get();
}

void take(const std::string& id, std::string_view bytes, cache::Trust trust, const char* where,
          std::vector<std::string>& texts, std::vector<std::string>& problems) {
  auto entry = bytes.size() > kMostBytes ? tl::unexpected(Error{ErrorCode::Corrupt, "it is too large", {}})
                                         : cache::readEntry(bytes, trust, cache::cacheSecret());
  if (!entry) problems.push_back(std::string("a profile ") + where + " is not used: " + entry.error().text());
  else if (entry->header.kind != "profile" || entry->header.key.id() != id)
    problems.push_back(std::string("a profile ") + where + " is not used: it is another entry than its name says");
  else texts.push_back(std::move(entry->payload));
}

}  // namespace

std::string ProfileStore::id() const { return keyOf(name).id(); }

std::vector<std::string> ProfileStore::read(std::vector<std::string>& problems) const {
  std::vector<std::string> texts;
  const std::string key = id();
  if (local) {
    auto folder = GraphCache::instance().folder();
    if (!folder) {
      problems.push_back("profiles are not kept: " + folder.error().text());
    } else if (auto bytes = (*folder)->read(key); bytes) {
      take(key, *bytes, (*folder)->trust(), "in the cache folder", texts, problems);
      if (!texts.empty()) GraphCache::instance().noteUsed({key});
    } else if (bytes.error().code != ErrorCode::NotFound) {
      problems.push_back("a profile is not used: " + bytes.error().text());
    }
  }
  if (!remote) return texts;
  if (cache::RemoteCache* shared = remoteProfiles(problems)) {
    auto bytes = shared->get(key);
    const auto trust = cache::cacheSecret().empty() ? cache::Trust::Owner : cache::Trust::Signature;
    if (!bytes) problems.push_back("profiles: " + bytes.error().text());
    else if (*bytes) take(key, **bytes, trust, "from the remote cache", texts, problems);
  }
  return texts;
}

void ProfileStore::write(const std::function<std::string(const std::vector<std::string>&)>& merged, int64_t places,
                         std::vector<std::string>& problems) const {
  const auto folder = GraphCache::instance().folder();
  std::unique_ptr<FolderLock> lock;
  if (local && folder) lock = std::make_unique<FolderLock>((*folder)->path());
  const std::string text = merged(read(problems));
  cache::EntryHeader header{"profile", keyOf(name), "job " + name.job, static_cast<int64_t>(std::time(nullptr))};
  header.nodes = places;
  const std::string secret = cache::cacheSecret(), bytes = cache::writeEntry(header, text, secret), key = id();
  if (local && folder) {
    if ((*folder)->trust() == cache::Trust::Signature && secret.empty())
      problems.push_back("profiles are not kept: others can write to " + (*folder)->path() +
                         ", and FUSEBOX_CACHE_KEY is not set");
    else if (auto done = (*folder)->write(key, bytes); !done)
      problems.push_back("a profile cannot be kept: " + done.error().text());
    else
      GraphCache::instance().noteUsed({key});
  }
  if (!remote) return;
  if (cache::RemoteCache* shared = remoteProfiles(problems))
    if (auto done = shared->put(key, bytes); !done) problems.push_back("profiles: " + done.error().text());
}

}  // namespace fusebox
