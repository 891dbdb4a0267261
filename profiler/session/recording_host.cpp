#include "profiler/session/recording_host.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "engine/support/clock.h"
#include "profiler/session/schema.h"

namespace fusebox::session {
namespace {

std::string firstLine(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string cpuField(const std::string& field) {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(field, 0) != 0) continue;
    const auto colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

// Start time of a process in clock ticks since boot: with the pid it names one process for good.
std::string processStart(int64_t pid) {
  const std::string stat = firstLine(fmt::format("/proc/{}/stat", pid));
  const auto name = stat.rfind(')');
  if (name == std::string::npos) return {};
  std::istringstream fields(stat.substr(name + 1));
  std::string field;
  for (int i = 3; i <= 22 && fields >> field; ++i) {
  }
  return field;
}

}  // namespace

int64_t unixNs() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

std::map<std::string, Cell> recordingHostFacts() {
  utsname names{};
  uname(&names);
  std::error_code ignored;
  return {
      {"schema_version", int64_t{kSchemaVersion}},
      {"pid", int64_t{getpid()}},
      {"pid_start", processStart(getpid())},
      {"boot_id", firstLine("/proc/sys/kernel/random/boot_id")},
      {"hostname", std::string(names.nodename)},
      {"os", fmt::format("{} {} {}", names.sysname, names.release, names.machine)},
      {"cpu", cpuField("model name")},
      {"cpu_features", cpuField("flags")},
      {"cpus", int64_t{sysconf(_SC_NPROCESSORS_ONLN)}},
      {"cwd", std::filesystem::current_path(ignored).string()},
      {"clock", std::string("CLOCK_MONOTONIC")},
      {"start_ns", nowNs()},
      {"start_unix_ns", unixNs()},
  };
}

namespace {

std::string field(const std::map<std::string, std::string>& info, const char* key) {
  const auto it = info.find(key);
  return it == info.end() ? std::string() : it->second;
}

/// Clocks of machines that share a file system may differ by some seconds.
constexpr int64_t kSilenceNs = int64_t{60} * 1'000'000'000;

}  // namespace

bool recordedElsewhere(const std::map<std::string, std::string>& info) {
  const std::string host = field(info, "hostname");
  utsname names{};
  uname(&names);
  return !host.empty() && host != names.nodename;
}

RecordingProcess recordingProcess(const std::map<std::string, std::string>& info) {
  if (recordedElsewhere(info)) {
    const int64_t beat = std::strtoll(field(info, "heartbeat_unix_ns").c_str(), nullptr, 10);
    return std::llabs(unixNs() - beat) < kSilenceNs ? RecordingProcess::Lives : RecordingProcess::Elsewhere;
  }
  const std::string boot = field(info, "boot_id");
  if (boot.empty() || boot != firstLine("/proc/sys/kernel/random/boot_id")) return RecordingProcess::Gone;
  const int64_t pid = std::strtoll(field(info, "pid").c_str(), nullptr, 10);
  const std::string start = field(info, "pid_start");
  return pid > 0 && !start.empty() && processStart(pid) == start ? RecordingProcess::Lives : RecordingProcess::Gone;
}

}  // namespace fusebox::session
