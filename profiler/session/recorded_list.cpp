#include "profiler/session/recorded_list.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace fusebox::session {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kLongest = 256 * 1024;
constexpr size_t kKept = 200;

}  // namespace

std::string recordedListPath() {
  const char* data = std::getenv("XDG_DATA_HOME");
  const char* home = std::getenv("HOME");
  if (data && *data == '/') return std::string(data) + "/fusebox/recorded";
  return home && *home ? std::string(home) + "/.local/share/fusebox/recorded" : std::string();
}

void noteRecorded(const std::string& session) {
  const fs::path list = recordedListPath();
  if (list.empty() || session.find('\n') != std::string::npos) return;
  std::error_code error;
  fs::create_directories(list.parent_path(), error);
  if (fs::file_size(list, error) > kLongest && !error) {
    auto kept = readRecorded(list.string(), kKept);
    std::ofstream out(list, std::ios::trunc);
    for (auto at = kept.rbegin(); at != kept.rend(); ++at) out << *at << '\n';
  }
  std::ofstream(list, std::ios::app) << fs::absolute(session, error).string() << '\n';
}

std::vector<std::string> readRecorded(const std::string& listPath, size_t most) {
  std::vector<std::string> lines, out;
  std::ifstream in(listPath);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) lines.push_back(std::move(line));
  }
  for (auto at = lines.rbegin(); at != lines.rend() && out.size() < most; ++at) {
    if (std::find(out.begin(), out.end(), *at) == out.end()) out.push_back(*at);
  }
  return out;
}

}  // namespace fusebox::session
