#include "engine/compile/compile_requests.h"

#include <mutex>
#include <utility>

namespace fusebox {
namespace {

std::mutex mutex;
std::vector<inductor::FusionRule> rulesNow;
std::vector<std::string> skippedNow;

}  // namespace

std::vector<inductor::FusionRule> fusionRules() {
  std::lock_guard lock(mutex);
  return rulesNow;
}

void setFusionRules(std::vector<inductor::FusionRule> rules) {
  std::lock_guard lock(mutex);
  rulesNow = std::move(rules);
}

std::vector<std::string> skippedPasses() {
  std::lock_guard lock(mutex);
  return skippedNow;
}

void setSkippedPasses(std::vector<std::string> names) {
  std::lock_guard lock(mutex);
  skippedNow = std::move(names);
}

}  // namespace fusebox
