#pragma once

#include <array>
#include <ostream>
#include <streambuf>
#include <string>

namespace fusebox::exporting {

/// A stream whose bytes go into a gzip file. After close() `failed()` tells whether all of them have arrived.
class GzipOutput : private std::streambuf {
 public:
  explicit GzipOutput(const std::string& path);
  ~GzipOutput() override;
  GzipOutput(const GzipOutput&) = delete;
  GzipOutput& operator=(const GzipOutput&) = delete;

  std::ostream& stream() { return stream_; }
  void close();
  bool failed() const { return failed_; }

 private:
  int_type overflow(int_type c) override;
  int sync() override;

  void* file_;  ///< gzFile
  std::array<char, 1 << 16> buffer_{};
  bool failed_ = false;
  std::ostream stream_;
};

}  // namespace fusebox::exporting
