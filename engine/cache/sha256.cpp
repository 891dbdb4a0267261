#include "engine/cache/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace fusebox::cache {
namespace {

constexpr size_t kBlock = 64;

constexpr uint32_t kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

class Sha256 {
 public:
  void update(std::string_view bytes) {
    length_ += bytes.size();
    while (!bytes.empty()) {
      if (filled_ == 0 && bytes.size() >= kBlock) {
        compress(reinterpret_cast<const uint8_t*>(bytes.data()));
        bytes.remove_prefix(kBlock);
        continue;
      }
      const size_t part = std::min(kBlock - filled_, bytes.size());
      std::memcpy(block_ + filled_, bytes.data(), part);
      filled_ += part;
      bytes.remove_prefix(part);
      if (filled_ == kBlock) compress(block_), filled_ = 0;
    }
  }

  Digest finish() {
    const uint64_t bits = length_ * 8;
    update(std::string_view("\x80", 1));
    while (filled_ != kBlock - 8) update(std::string_view("\0", 1));
    char end[8];
    for (int i = 0; i < 8; ++i) end[i] = static_cast<char>(bits >> (56 - 8 * i));
    update(std::string_view(end, 8));
    Digest out;
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
    return out;
  }

 private:
  void compress(const uint8_t* block) {
    uint32_t w[64];
    for (int i = 0; i < 16; ++i)
      w[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 | uint32_t{block[4 * i + 2]} << 8 |
             block[4 * i + 3];
    for (int i = 16; i < 64; ++i) {
      const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
      const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    uint32_t a = state_[0], b = state_[1], c = state_[2], d = state_[3], e = state_[4], f = state_[5], g = state_[6],
             h = state_[7];
    for (int i = 0; i < 64; ++i) {
      const uint32_t t1 =
          h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + kRounds[i] + w[i];
      const uint32_t t2 = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const uint32_t sums[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; ++i) state_[i] += sums[i];
  }

  uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  uint8_t block_[kBlock] = {};
  size_t filled_ = 0;
  uint64_t length_ = 0;
};

}  // namespace

Digest sha256(std::initializer_list<std::string_view> parts) {
  Sha256 hash;
  for (std::string_view part : parts) hash.update(part);
  return hash.finish();
}

Digest hmacSha256(std::string_view key, std::initializer_list<std::string_view> parts) {
  char inner[kBlock] = {}, outer[kBlock] = {};
  Digest shortened;
  if (key.size() > kBlock) {
    shortened = sha256(key);
    key = {reinterpret_cast<const char*>(shortened.data()), shortened.size()};
  }
  std::memcpy(inner, key.data(), key.size());
  std::memcpy(outer, key.data(), key.size());
  for (char& c : inner) c = static_cast<char>(c ^ 0x36);
  for (char& c : outer) c = static_cast<char>(c ^ 0x5c);
  Sha256 first;
  first.update({inner, kBlock});
  for (std::string_view part : parts) first.update(part);
  const Digest middle = first.finish();
  return sha256({{outer, kBlock}, {reinterpret_cast<const char*>(middle.data()), middle.size()}});
}

bool equalDigests(const Digest& a, const Digest& b) {
  uint8_t difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference = static_cast<uint8_t>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

std::string hex(const uint8_t* bytes, size_t count) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i) text += {kDigits[bytes[i] >> 4], kDigits[bytes[i] & 15]};
  return text;
}

}  // namespace fusebox::cache
