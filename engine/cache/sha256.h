#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace fusebox::cache {

using Digest = std::array<uint8_t, 32>;

/// FIPS 180-4, of the parts one after another.
Digest sha256(std::initializer_list<std::string_view> parts);
inline Digest sha256(std::string_view bytes) { return sha256({bytes}); }
/// RFC 2104 with SHA-256.
Digest hmacSha256(std::string_view key, std::initializer_list<std::string_view> parts);
/// Takes as long whatever differs, so that nobody can find a signature byte by byte.
bool equalDigests(const Digest& a, const Digest& b);

std::string hex(const uint8_t* bytes, size_t count);
inline std::string hex(const Digest& digest) { return hex(digest.data(), digest.size()); }

}  // namespace fusebox::cache
