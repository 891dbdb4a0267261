#include "engine/cache/cache_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <tuple>
#include <utility>

namespace fusebox::cache {
namespace {

constexpr const char* kOurs = "fusebox";
constexpr const char* kUnfinished = ".tmp-";
constexpr int64_t kAbandonedAfterS = 3600;

struct File {
  int fd = -1;
  explicit File(int descriptor) : fd(descriptor) {}
  ~File() {
    if (fd >= 0) ::close(fd);
  }
  File(const File&) = delete;
};

tl::unexpected<Error> ioError(const char* what, const std::string& path, int error = errno) {
  return fail(error == ENOENT ? ErrorCode::NotFound : ErrorCode::Io, std::string(what) + ": " + std::strerror(error),
              path);
}

/// "ab/abcdef…": a folder for every first two digits, so that none grows too long.
std::string placeOf(const std::string& id) { return id.substr(0, 2) + "/" + id; }

bool isOwnersAlone(const struct stat& facts) {
  return facts.st_uid == ::geteuid() && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

Result<void> writeAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return ioError("cannot write a cache entry", path, written == 0 ? ENOSPC : errno);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;
Directory openDirectory(int folder, const char* name) {
  const int fd = ::openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR* opened = fd < 0 ? nullptr : ::fdopendir(fd);
  if (fd >= 0 && !opened) ::close(fd);
  return {opened, ::closedir};
}

/// Calls `visit(path below the folder, name, facts)` for every file.
template <class Visit>
void forEachFile(int folder, Visit&& visit) {
  const Directory top = openDirectory(folder, ".");
  if (!top) return;
  while (const dirent* group = ::readdir(top.get())) {
    const std::string name = group->d_name;
    if (name.size() != 2 || name.find_first_not_of("0123456789abcdef") != std::string::npos) continue;
    const Directory inner = openDirectory(folder, name.c_str());
    if (!inner) continue;
    while (const dirent* file = ::readdir(inner.get())) {
      struct stat facts;
      const std::string place = name + "/" + file->d_name;
      if (file->d_name[0] == '.' && !std::string_view(file->d_name).starts_with(kUnfinished)) continue;
      if (::fstatat(folder, place.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(facts.st_mode))
        visit(place, std::string(file->d_name), facts);
    }
  }
}

}  // namespace

Result<CacheFolder> CacheFolder::open(const std::string& directory, bool make) {
  const std::string path = directory + "/" + kOurs;
  if (make) {
    std::error_code ignored;  // what cannot be made is found out by opening it
    std::filesystem::create_directories(directory, ignored);
    ::mkdir(path.c_str(), 0700);
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return ioError("the cache folder cannot be opened", path);
  struct stat facts;
  const bool known = ::fstat(fd, &facts) == 0;
  return CacheFolder(fd, path, known && isOwnersAlone(facts) ? Trust::Owner : Trust::Signature);
}

CacheFolder::~CacheFolder() {
  if (folder_ >= 0) ::close(folder_);
}

CacheFolder::CacheFolder(CacheFolder&& other) noexcept
    : folder_(std::exchange(other.folder_, -1)), path_(std::move(other.path_)), trust_(other.trust_) {}

Result<std::string> CacheFolder::read(const std::string& id, size_t most) const {
  const std::string place = placeOf(id);
  const File file(::openat(folder_, place.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.fd < 0) return ioError("cannot open a cache entry", path_ + "/" + place);
  struct stat facts;
  if (::fstat(file.fd, &facts) != 0) return ioError("cannot look at a cache entry", path_ + "/" + place);
  if (!S_ISREG(facts.st_mode) || (trust_ == Trust::Owner && !isOwnersAlone(facts)))
    return fail(ErrorCode::InvalidArgument, "refused: others can write to the cache entry", path_ + "/" + place);
  if (facts.st_size < 0 || static_cast<size_t>(facts.st_size) > kMaxEntryBytes)
    return fail(ErrorCode::Corrupt, "the cache entry is too large", path_ + "/" + place);
  std::string bytes(std::min(most, static_cast<size_t>(facts.st_size)), '\0');
  size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t got = ::read(file.fd, bytes.data() + at, bytes.size() - at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ioError("cannot read a cache entry", path_ + "/" + place);
    if (got == 0) break;
    at += static_cast<size_t>(got);
  }
  bytes.resize(at);
  return bytes;
}

Result<void> CacheFolder::write(const std::string& id, std::string_view bytes) const {
  static std::atomic<int> serial{0};
  const std::string group = id.substr(0, 2), place = placeOf(id);
  const std::string unfinished =
      group + "/" + kUnfinished + std::to_string(::getpid()) + "-" + std::to_string(serial++) + "-" + id.substr(0, 16);
  if (::mkdirat(folder_, group.c_str(), 0700) != 0 && errno != EEXIST)
    return ioError("cannot make a cache folder", path_ + "/" + group);
  ::unlinkat(folder_, unfinished.c_str(), 0);  // of a process that had the same number
  Result<void> done;
  {
    const File file(::openat(folder_, unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file.fd < 0) return ioError("cannot make a cache entry", path_ + "/" + unfinished);
    done = writeAll(file.fd, bytes, path_ + "/" + unfinished);
    // Where space is only found out about late (network file systems).
    if (done && ::fsync(file.fd) != 0 && errno != EINVAL && errno != EROFS)
      done = ioError("cannot write a cache entry", path_ + "/" + unfinished);
  }
  if (done && ::renameat(folder_, unfinished.c_str(), folder_, place.c_str()) != 0)
    done = ioError("cannot name a cache entry", path_ + "/" + place);
  if (!done) ::unlinkat(folder_, unfinished.c_str(), 0);
  return done;
}

bool CacheFolder::has(const std::string& id) const { return ::faccessat(folder_, placeOf(id).c_str(), R_OK, 0) == 0; }

void CacheFolder::touch(const std::string& id) const {
  ::utimensat(folder_, placeOf(id).c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

bool CacheFolder::remove(const std::string& id) const { return ::unlinkat(folder_, placeOf(id).c_str(), 0) == 0; }

std::vector<CacheFolder::Item> CacheFolder::list() const {
  std::vector<Item> items;
  forEachFile(folder_, [&](const std::string& place, const std::string& name, const struct stat& facts) {
    if (isEntryId(name)) items.push_back({name, path_ + "/" + place, facts.st_size, facts.st_mtim.tv_sec});
  });
  std::sort(items.begin(), items.end(),
            [](const Item& a, const Item& b) { return std::tie(b.lastUseS, a.id) < std::tie(a.lastUseS, b.id); });
  return items;
}

CacheFolder::Pruned CacheFolder::prune(int64_t maxBytes) const {
  Pruned pruned;
  const int64_t now = std::time(nullptr);
  std::vector<std::string> abandoned;
  forEachFile(folder_, [&](const std::string& place, const std::string& name, const struct stat& facts) {
    if (name.starts_with(kUnfinished) && facts.st_mtim.tv_sec + kAbandonedAfterS < now) abandoned.push_back(place);
  });
  for (const std::string& place : abandoned)
    if (::unlinkat(folder_, place.c_str(), 0) == 0) ++pruned.files;
  for (const Item& item : list()) {
    if (pruned.left + item.bytes <= maxBytes) {
      pruned.left += item.bytes;
    } else if (remove(item.id)) {
      ++pruned.files;
      pruned.bytes += item.bytes;
    }
  }
  return pruned;
}

}  // namespace fusebox::cache
