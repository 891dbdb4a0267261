#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fusebox {

/// Whose profile: one for each job, rank and cache key tag.
struct ProfileName {
  std::string job, rank, tag;
  bool operator==(const ProfileName&) const = default;
};

/// Where profiles are kept, as entries of the cache: on this machine, in Redis, or both. What is there is data: nothing of
/// it is ever run. Signed where there is a key (FUSEBOX_CACHE_KEY), and believed then only with its signature.
struct ProfileStore {
  ProfileName name;
  bool local = true, remote = false;

  /// The texts that are kept. What is damaged, foreign or out of reach is in `problems`, in sentences.
  std::vector<std::string> read(std::vector<std::string>& problems) const;
  /// Puts `merged(texts there)` in their place. Processes of one machine wait for each other, a second at most.
  void write(const std::function<std::string(const std::vector<std::string>&)>& merged, int64_t places,
             std::vector<std::string>& problems) const;
  std::string id() const;
  bool operator==(const ProfileStore&) const = default;
};

}  // namespace fusebox
