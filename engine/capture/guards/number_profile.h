#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "engine/capture/guards/number_history.h"
#include "engine/support/result.h"

namespace fusebox::capture {

/// What runs of a job hand on about one place.
struct PlaceProfile {
  NumberHistory numbers;
  std::set<std::string> floats;  ///< sources of those that changed between calls
};
/// By place: names that are the same in every process that runs the same code.
using Profile = std::map<std::string, PlaceProfile>;

void join(Profile& into, const Profile& other);
std::string writeProfile(const Profile& profile);
/// Corrupt for anything that writeProfile() does not write.
Result<Profile> readProfile(std::string_view text);

}  // namespace fusebox::capture
