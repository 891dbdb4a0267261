#include "engine/cache/cache_settings.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>

namespace fusebox::cache {
namespace {

constexpr int64_t kMegabyte = int64_t{1} << 20;
constexpr int64_t kDefaultMegabytes = 4096;

std::string userName() {
  for (const char* name : {"LOGNAME", "USER", "LNAME", "USERNAME"})
    if (std::string value = environmentText(name); !value.empty()) return value;
  if (const passwd* entry = ::getpwuid(::getuid())) return entry->pw_name;
  return std::to_string(::getuid());
}

std::string temporaryFolder() {
  for (const char* name : {"TMPDIR", "TEMP", "TMP"})
    if (std::string value = environmentText(name); !value.empty() && ::access(value.c_str(), W_OK) == 0) return value;
  return "/tmp";
}

constexpr const char* kForbidding[] = {"TORCHINDUCTOR_FORCE_DISABLE_CACHES", "TORCH_COMPILE_FORCE_DISABLE_CACHES"};

}  // namespace

std::string environmentText(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? value : "";
}

bool isSwitchedOn(const char* name) { return environmentText(name) == "1"; }

bool cachesAreForbidden() {
  return std::any_of(std::begin(kForbidding), std::end(kForbidding), isSwitchedOn);
}

std::string cacheDirectory() {
  if (std::string chosen = environmentText("TORCHINDUCTOR_CACHE_DIR"); !chosen.empty()) return chosen;
  std::string user = userName();
  for (char& c : user)
    if (std::string_view("\\/:*?\"<>|").find(c) != std::string_view::npos) c = '_';
  return temporaryFolder() + "/torchinductor_" + user;
}

std::string whyNoCache() {
  for (const char* name : kForbidding)
    if (isSwitchedOn(name)) return std::string(name) + " is set";
  if (environmentText("TORCHINDUCTOR_FX_GRAPH_CACHE") == "0") return "TORCHINDUCTOR_FX_GRAPH_CACHE is 0";
  return {};
}

std::string cacheSecret() {
  std::string secret = environmentText("FUSEBOX_CACHE_KEY");
  if (const std::string path = environmentText("FUSEBOX_CACHE_KEY_FILE"); secret.empty() && !path.empty()) {
    std::ifstream file(path, std::ios::binary);
    secret.assign(std::istreambuf_iterator<char>(file), {});
    while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  }
  return secret;
}

int64_t cacheLimit() {
  const std::string text = environmentText("FUSEBOX_CACHE_SIZE");
  char* end = nullptr;
  const long long megabytes = std::strtoll(text.c_str(), &end, 10);
  const bool isNumber = !text.empty() && *end == '\0' && megabytes >= 0 && megabytes < (int64_t{1} << 40);
  return (isNumber ? megabytes : kDefaultMegabytes) * kMegabyte;
}

std::string cacheKeyTag() { return environmentText("TORCH_COMPILE_CACHE_KEY_TAG"); }

}  // namespace fusebox::cache
