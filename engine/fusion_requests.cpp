#include "engine/fusion_requests.h"

#include <mutex>
#include <utility>

namespace fusebox {
namespace {

std::mutex mutex;
std::vector<inductor::FusionRule> current;

}  // namespace

std::vector<inductor::FusionRule> fusionRules() {
  std::lock_guard lock(mutex);
  return current;
}

void setFusionRules(std::vector<inductor::FusionRule> rules) {
  std::lock_guard lock(mutex);
  current = std::move(rules);
}

}  // namespace fusebox
