#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "engine/support/result.h"

namespace fusebox::importing {

/// What the one who waits for an import wants to know and to say. May be used from another thread than the import's.
struct ImportProgress {
  std::function<void(const std::string& format, double fraction)> report;  ///< at most a few times a second; 0 .. 1
  std::atomic<bool> cancelled{false};  ///< set it, and the import ends with InvalidArgument
};

/// Reports `fraction` if somebody listens; the error to return when the import is to stop.
Result<void> checkpoint(ImportProgress* progress, const std::string& format, double fraction);

}  // namespace fusebox::importing
