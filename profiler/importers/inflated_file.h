#pragma once

#include <string>

#include "engine/support/result.h"
#include "profiler/importers/import_context.h"

namespace fusebox::importing {

/// Whether a file begins as gzip does.
bool isGzip(const std::string& path);

/// The content of a compressed file as a file of its own, for readers that need to seek; removed with this object.
class InflatedFile {
 public:
  InflatedFile() = default;
  InflatedFile(InflatedFile&& other) noexcept;
  InflatedFile& operator=(InflatedFile&& other) noexcept;
  ~InflatedFile();

  /// Unpacks `path` into `folder`, readable by this user only. Progress is reported under `format`. Errors: Unsupported
  /// (more than kMostBytes, or than the disk has room for), Io, InvalidArgument (cancelled). Content that ends early is
  /// none: see damage().
  static Result<InflatedFile> make(const std::string& path, const std::string& folder, const std::string& format,
                                   ImportProgress* progress);
  const std::string& path() const { return path_; }
  /// What is wrong with the compressed file; empty if nothing.
  const std::string& damage() const { return damage_; }

  static constexpr uint64_t kMostBytes = uint64_t{64} << 30;
  static constexpr uint64_t kLeftFree = uint64_t{1} << 30;  ///< of the disk

 private:
  std::string path_, damage_;
};

}  // namespace fusebox::importing
