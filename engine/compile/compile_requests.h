#pragma once

#include <string>
#include <vector>

#include "engine/inductor/schedule/fusion_rules.h"

namespace fusebox {

/// Fusions that the user of this process forbids or forces; read whenever a graph is scheduled. From any thread.
std::vector<inductor::FusionRule> fusionRules();
void setFusionRules(std::vector<inductor::FusionRule> rules);

/// Graph passes that are left out, by name, to find the one that changes a result. From any thread.
std::vector<std::string> skippedPasses();
void setSkippedPasses(std::vector<std::string> names);

}  // namespace fusebox
