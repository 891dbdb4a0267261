#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/support/result.h"

namespace fusebox::importing {

/// A zip file opened for reading, as PyTorch writes them: everything under one folder, whose name is left out here.
/// Sizes are bounded; nothing is unpacked to disk.
class ZipArchive {
 public:
  /// Errors: Corrupt, Io.
  static Result<std::unique_ptr<ZipArchive>> open(const std::string& path);
  ~ZipArchive();
  ZipArchive(const ZipArchive&) = delete;

  struct Entry {
    std::string name;  ///< without the common folder
    uint64_t index = 0, bytes = 0;
  };
  const std::vector<Entry>& entries() const { return entries_; }
  const Entry* find(std::string_view name) const;
  /// Content of an entry. Errors: Corrupt (damaged, or other than its header says), Unsupported (longer than `most`).
  Result<std::string> read(const Entry& entry, uint64_t most) const;
  /// The first bytes of an entry, at most `bytes`; no more of it is unpacked than that. Errors: Corrupt.
  Result<std::string> readHead(const Entry& entry, size_t bytes) const;

 private:
  explicit ZipArchive(void* archive) : archive_(archive) {}
  void* archive_;  ///< zip_t
  std::string path_;
  std::vector<Entry> entries_;
};

/// Whether a file begins as zip files do.
bool looksLikeZip(std::string_view head);

}  // namespace fusebox::importing
