#include "app/cli/open_input.h"

#include <fmt/format.h>
#include <unistd.h>

#include "profiler/importers/open.h"

namespace fusebox::cli {

Result<std::unique_ptr<session::Reader>> openInput(const std::string& file) {
  importing::ImportProgress progress;
  int shown = -1;
  if (isatty(STDERR_FILENO)) {
    progress.report = [&](const std::string& format, double fraction) {
      const int percent = static_cast<int>(fraction * 100);
      if (percent == shown || format.empty()) return;
      shown = percent;
      fmt::print(stderr, "\rfusebox: reading {}: {} %", format, percent);
    };
  }
  auto reader = importing::openAny(file, &progress);
  if (shown >= 0) fmt::print(stderr, "\r\033[K");
  return reader;
}

}  // namespace fusebox::cli
