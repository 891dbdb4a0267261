#pragma once

#include <vector>

#include "engine/inductor/fusion_rules.h"

namespace fusebox {

/// Fusions that the user of this process forbids or forces; read whenever a graph is scheduled. From any thread.
std::vector<inductor::FusionRule> fusionRules();
void setFusionRules(std::vector<inductor::FusionRule> rules);

}  // namespace fusebox
