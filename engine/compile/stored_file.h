#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/cache/entry_file.h"

namespace fusebox {

/// A file that was compiled ahead of time: a bundle of an entry of its own kind and those of its compiled graphs.
struct StoredFile {
  std::string name, payload;
  std::vector<std::string> graphs;  ///< not yet checked
  cache::Trust trust = cache::Trust::Owner;
};

/// Signed where there is a secret (cache::cacheSecret()).
Result<std::string> writeStoredFile(const std::string& kind, const std::string& name, std::string payload, const std::vector<std::string>& graphs);
/// Believed like a program that somebody runs, or where there is a secret only with its signature. Errors: damage, another kind (`what` in
/// words), and in what this build or machine differs.
Result<StoredFile> readStoredFile(std::string_view bytes, const std::string& kind, const std::string& what);

}  // namespace fusebox
