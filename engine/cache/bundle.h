#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/cache/cache_folder.h"
#include "engine/support/result.h"

namespace fusebox::cache {

/// Many entries in one file, to be carried elsewhere. Each keeps its own checksum and signature.
std::string writeBundle(const std::vector<std::string>& entries);
/// The entries' bytes, not yet checked. Corrupt where it is no bundle, or cut off.
Result<std::vector<std::string_view>> readBundle(std::string_view bytes);

/// What became of a bundle's entries.
struct Imported {
  std::vector<std::string> ids;       ///< written to the folder
  std::vector<std::string> refusals;  ///< why others were not, in sentences
};
/// Writes the entries of a bundle that somebody has chosen to trust by naming it; where there is a secret, all the same
/// only those that were signed with it. They are signed anew for the folder. Errors: of readBundle().
Result<Imported> importBundle(std::string_view bytes, const CacheFolder& folder, const std::string& secret);
/// The folder's entries with these ids, or all; what is damaged is left out.
std::string exportBundle(const CacheFolder& folder, const std::vector<std::string>& ids, const std::string& secret,
                         std::vector<std::string>* exported);

}  // namespace fusebox::cache
