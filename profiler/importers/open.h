#pragma once

#include <memory>
#include <string>

#include "profiler/importers/import_context.h"
#include "profiler/session/reader.h"

namespace fusebox::importing {

/// Opens anything that Fusebox reads: a session as it is, a foreign file or folder through a session that is made of it
/// once and kept in the cache folder (cacheFolder()), found again by the content. Foreign files are never written to
/// and nothing in them is executed. Errors: the reader's, and the importers' (formats.h).
Result<std::unique_ptr<session::Reader>> openAny(const std::string& path, ImportProgress* progress = nullptr);

/// The session that openAny() would read for `path`: `path` itself, or the one in the cache, made now if need be. A new one
/// can be looked at while it is made: see ImportProgress::usable.
Result<std::string> sessionFor(const std::string& path, ImportProgress* progress = nullptr);

/// Removes a session file with its log.
void removeSession(const std::string& path);

/// Whether openAny() would try: a readable session, or a recognised format. Quick.
Result<void> canOpen(const std::string& path);

/// $XDG_CACHE_HOME/fusebox/imported, or the same under ~/.cache; a folder of the user's under the temporary one where
/// that cannot be written. Sessions that were not used for longest are removed when it grows beyond kCacheBytes.
std::string cacheFolder();
inline constexpr int64_t kCacheBytes = int64_t{20} << 30;

}  // namespace fusebox::importing
