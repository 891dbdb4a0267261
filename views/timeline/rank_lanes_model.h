#pragma once

#include "views/timeline/timeline_model.h"

namespace fusebox::views {

/// Adds lanes of the sessions of the other ranks, which lie beside this one, on its clock: lanes of each rank are a group. Such that cannot be read are left out.
void addRankLanes(const session::Reader& reader, TimelineOutline& outline);

/// What ranks compiled otherwise than the first, in sentences; empty where all compiled the same or that would take long to say.
std::vector<std::string> differencesOfRanks(const session::Reader& reader);

}  // namespace fusebox::views
