#pragma once

#include <cstdint>
#include <optional>
#include <string>

/// What the environment says about caches, by PyTorch's names where it has them. Read whenever it is asked.
namespace fusebox::cache {

/// TORCHINDUCTOR_CACHE_DIR, else "torchinductor_<user>" in the folder for temporary files, as PyTorch has it.
std::string cacheDirectory();
/// Why nothing is cached in this process; empty where caches are on. TORCHINDUCTOR_FORCE_DISABLE_CACHES,
/// TORCHINDUCTOR_FX_GRAPH_CACHE.
std::string whyNoCache();
/// TORCHINDUCTOR_FORCE_DISABLE_CACHES or TORCH_COMPILE_FORCE_DISABLE_CACHES is 1.
bool cachesAreForbidden();
bool isSwitchedOn(const char* variable);
/// The value of an environment variable; empty where there is none.
std::string environmentText(const char* variable);
/// The secret that entries from outside are signed with: FUSEBOX_CACHE_KEY, or the contents of the file
/// FUSEBOX_CACHE_KEY_FILE. Empty: none.
std::string cacheSecret();
/// Bytes that entries may take together: FUSEBOX_CACHE_SIZE in megabytes.
int64_t cacheLimit();
/// TORCH_COMPILE_CACHE_KEY_TAG.
std::string cacheKeyTag();

/// What a program asked for in other ways than by the environment.
struct CacheWishes {
  std::string whyNot;                 ///< why compiled graphs are neither looked up nor kept; empty: they are
  std::optional<bool> isShared;       ///< by Redis; empty: as the environment has it
  std::optional<std::string> keyTag;  ///< empty: the environment's
};

}  // namespace fusebox::cache
