#include "engine/codegen/gpu/launch_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/codegen/gpu/plan_across.h"

namespace fusebox::codegen::gpu {
namespace {

constexpr size_t kMost = 6;
constexpr int kThreadsOfMultiprocessor = 2048;
constexpr int kWalkingFew = 1536;  // threads with few registers each

/// What distinguishes two plans for the device.
std::string fingerprint(const Plan& plan, const LaunchShape& shape) { return fmt::format("{}/{}\n", shape.resident, plan.ahead) + plan.str(); }

}  // namespace

std::string LaunchShape::str() const {
  std::string text;
  auto add = [&](const char* what, int power) {
    if (power != 0) text += fmt::format("{}{} x{:g}", text.empty() ? "" : ", ", what, power > 0 ? double(1 << power) : 1.0 / (1 << -power));
  };
  add("threads", threads);
  add("work", work);
  add("chunks", chunks);
  if (ahead != 0) text += fmt::format("{}{}", text.empty() ? "" : ", ", ahead < 0 ? "nothing fetched ahead" : fmt::format("fetched {} ahead", kAhead << ahead));
  if (resident > 0) text += fmt::format("{}{} blocks resident", text.empty() ? "" : ", ", resident);
  return text.empty() ? "rules" : text;
}

std::vector<LaunchShape> candidateShapes(const inductor::Kernel& kernel, const GpuTarget& target) {
  const Plan rules = makePlan(kernel, target, true);
  const int threads = rules.phases.front().map.threads();
  const int full = std::max(1, kThreadsOfMultiprocessor / std::max(1, threads));
  const Mapping& map = rules.phases.front().map;
  std::vector<LaunchShape> wanted;
  if (map.cluster > 1) {
    wanted = {{}, {.threads = -1, .chunks = 1}, {.chunks = -1}, {.threads = -1}, {.chunks = -3}};
  } else if (rules.phases.front().walks) {
    const int few = std::max(1, kWalkingFew / threads);
    wanted = {{}, {.ahead = -1}, {.threads = -1}, {.threads = -1, .resident = 2 * few}, {.resident = few}, {.threads = 1}};
  } else if (rules.isPhased()) {
    wanted = {{}, {.chunks = 1}, {.chunks = 2}, {.threads = 1}, {.threads = 1, .chunks = 1}, {.work = 1, .chunks = 1}, {.chunks = -1}};
  } else if (map.inner == 1) {
    wanted = {{}, {.resident = std::max(1, full * 5 / 8)}, {.threads = 1}, {.work = -1}, {.work = 1}, {.work = 1, .resident = std::max(1, full / 2)}, {.threads = -1}};
  } else {
    wanted = {{}, {.threads = -1}, {.threads = 1}, {.resident = std::max(1, full * 3 / 4)}, {.work = -1}, {.threads = -1, .work = 1}, {.threads = -2}, {.work = 1}};
  }
  std::vector<LaunchShape> made;
  std::set<std::string> seen;
  for (const LaunchShape& shape : wanted)
    if (made.size() < kMost && seen.insert(fingerprint(makePlan(kernel, target, true, shape), shape)).second) made.push_back(shape);
  return made;
}

}  // namespace fusebox::codegen::gpu
