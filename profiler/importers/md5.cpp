#include "profiler/importers/md5.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace fusebox::importing {
namespace {

// RFC 1321: floor(2^32 * |sin(i + 1)|).
const std::array<uint32_t, 64> kSines = [] {
  std::array<uint32_t, 64> table{};
  for (size_t i = 0; i < 64; ++i)
    table[i] = static_cast<uint32_t>(std::floor(std::abs(std::sin(static_cast<double>(i + 1))) * 4294967296.0));
  return table;
}();
constexpr int kShifts[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

using State = std::array<uint32_t, 4>;

void block(State& state, const unsigned char* bytes) {
  std::array<uint32_t, 16> words;
  std::memcpy(words.data(), bytes, 64);  // little-endian machines only, as all that Fusebox runs on
  auto [a, b, c, d] = state;
  for (uint32_t i = 0; i < 64; ++i) {
    uint32_t f = 0, g = 0;
    switch (i / 16) {
      case 0:
        f = (b & c) | (~b & d), g = i;
        break;
      case 1:
        f = (d & b) | (~d & c), g = (5 * i + 1) % 16;
        break;
      case 2:
        f = b ^ c ^ d, g = (3 * i + 5) % 16;
        break;
      default:
        f = c ^ (b | ~d), g = (7 * i) % 16;
    }
    const uint32_t rotated = b + std::rotl(a + f + kSines[i] + words[g], kShifts[i / 16][i % 4]);
    a = d, d = c, c = b, b = rotated;
  }
  state[0] += a, state[1] += b, state[2] += c, state[3] += d;
}

}  // namespace

std::string md5(std::string_view bytes) {
  static_assert(std::endian::native == std::endian::little);
  State state{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t left = bytes.size();
  for (; left >= 64; left -= 64, data += 64) block(state, data);
  std::array<unsigned char, 128> tail{};
  if (left > 0) std::memcpy(tail.data(), data, left);
  tail[left] = 0x80;
  const size_t size = left < 56 ? 64 : 128;
  const uint64_t bits = uint64_t{bytes.size()} * 8;
  std::memcpy(tail.data() + size - 8, &bits, 8);
  for (size_t at = 0; at < size; at += 64) block(state, tail.data() + at);
  std::string hex;
  for (const uint32_t word : state) {
    for (int byte = 0; byte < 4; ++byte) {
      constexpr char kDigits[] = "0123456789abcdef";
      const uint32_t value = word >> (8 * byte) & 0xff;
      hex += kDigits[value >> 4];
      hex += kDigits[value & 15];
    }
  }
  return hex;
}

}  // namespace fusebox::importing
