#include "engine/cache/entry_file.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/cache/sha256.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace fusebox::cache {
namespace {

using Json = nlohmann::json;

constexpr char kEntryMagic[8] = {'F', 'B', 'X', 'C', 'A', 'C', 'H', 'E'};
constexpr std::string_view kSigned = "fusebox cache entry";  ///< so that the key signs nothing else in the same words

/// Everything in front of the header; little-endian as every machine that there is code for.
struct Prefix {
  char magic[8];
  uint32_t version = kEntryVersion;
  uint32_t headerBytes = 0;
  uint64_t payloadBytes = 0;
  uint64_t checksum[2] = {};  ///< XXH3 of the rest of the file, with this field zero
  uint8_t signature[32] = {};
};
static_assert(sizeof(Prefix) == 72);

void setChecksum(Prefix& prefix, std::string_view rest) {
  prefix.checksum[0] = prefix.checksum[1] = 0;
  XXH3_state_t* state = XXH3_createState();
  XXH3_128bits_reset(state);
  XXH3_128bits_update(state, &prefix, sizeof prefix);
  XXH3_128bits_update(state, rest.data(), rest.size());
  const XXH128_hash_t sum = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  prefix.checksum[0] = sum.low64;
  prefix.checksum[1] = sum.high64;
}

Digest signatureOf(std::string_view secret, std::string_view rest) { return hmacSha256(secret, {kSigned, rest}); }

tl::unexpected<Error> damaged(const char* what) {
  return fail(ErrorCode::Corrupt, std::string("the cache entry is damaged: ") + what);
}

std::string headerText(const EntryHeader& header) {
  Json components = Json::array();
  for (const KeyComponent& c : header.key.components()) components.push_back({c.name, c.value, c.digest});
  const Json out = {{"kind", header.kind},       {"key", header.key.id()},     {"components", std::move(components)},
                    {"name", header.name},       {"created", header.createdS}, {"compile_ns", header.compileNs},
                    {"kernels", header.kernels}, {"nodes", header.nodes},      {"optimised", header.optimised}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<EntryHeader> parseHeader(std::string_view text) {
  const Json root = Json::parse(text, nullptr, false);
  if (root.is_discarded() || !root.is_object()) return damaged("its header is not JSON");
  try {
    EntryHeader header;
    header.kind = root.at("kind").get<std::string>();
    header.name = root.at("name").get<std::string>();
    header.createdS = root.at("created").get<int64_t>();
    header.compileNs = root.at("compile_ns").get<int64_t>();
    header.kernels = root.at("kernels").get<int64_t>();
    header.nodes = root.at("nodes").get<int64_t>();
    header.optimised = root.at("optimised").get<bool>();
    std::vector<KeyComponent> components;
    for (const Json& item : root.at("components"))
      components.push_back(
          {item.at(0).get<std::string>(), item.at(1).get<std::string>(), item.at(2).get<std::string>()});
    header.key = CacheKey(std::move(components));
    if (header.key.id() != root.at("key").get<std::string>())
      return damaged("its key does not belong to its components");
    return header;
  } catch (const Json::exception&) {
    return damaged("its header lacks something");
  }
}

Result<Prefix> prefixOf(std::string_view bytes) {
  Prefix prefix;
  if (bytes.size() < sizeof prefix) return damaged("it is too short");
  std::memcpy(&prefix, bytes.data(), sizeof prefix);
  if (std::memcmp(prefix.magic, kEntryMagic, sizeof kEntryMagic) != 0) return damaged("it does not begin as one");
  if (prefix.version != kEntryVersion)
    return fail(ErrorCode::TooNew, "the cache entry has another format", std::to_string(prefix.version));
  if (prefix.payloadBytes > kMaxEntryBytes || prefix.headerBytes > kMaxEntryBytes)
    return damaged("its lengths are impossible");
  return prefix;
}

}  // namespace

std::string writeEntry(const EntryHeader& header, std::string_view payload, std::string_view secret) {
  const std::string text = headerText(header);
  Prefix prefix;
  std::memcpy(prefix.magic, kEntryMagic, sizeof kEntryMagic);
  prefix.headerBytes = static_cast<uint32_t>(text.size());
  prefix.payloadBytes = payload.size();
  std::string bytes(sizeof prefix, '\0');
  bytes.reserve(sizeof prefix + text.size() + payload.size());
  bytes += text;
  bytes += payload;
  const std::string_view rest = std::string_view(bytes).substr(sizeof prefix);
  if (!secret.empty()) {
    const Digest signature = signatureOf(secret, rest);
    std::copy(signature.begin(), signature.end(), prefix.signature);
  }
  setChecksum(prefix, rest);
  std::memcpy(bytes.data(), &prefix, sizeof prefix);
  return bytes;
}

Result<Entry> readEntry(std::string_view bytes, Trust trust, std::string_view secret) {
  auto prefix = prefixOf(bytes);
  if (!prefix) return tl::unexpected(prefix.error());
  const std::string_view rest = bytes.substr(sizeof(Prefix));
  if (rest.size() != prefix->headerBytes + prefix->payloadBytes) return damaged("it is too short or too long");
  Entry entry;
  Digest signature;
  std::copy(std::begin(prefix->signature), std::end(prefix->signature), signature.begin());
  entry.isSigned = signature != Digest{};
  // First of all: what follows parses what somebody else may have written.
  if (trust == Trust::Signature) {
    if (secret.empty())
      return fail(
          ErrorCode::InvalidArgument,
          "refused: entries that others may have written need a key (FUSEBOX_CACHE_KEY or FUSEBOX_CACHE_KEY_FILE)");
    if (!entry.isSigned) return fail(ErrorCode::InvalidArgument, "refused: the cache entry carries no signature");
    if (!equalDigests(signature, signatureOf(secret, rest)))
      return fail(ErrorCode::InvalidArgument, "refused: the cache entry's signature is not that of FUSEBOX_CACHE_KEY");
  }
  Prefix again = *prefix;
  setChecksum(again, rest);
  if (!std::equal(std::begin(again.checksum), std::end(again.checksum), std::begin(prefix->checksum)))
    return damaged("its checksum is wrong");
  auto header = parseHeader(rest.substr(0, prefix->headerBytes));
  if (!header) return tl::unexpected(header.error());
  entry.header = std::move(*header);
  entry.payload = rest.substr(prefix->headerBytes);
  return entry;
}

Result<EntryHeader> readHeader(std::string_view bytes) {
  auto prefix = prefixOf(bytes);
  if (!prefix) return tl::unexpected(prefix.error());
  const std::string_view rest = bytes.substr(sizeof(Prefix));
  if (rest.size() < prefix->headerBytes) return damaged("it is too short");
  return parseHeader(rest.substr(0, prefix->headerBytes));
}

}  // namespace fusebox::cache
