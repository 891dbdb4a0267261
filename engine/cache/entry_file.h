#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/cache/cache_key.h"
#include "engine/support/result.h"

/// The bytes of one cache entry, wherever they lie: magic, version, lengths, checksum, signature, a header in JSON, the
/// payload.
namespace fusebox::cache {

inline constexpr uint32_t kEntryVersion = 1;
inline constexpr size_t kMaxEntryBytes = size_t{1} << 30;

/// What people are told of an entry, and what decides whether it fits.
struct EntryHeader {
  std::string kind;  ///< "graph"
  CacheKey key;
  std::string name;       ///< of the function that was compiled
  int64_t createdS = 0;   ///< Unix time
  int64_t compileNs = 0;  ///< what a hit need not do again
  int64_t kernels = 0, nodes = 0;
  bool optimised = false;  ///< all its code is of the best tier
};

struct Entry {
  EntryHeader header;
  std::string payload;
  bool isSigned = false;  ///< somebody's signature is there; whether it holds is another question
};

/// Whether bytes may be believed: those that only this user can have written, or those that carry the key's signature.
enum class Trust : uint8_t { Owner, Signature };

/// With a signature unless `secret` is empty.
std::string writeEntry(const EntryHeader& header, std::string_view payload, std::string_view secret);
/// Corrupt for damage of any kind, TooNew for another format's version, InvalidArgument where a signature is missing or
/// wrong. Nothing of the payload is looked at.
Result<Entry> readEntry(std::string_view bytes, Trust trust, std::string_view secret);
/// The header alone, for lists: checked against nothing but its form.
Result<EntryHeader> readHeader(std::string_view bytes);

}  // namespace fusebox::cache
