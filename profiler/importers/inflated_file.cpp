#include "profiler/importers/inflated_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "profiler/importers/byte_stream.h"

namespace fusebox::importing {
namespace fs = std::filesystem;
namespace {

/// Bytes that may be written into `folder`.
uint64_t roomIn(const std::string& folder) {
  std::error_code error;
  const auto space = fs::space(folder, error);
  if (error) return InflatedFile::kMostBytes;
  const uint64_t available = space.available;
  return std::min(InflatedFile::kMostBytes, available - std::min(available, InflatedFile::kLeftFree));
}

Result<void> writeAll(int fd, const char* bytes, size_t size, const std::string& path) {
  while (size > 0) {
    const ssize_t put = ::write(fd, bytes, size);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return fail(ErrorCode::Io, std::string("cannot be unpacked: ") + std::strerror(errno), path);
    bytes += put;
    size -= static_cast<size_t>(put);
  }
  return {};
}

Result<void> inflate(ByteStream& stream, int fd, uint64_t room, const std::string& path, const std::string& format,
                     ImportProgress* progress) {
  std::vector<char> buffer(size_t{1} << 20);
  uint64_t written = 0;
  for (size_t round = 0;; ++round) {
    const size_t got = stream.read(buffer.data(), buffer.size());
    if (got == 0) return {};
    if (got > room - written)
      return fail(ErrorCode::Unsupported,
                  fmt::format("unpacked it has more than {} MB, for which there is no room; unpack it elsewhere first", room >> 20));
    if (auto put = writeAll(fd, buffer.data(), got, path); !put) return put;
    written += got;
    if (round % 64 == 0)
      if (auto goesOn = checkpoint(progress, format, stream.fraction() / 2); !goesOn) return goesOn;
  }
}

}  // namespace

bool isGzip(const std::string& path) {
  char head[2] = {};
  std::ifstream in(path, std::ios::binary);
  return in.read(head, sizeof head) && head[0] == '\x1f' && head[1] == '\x8b';
}

InflatedFile::InflatedFile(InflatedFile&& other) noexcept
    : path_(std::exchange(other.path_, {})), damage_(std::move(other.damage_)) {}

InflatedFile& InflatedFile::operator=(InflatedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(damage_, other.damage_);
  return *this;
}

InflatedFile::~InflatedFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

Result<InflatedFile> InflatedFile::make(const std::string& path, const std::string& folder, const std::string& format,
                                        ImportProgress* progress) {
  auto stream = ByteStream::open(path);
  if (!stream) return tl::unexpected(stream.error());
  constexpr std::string_view kEnding = ".part";  // what a killed program leaves is removed from the cache a day later
  InflatedFile made;
  std::string name = folder + "/inflated-XXXXXX" + std::string(kEnding);
  const int fd = mkstemps(name.data(), static_cast<int>(kEnding.size()));
  if (fd < 0) return fail(ErrorCode::Io, std::string("cannot be unpacked: ") + std::strerror(errno), name);
  made.path_ = name;
  auto done = inflate(**stream, fd, roomIn(folder), name, format, progress);
  if (::close(fd) != 0 && done) done = fail(ErrorCode::Io, std::string("cannot be unpacked: ") + std::strerror(errno), name);
  if (!done) return tl::unexpected(done.error());
  made.damage_ = (*stream)->damage();
  return made;
}

}  // namespace fusebox::importing
