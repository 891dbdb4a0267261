#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/cache/entry_file.h"
#include "engine/support/result.h"

namespace fusebox::cache {

/// Where entries lie on this machine: a folder of our own below the cache directory, one file an entry. Any number of
/// processes may use it at once: files appear whole, by a rename, and are never changed. Thread-safe.
class CacheFolder {
 public:
  struct Item {
    std::string id, path;
    int64_t bytes = 0, lastUseS = 0;
  };
  struct Pruned {
    int64_t files = 0, bytes = 0, left = 0;  ///< left: bytes that stay
  };

  /// `directory`: cacheDirectory(). Made where it is missing if `make` is set; else NotFound. Io: it cannot be made or
  /// looked into.
  static Result<CacheFolder> open(const std::string& directory, bool make);
  ~CacheFolder();
  CacheFolder(CacheFolder&& other) noexcept;
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  /// Owner only where this user alone can write to the folder.
  Trust trust() const { return trust_; }
  /// Bytes of an entry, not yet checked. NotFound, Io, or InvalidArgument for what is no plain file of this user in an
  /// owner-only folder.
  Result<std::string> read(const std::string& id) const { return read(id, kMaxEntryBytes); }
  /// The beginning of an entry, enough for its header.
  Result<std::string> readHead(const std::string& id) const { return read(id, size_t{64} << 10); }
  /// Io where the disk is full or the folder cannot be written to: then nothing is left behind.
  Result<void> write(const std::string& id, std::string_view bytes) const;
  bool has(const std::string& id) const;
  /// It was of use now: least recently used entries go first.
  void touch(const std::string& id) const;
  bool remove(const std::string& id) const;
  /// Most recently used first.
  std::vector<Item> list() const;
  /// Removes what was used least recently until at most `maxBytes` are left, and what writers that died left behind.
  Pruned prune(int64_t maxBytes) const;

  const std::string& path() const { return path_; }

 private:
  Result<std::string> read(const std::string& id, size_t most) const;
  CacheFolder(int folder, std::string path, Trust trust) : folder_(folder), path_(std::move(path)), trust_(trust) {}
  int folder_ = -1;
  std::string path_;
  Trust trust_ = Trust::Signature;
};

}  // namespace fusebox::cache
