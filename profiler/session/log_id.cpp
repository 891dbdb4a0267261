#include "profiler/session/log_id.h"

#include <fmt/format.h>

namespace fusebox::session {

std::string logId(std::optional<int64_t> autograd, std::optional<int64_t> frame, std::optional<int64_t> compile, int64_t attempt) {
  if (!autograd && !frame) return {};
  const auto text = [](const std::optional<int64_t>& id) { return id ? std::to_string(*id) : std::string("-"); };
  return fmt::format("[{}{}/{}{}]", autograd ? fmt::format("!{}/", *autograd) : "", text(frame), text(compile), attempt > 0 ? fmt::format("_{}", attempt) : "");
}

}  // namespace fusebox::session
