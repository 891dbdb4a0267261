#include "engine/cache/bundle.h"

#include <cstdint>
#include <cstring>

namespace fusebox::cache {
namespace {

constexpr std::string_view kMagic = "FBXBUNDLE1\n";

}  // namespace

std::string writeBundle(const std::vector<std::string>& entries) {
  std::string bytes(kMagic);
  for (const std::string& entry : entries) {
    const uint64_t size = entry.size();
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
    bytes += entry;
  }
  return bytes;
}

Result<std::vector<std::string_view>> readBundle(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) return fail(ErrorCode::Corrupt, "this is no bundle of cache entries");
  bytes.remove_prefix(kMagic.size());
  std::vector<std::string_view> entries;
  while (!bytes.empty()) {
    uint64_t size = 0;
    if (bytes.size() < sizeof size) return fail(ErrorCode::Corrupt, "the bundle of cache entries is cut off");
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes.remove_prefix(sizeof size);
    if (size > bytes.size()) return fail(ErrorCode::Corrupt, "the bundle of cache entries is cut off");
    entries.push_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return entries;
}

Result<Imported> importBundle(std::string_view bytes, const CacheFolder& folder, const std::string& secret) {
  auto entries = readBundle(bytes);
  if (!entries) return tl::unexpected(entries.error());
  Imported imported;
  for (const std::string_view entry : *entries) {
    auto read = readEntry(entry, secret.empty() ? Trust::Owner : Trust::Signature, secret);
    if (!read) {
      imported.refusals.push_back(read.error().text());
      continue;
    }
    const std::string id = read->header.key.id();
    if (auto written = folder.write(id, writeEntry(read->header, read->payload, secret)); !written)
      imported.refusals.push_back(written.error().text());
    else
      imported.ids.push_back(id);
  }
  return imported;
}

std::string exportBundle(const CacheFolder& folder, const std::vector<std::string>& ids, const std::string& secret,
                         std::vector<std::string>* exported) {
  std::vector<std::string> wanted = ids, entries;
  if (wanted.empty())
    for (const CacheFolder::Item& item : folder.list()) wanted.push_back(item.id);
  for (const std::string& id : wanted) {
    auto bytes = folder.read(id);
    if (!bytes) continue;
    auto entry = readEntry(*bytes, folder.trust(), secret);
    if (!entry || entry->header.key.id() != id) continue;
    entries.push_back(writeEntry(entry->header, entry->payload, secret));
    if (exported) exported->push_back(id);
  }
  return writeBundle(entries);
}

}  // namespace fusebox::cache
