#include "engine/record/source_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "engine/support/clock.h"

namespace fusebox::record {
namespace {

using session::Cell;
namespace rows = session::rows;
using session::RowSink;

constexpr int64_t kMaxBytes = 4 << 20;

uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

void write(int64_t id, const std::string& path, RowSink& sink) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    sink.put(rows::SourceFile{.id = id, .path = path, .truncated = int64_t{0}, .time_ns = nowNs()});
    return;
  }
  std::ifstream in(path, std::ios::binary);
  std::string text(static_cast<size_t>(kMaxBytes) + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  const bool truncated = static_cast<int64_t>(text.size()) > kMaxBytes;
  if (truncated) text.resize(static_cast<size_t>(kMaxBytes));
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path, error));
  const std::string hash = fmt::format("{:016x}", fnv1a(text));
  sink.put(rows::SourceFile{.id = id, .path = path, .text = std::move(text), .bytes = bytes, .hash = hash, .truncated = int64_t{truncated},
      .time_ns = nowNs()});
}

}  // namespace

void SourceFiles::add(session::Writer& writer, const std::string& path) {
  if (path.empty()) return;
  int64_t id = 0;
  {
    std::lock_guard lock(mutex_);
    if (!seen_.insert(path).second) return;
    id = next_++;
  }
  writer.post([id, path](RowSink& sink) { write(id, path, sink); }, static_cast<int64_t>(path.size()));
}

}  // namespace fusebox::record
