#include "profiler/importers/open.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <vector>

#include "profiler/importers/formats.h"
#include "profiler/importers/inflated_file.h"
#include "profiler/importers/session_builder.h"
#include "profiler/session/schema.h"

namespace fusebox::importing {
namespace fs = std::filesystem;
namespace {

// Part of every key: raise it when an importer gives another result for the same file.
constexpr int kImporterVersion = 18;
constexpr size_t kMostFiles = 20'000;
constexpr size_t kMostOthers = 200;  // that are listed by name
constexpr std::chrono::milliseconds kLookFirst{300};  // most files are hashed by then
constexpr std::string_view kSqlite("SQLite format 3\0", 16);

bool isSession(const Probe& probe) {
  return probe.head.size() >= 72 && probe.head.starts_with(kSqlite) &&
         std::string_view(probe.head).substr(68, 4) == "FUSB";
}

class ContentHash {
 public:
  ContentHash() { XXH3_128bits_reset(&state_); }
  void add(std::string_view bytes) { XXH3_128bits_update(&state_, bytes.data(), bytes.size()); }
  Result<void> addFile(const std::string& path, const std::function<bool()>& stop) {
    std::ifstream in(path, std::ios::binary);
    if (!in) return fail(ErrorCode::Io, "the file may not be read; check its permissions", path);
    std::vector<char> buffer(size_t{1} << 20);
    while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || in.gcount() > 0) {
      add({buffer.data(), static_cast<size_t>(in.gcount())});
      if (stop()) return fail(ErrorCode::InvalidArgument, "opening was cancelled", path);
    }
    return {};
  }
  std::string hex() const {
    const auto hash = XXH3_128bits_digest(&state_);
    return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
  }

 private:
  XXH3_state_t state_;
};

Result<std::string> keyOf(const Probe& probe, const std::function<bool()>& stop) {
  ContentHash hash;
  hash.add(
      fmt::format("{} {} {}\n", kImporterVersion, session::kSchemaVersion, fs::path(probe.path).filename().string()));
  if (!probe.isFolder) {
    if (auto added = hash.addFile(probe.path, stop); !added) return tl::unexpected(added.error());
    return hash.hex();
  }
  std::vector<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(probe.path, fs::directory_options::skip_permission_denied, error), end;
       it != end && !error; it.increment(error)) {
    if (it->is_regular_file(error)) files.push_back(it->path().string());
    if (files.size() > kMostFiles) {
      return fail(ErrorCode::Unsupported,
                  fmt::format("the folder holds more than {} files; open one of its parts", kMostFiles), probe.path);
    }
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    hash.add(fs::path(file).lexically_relative(probe.path).string() + "\n");
    if (auto added = hash.addFile(file, stop); !added) return tl::unexpected(added.error());
  }
  return hash.hex();
}

/// Makes the folder if need be. Traces hold source, and what lies in it is opened again: it has to be this user's, and no link.
bool usableFolder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  struct stat status{};
  if (::lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != geteuid()) return false;
  fs::permissions(folder, fs::perms::owner_all, error);
  return access(folder.c_str(), W_OK | X_OK) == 0;
}

/// A folder in the place for temporary files that nobody else can have made: if its name is taken by somebody, one of a new name.
fs::path spareFolder() {
  std::error_code error;
  const fs::path base = fs::temp_directory_path(error) / fmt::format("fusebox-{}", getuid());
  if (usableFolder(base) && usableFolder(base / "imported")) return base / "imported";
  static const fs::path made = [&] {
    std::string name = base.string() + "-XXXXXX";
    return ::mkdtemp(name.data()) ? fs::path(name) : base;
  }();
  return made;
}

void makeRoom(const fs::path& folder) {
  struct Kept {
    fs::path path;
    fs::file_time_type used;
    int64_t bytes;
  };
  std::vector<Kept> kept;
  std::error_code error;
  int64_t total = 0;
  const auto now = fs::file_time_type::clock::now();
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto used = entry.last_write_time(error);
    if (entry.path().extension().string().starts_with(".part") && now - used > std::chrono::hours(24)) {
      fs::remove(entry.path(), error);
    } else if (entry.path().extension() == ".fusebox") {
      kept.push_back({entry.path(), used, static_cast<int64_t>(entry.file_size(error))});
      total += kept.back().bytes;
    }
  }
  std::sort(kept.begin(), kept.end(), [](const Kept& a, const Kept& b) { return a.used < b.used; });
  for (const auto& old : kept) {
    if (total <= kCacheBytes) return;
    fs::remove(old.path, error);
    total -= old.bytes;
  }
}

/// A folder is read as one kind of recording. What else it holds that could be opened is counted, not passed over.
void countOtherKinds(const Format& format, const std::string& folder, SessionBuilder& session) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error), end; it != end && !error && files.size() < kMostFiles; it.increment(error))
    if (it->is_regular_file(error)) files.push_back(it->path().string());
  std::sort(files.begin(), files.end());
  std::map<std::string, std::vector<std::string>> kinds;
  for (const std::string& file : files) {
    if (fs::exists(fs::path(file).replace_filename("raw.jsonl"), error)) continue;  // all that tlparse wrote is one recording
    const auto one = probe(file);
    const Format* kind = one ? recognise(*one) : nullptr;
    if (!kind || kind == &format) continue;
    kinds[kind->title].push_back(file);
  }
  auto others = nlohmann::json::array();
  for (const auto& [title, found] : kinds) {
    session.loss("other recording: " + title, static_cast<int64_t>(found.size()), "not read with this folder; open it by itself: " + fs::path(found.front()).lexically_relative(folder).string());
    for (const std::string& file : found)
      if (others.size() < kMostOthers) others.push_back({{"kind", title}, {"file", fs::path(file).lexically_relative(folder).string()}});
  }
  if (!others.empty()) session.info("imported.others", others.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

Result<void> import(const Format& format, const Probe& probe, const std::string& into, ImportProgress* progress) {
  const auto begun = std::chrono::steady_clock::now();
  auto session = SessionBuilder::create(into, progress);
  if (!session) return tl::unexpected(session.error());
  auto& s = **session;
  std::error_code ignored;
  s.info("engine", std::string("imported"));
  s.info("imported_format", std::string(format.title));
  s.info("imported_from", fs::absolute(probe.path, ignored).string());
  try {
    if (auto done = format.import(probe.path, s, progress); !done) {
      if (!s.isShown() || !progress->cancelled || progress->known) return done;
      progress->partial = true;
      return s.finishPartial();
    }
  } catch (const std::exception& error) {  // out of memory, or a bug of ours
    return fail(ErrorCode::Internal, std::string("importing failed: ") + error.what(), probe.path);
  }
  if (probe.isFolder) countOtherKinds(format, probe.path, s);
  s.info("recorder_ns", int64_t{std::chrono::nanoseconds(std::chrono::steady_clock::now() - begun).count()});
  return s.finish();
}

/// A session that somebody compressed, as it was.
Result<void> unpack(const std::string& path, const std::string& into, ImportProgress* progress) {
  auto made = InflatedFile::make(path, fs::path(into).parent_path().string(), "session", progress);
  if (!made) return tl::unexpected(made.error());
  if (!made->damage().empty()) return fail(ErrorCode::Corrupt, made->damage() + "; copy it again", path);
  std::error_code error;
  fs::rename(made->path(), into, error);
  return error ? Result<void>(fail(ErrorCode::Io, "cannot be unpacked: " + error.message(), into)) : Result<void>();
}

std::string knownFormats() {
  std::string all;
  for (const auto& format : formats()) all += (all.empty() ? "" : "; ") + std::string(format.title);
  return all;
}

// What the session reader says about a file that is neither a session nor of a known format.
Error notKnown(const std::string& path) {
  auto reader = session::Reader::open(path);
  Error error = reader ? Error{ErrorCode::Corrupt, "the file changed while it was opened", path} : reader.error();
  if (error.code == ErrorCode::Corrupt) error.message += ". Fusebox reads its own sessions (also .gz), and: " + knownFormats();
  return error;
}

/// Where a file's session is, or will be.
struct Kept {
  fs::path path;
  bool exists = false;
};

std::string used(const fs::path& kept) {
  std::error_code ignored;
  fs::last_write_time(kept, fs::file_time_type::clock::now(), ignored);
  return kept.string();
}

/// Runs something at the end of its scope.
struct OnReturn {
  std::function<void()> run;
  ~OnReturn() { run(); }
};

}  // namespace

void removeSession(const std::string& path) {
  std::error_code ignored;
  for (const char* end : {"", "-wal", "-shm"}) fs::remove(path + end, ignored);
}

std::string cacheFolder() {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const fs::path base = xdg && *xdg == '/' ? fs::path(xdg) : home && *home ? fs::path(home) / ".cache" : fs::path();
  if (!base.empty() && usableFolder(base / "fusebox" / "imported")) return (base / "fusebox" / "imported").string();
  return spareFolder().string();
}

Result<std::string> sessionFor(const std::string& path, ImportProgress* progress) {
  auto found = probe(path);
  if (!found) return tl::unexpected(found.error());
  const bool isCompressed = isSession(*found) && isGzip(path);
  if (isSession(*found) && !isCompressed) return path;
  const Format* format = recognise(*found);
  if (!format && !isCompressed) return tl::unexpected(notKnown(path));
  const fs::path folder = cacheFolder();
  const bool watched = progress && progress->usable;
  if (progress) progress->known = progress->partial = false;
  // A gigabyte takes seconds to read from a disk. Who waits for a picture gets it meanwhile; if it turns out that the content
  // was read before, the import stops.
  std::atomic<bool> enough{false};
  const auto look = [&]() -> Result<Kept> {
    auto key = keyOf(*found, [&] { return enough || (progress && progress->cancelled); });
    if (!key) return tl::unexpected(key.error());
    Kept kept{folder / (*key + ".fusebox")};
    std::error_code error;
    kept.exists = fs::exists(kept.path, error) && session::Reader::open(kept.path.string());
    if (kept.exists && watched) progress->known = true;
    return kept;
  };
  const std::shared_future<Result<Kept>> cached = std::async(watched ? std::launch::async : std::launch::deferred, look);
  const OnReturn stopLooking{[&] { enough = true; }};
  if (!watched || cached.wait_for(kLookFirst) == std::future_status::ready) {
    if (!cached.get()) return tl::unexpected(cached.get().error());
    if (cached.get()->exists) return used(cached.get()->path);
  }
  makeRoom(folder);
  static std::atomic<int> serial{0};
  const std::string part = (folder / fmt::format("import-{}-{}.part", getpid(), ++serial)).string();
  removeSession(part);
  auto done = isCompressed ? unpack(path, part, progress) : import(*format, *found, part, progress);
  if (progress && progress->partial && done) return part;
  if (done || (progress && progress->known)) {
    if (cached.get() && cached.get()->exists) return removeSession(part), used(cached.get()->path);
    if (!cached.get()) done = tl::unexpected(cached.get().error());
  }
  if (!done) {
    removeSession(part);
    Error failed = done.error();
    if (failed.context == part || failed.context.empty()) failed.context = path;
    return tl::unexpected(failed);
  }
  std::error_code error;
  const fs::path& kept = cached.get()->path;
  fs::permissions(part, fs::perms::owner_read | fs::perms::owner_write, error);
  fs::rename(part, kept, error);
  if (error) return fail(ErrorCode::Io, "the imported session cannot be kept: " + error.message(), kept.string());
  return kept.string();
}

Result<void> canOpen(const std::string& path) {
  auto found = probe(path);
  if (!found) return tl::unexpected(found.error());
  if (isSession(*found) && !isGzip(path)) {
    auto reader = session::Reader::open(path);
    return reader ? Result<void>() : Result<void>(tl::unexpected(reader.error()));
  }
  return isSession(*found) || recognise(*found) ? Result<void>() : Result<void>(tl::unexpected(notKnown(path)));
}

Result<std::unique_ptr<session::Reader>> openAny(const std::string& path, ImportProgress* progress) {
  auto session = sessionFor(path, progress);
  if (!session) return tl::unexpected(session.error());
  auto reader = session::Reader::open(*session);
  if (reader) (*reader)->setOrigin(path);
  return reader;
}

}  // namespace fusebox::importing
