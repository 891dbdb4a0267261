#include "profiler/importers/byte_stream.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "profiler/importers/import_context.h"

namespace fusebox::importing {
namespace {
constexpr size_t kChunk = size_t{256} << 10;
}  // namespace

Result<void> checkpoint(ImportProgress* progress, const std::string& format, double fraction) {
  if (!progress) return {};
  if (progress->isOver()) return fail(ErrorCode::InvalidArgument, "opening was cancelled");
  progress->fraction = std::clamp(fraction, 0.0, 1.0);
  if (progress->report) progress->report(format, progress->fraction);
  return {};
}

Result<std::unique_ptr<ByteStream>> ByteStream::open(const std::string& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  if (error) return fail(ErrorCode::Io, "the file cannot be read: " + error.message(), path);
  gzFile file = gzopen(path.c_str(), "rb");
  if (!file) return fail(ErrorCode::Io, std::string("the file cannot be opened: ") + std::strerror(errno), path);
  gzbuffer(file, kChunk);
  return std::unique_ptr<ByteStream>(new ByteStream(file, bytes));
}

ByteStream::~ByteStream() { gzclose(static_cast<gzFile>(file_)); }

size_t ByteStream::read(char* into, size_t size) {
  if (!damage_.empty()) return 0;
  auto* file = static_cast<gzFile>(file_);
  const int got = gzread(file, into, static_cast<unsigned>(std::min<size_t>(size, kChunk)));
  if (got > 0) return static_cast<size_t>(got);
  int code = Z_OK;
  const char* message = gzerror(file, &code);
  if (code == Z_BUF_ERROR) {
    damage_ = "the compressed file is cut short";
  } else if (code != Z_OK && code != Z_STREAM_END) {
    damage_ = std::string("the file can be read only up to here: ") + message;
  }
  return 0;
}

double ByteStream::fraction() const {
  const auto at = gzoffset(static_cast<gzFile>(file_));
  return bytes_ > 0 && at > 0 ? std::min(1.0, static_cast<double>(at) / static_cast<double>(bytes_)) : 0.0;
}

Result<std::string> firstBytes(const std::string& path, size_t size) {
  auto stream = ByteStream::open(path);
  if (!stream) return tl::unexpected(stream.error());
  std::string out(size, '\0');
  size_t filled = 0;
  while (filled < size) {
    const size_t got = (*stream)->read(out.data() + filled, size - filled);
    if (got == 0) break;
    filled += got;
  }
  out.resize(filled);
  return out;
}

bool LineReader::fill() {
  buffer_.erase(0, position_);
  position_ = 0;
  const size_t old = buffer_.size();
  buffer_.resize(old + kChunk);
  buffer_.resize(old + stream_.read(buffer_.data() + old, kChunk));
  return buffer_.size() > old;
}

bool LineReader::next(std::string& line) {
  line.clear();
  cut_ = ended_ = false;
  bool any = false;
  for (;;) {
    const size_t end = buffer_.find('\n', position_);
    const size_t stop = end == std::string::npos ? buffer_.size() : end;
    any = any || stop > position_ || end != std::string::npos;
    const size_t room = limit_ - std::min(limit_, line.size());
    line.append(buffer_, position_, std::min(room, stop - position_));
    cut_ = cut_ || stop - position_ > room;
    position_ = stop;
    if (end != std::string::npos) {
      ++position_;
      ended_ = true;
      return true;
    }
    if (!fill()) return any;
  }
}

}  // namespace fusebox::importing
