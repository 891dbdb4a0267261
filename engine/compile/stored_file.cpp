#include "engine/compile/stored_file.h"

#include <ctime>

#include "engine/cache/bundle.h"
#include "engine/cache/cache_settings.h"
#include "engine/compile/graph_key.h"
#include "engine/compile/kernel_code.h"

namespace fusebox {
namespace {

constexpr const char* kContent = "content";

Result<cache::CacheKey> platform() {
  auto jit = processJit();
  if (!jit) return tl::unexpected(jit.error());
  return platformKey((*jit)->target());
}

}  // namespace

Result<std::string> writeStoredFile(const std::string& kind, const std::string& name, std::string payload, const std::vector<std::string>& graphs) {
  auto key = platform();
  if (!key) return tl::unexpected(key.error());
  key->add(kContent, payload, name);
  std::vector<std::string> entries = {
      cache::writeEntry({kind, *key, name, static_cast<int64_t>(std::time(nullptr))}, payload, cache::cacheSecret())};
  entries.insert(entries.end(), graphs.begin(), graphs.end());
  return cache::writeBundle(entries);
}

Result<StoredFile> readStoredFile(std::string_view bytes, const std::string& kind, const std::string& what) {
  StoredFile file;
  const std::string secret = cache::cacheSecret();
  file.trust = secret.empty() ? cache::Trust::Owner : cache::Trust::Signature;
  auto entries = cache::readBundle(bytes);
  if (!entries || entries->empty()) return fail(ErrorCode::Corrupt, "this is no " + what + " that was compiled ahead of time, or it is cut off");
  auto head = cache::readEntry(entries->front(), file.trust, secret);
  if (!head) return tl::unexpected(head.error());
  if (head->header.kind != kind) return fail(ErrorCode::InvalidArgument, "this is no " + what + ": it holds a " + head->header.kind);
  auto here = platform();
  if (!here) return tl::unexpected(here.error());
  auto differences = cache::differences(*here, head->header.key);
  std::erase_if(differences, [](const cache::KeyDifference& d) { return d.name == kContent; });
  if (!differences.empty()) return fail(ErrorCode::InvalidArgument, "it was compiled for something else: " + cache::differenceText(differences));
  file.name = head->header.name;
  file.payload = std::move(head->payload);
  for (size_t i = 1; i < entries->size(); ++i) file.graphs.emplace_back((*entries)[i]);
  return file;
}

}  // namespace fusebox
