#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/support/result.h"

namespace fusebox::importing {

/// A file read once from front to back, decompressed on the way when it is gzip. Constant memory.
class ByteStream {
 public:
  static Result<std::unique_ptr<ByteStream>> open(const std::string& path);
  ~ByteStream();

  /// Up to `size` bytes; 0 at the end. A damaged or cut compressed file ends where it can no longer be read: see
  /// damage().
  size_t read(char* into, size_t size);
  /// What is wrong with the file as a container (cut or corrupt compressed data, a read error); empty if nothing.
  const std::string& damage() const { return damage_; }
  /// Share of the file on disk that was read, 0 .. 1.
  double fraction() const;

 private:
  ByteStream(void* file, uint64_t bytes) : file_(file), bytes_(bytes) {}
  void* file_;  ///< gzFile
  uint64_t bytes_;
  std::string damage_;
};

/// The first `size` bytes of the file's content (decompressed), fewer if it is shorter.
Result<std::string> firstBytes(const std::string& path, size_t size);

/// Splits a stream into lines. A line longer than `limit` is returned in part, and the rest of it is skipped.
class LineReader {
 public:
  LineReader(ByteStream& stream, size_t limit) : stream_(stream), limit_(limit) {}
  /// False at the end. `line` is without its line end (LF).
  bool next(std::string& line);
  bool lastWasCut() const { return cut_; }
  /// Whether the last line was ended by a line feed.
  bool lastWasEnded() const { return ended_; }

 private:
  bool fill();
  ByteStream& stream_;
  const size_t limit_;
  std::string buffer_;
  size_t position_ = 0;
  bool cut_ = false, ended_ = false;
};

}  // namespace fusebox::importing
