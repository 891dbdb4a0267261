#include "app/cli/session_path.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "profiler/session/writer.h"

namespace fusebox::cli {

namespace fs = std::filesystem;

std::string timedSessionName(const std::string& stem) {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  const std::string base = fmt::format("{}-{:%Y%m%d-%H%M%S}", stem, fmt::localtime(now));
  std::string name = base + ".fusebox";
  for (int i = 2; fs::exists(name); ++i) name = fmt::format("{}-{}.fusebox", base, i);
  return name;
}

Result<void> checkSessionPath(const std::string& path) {
  std::error_code error;
  const fs::path folder = fs::absolute(path, error).parent_path();
  if (!fs::is_directory(folder, error)) {
    return fail(ErrorCode::InvalidArgument, "the session's directory does not exist", folder.string());
  }
  if (fs::is_directory(path, error)) {
    return fail(ErrorCode::InvalidArgument, "the session must be a file, not a directory", path);
  }
  if (auto replaceable = session::Writer::mayReplace(path); !replaceable) return replaceable;
  if (access(folder.c_str(), W_OK) != 0) {
    return fail(ErrorCode::InvalidArgument,
                "the session cannot be written to this directory; name another with --session, or use --no-record",
                folder.string());
  }
  return {};
}

}  // namespace fusebox::cli
