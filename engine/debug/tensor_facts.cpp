#include "engine/debug/tensor_facts.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

namespace fusebox::debug {
namespace {

using nlohmann::json;

constexpr size_t kFirst = 64, kMostPlaces = 20;

double fromHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24));
}

struct Half {
  uint16_t bits;
  operator double() const { return fromHalf(bits); }
};
struct BFloat16 {
  uint16_t bits;
  operator double() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

template <class T>
constexpr bool kIsWhole = std::is_integral_v<T>;

template <class T>
std::string textOf(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "True" : "False";
  } else if constexpr (kIsWhole<T>) {
    return std::to_string(value);
  } else {
    const double number = value;
    if (std::isnan(number)) return "nan";
    if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
    char text[40];
    std::snprintf(text, sizeof text, std::is_same_v<T, double> ? "%.12g" : "%.7g", number);
    return text;
  }
}

/// Where the walk over a tensor in logical order is.
class Walk {
 public:
  Walk(std::span<const int64_t> sizes, std::span<const int64_t> strides) : sizes_(sizes), strides_(strides), index_(sizes.size(), 0) {}
  int64_t offset() const { return offset_; }
  const std::vector<int64_t>& index() const { return index_; }
  void next() {
    for (size_t d = sizes_.size(); d-- > 0;) {
      offset_ += strides_[d];
      if (++index_[d] < sizes_[d]) return;
      offset_ -= strides_[d] * sizes_[d];
      index_[d] = 0;
    }
  }

 private:
  std::span<const int64_t> sizes_, strides_;
  std::vector<int64_t> index_;
  int64_t offset_ = 0;
};

template <class T>
T elementAt(const void* first, int64_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(first) + offset * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}
template <>
bool elementAt<bool>(const void* first, int64_t offset) { return static_cast<const unsigned char*>(first)[offset] != 0; }

template <class T>
json counted(const TensorMemory& tensor, int64_t elements) {
  const int64_t count = std::min(elements, kMostCounted);
  int64_t nan = 0, above = 0, below = 0, zeros = 0, finite = 0;
  T least{}, most{};
  std::vector<int64_t> leastAt, mostAt;
  double mean = 0, squares = 0;
  json first = json::array(), nanAt = json::array(), infinityAt = json::array();
  Walk walk(tensor.sizes, tensor.strides);
  for (int64_t i = 0; i < count; ++i, walk.next()) {
    const T value = elementAt<T>(tensor.first, walk.offset());
    const double number = static_cast<double>(value);
    if (first.size() < kFirst) first.push_back(textOf(value));
    if (std::isnan(number)) {
      ++nan;
      if (nanAt.size() < kMostPlaces) nanAt.push_back(walk.index());
      continue;
    }
    if (std::isinf(number)) {
      ++(number > 0 ? above : below);
      if (infinityAt.size() < kMostPlaces) infinityAt.push_back(walk.index());
      continue;
    }
    zeros += number == 0;
    if (finite == 0 || static_cast<double>(least) > number) least = value, leastAt = walk.index();
    if (finite == 0 || static_cast<double>(most) < number) most = value, mostAt = walk.index();
    // Welford's: no sum that grows beyond its own terms.
    const double apart = number - mean;
    mean += apart / static_cast<double>(++finite);
    squares += apart * (number - mean);
  }
  json facts{{"elements", elements}, {"counted", count},  {"nan", nan},           {"positive_infinity", above}, {"negative_infinity", below},
             {"zeros", zeros},       {"first", first},    {"nan_at", nanAt},      {"infinity_at", infinityAt}};
  if (finite == 0) return facts;
  facts.update({{"least", textOf(least)}, {"most", textOf(most)}, {"least_at", leastAt}, {"most_at", mostAt}, {"mean", mean},
                {"deviation", std::sqrt(squares / static_cast<double>(finite))}});
  const double from = static_cast<double>(least), to = static_cast<double>(most);
  std::array<int64_t, kHistogramBins> bins{};
  walk = Walk(tensor.sizes, tensor.strides);
  for (int64_t i = 0; i < count; ++i, walk.next()) {
    const double number = static_cast<double>(elementAt<T>(tensor.first, walk.offset()));
    if (!std::isfinite(number)) continue;
    const double share = to > from ? number / 2 - from / 2 : 0;  // halves, since a difference may overflow
    const double width = to > from ? to / 2 - from / 2 : 1;
    ++bins[std::min<size_t>(kHistogramBins - 1, static_cast<size_t>(share / width * kHistogramBins))];
  }
  facts["histogram"] = {{"from", from}, {"to", to}, {"counts", bins}};
  return facts;
}

using Counter = json (*)(const TensorMemory&, int64_t);
struct Type {
  std::string_view name;
  Counter count;
};
constexpr Type kTypes[] = {{"Float", counted<float>},     {"Double", counted<double>},  {"Half", counted<Half>},    {"BFloat16", counted<BFloat16>},
                           {"Long", counted<int64_t>},    {"Int", counted<int32_t>},    {"Short", counted<int16_t>}, {"Char", counted<int8_t>},
                           {"Byte", counted<uint8_t>},    {"UInt16", counted<uint16_t>}, {"UInt32", counted<uint32_t>}, {"UInt64", counted<uint64_t>},
                           {"Bool", counted<bool>}};

}  // namespace

Result<json> tensorFacts(const TensorMemory& tensor) {
  if (tensor.sizes.size() != tensor.strides.size()) return fail(ErrorCode::InvalidArgument, "its strides are not known");
  int64_t elements = 1;
  for (const int64_t size : tensor.sizes)
    if (size < 0 || __builtin_mul_overflow(elements, size, &elements)) return fail(ErrorCode::InvalidArgument, "its sizes are not known");
  if (elements > 0 && !tensor.first) return fail(ErrorCode::NotFound, "it has no memory yet");
  for (const Type& type : kTypes) {
    if (type.name != tensor.dtype) continue;
    json facts = type.count(tensor, elements);
    facts["dtype"] = tensor.dtype;
    facts["sizes"] = tensor.sizes;
    return facts;
  }
  return fail(ErrorCode::InvalidArgument, "elements of type " + std::string(tensor.dtype) + " are not read");
}

}  // namespace fusebox::debug
