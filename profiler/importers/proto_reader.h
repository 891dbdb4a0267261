#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace fusebox::importing {

/// Reads the fields of one protobuf message, bounds checked. A message that is not well formed ends early with ok()
/// false.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view bytes) : rest_(bytes) {}

  enum class Wire : uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };
  struct Field {
    uint32_t id = 0;
    Wire wire = Wire::Varint;
    uint64_t number = 0;     ///< of the numeric kinds
    std::string_view bytes;  ///< of Bytes: text or a message
    int64_t integer() const { return static_cast<int64_t>(number); }
    double real() const { return std::bit_cast<double>(number); }
  };

  bool next(Field& field) {
    if (rest_.empty()) return false;
    uint64_t tag = 0;
    if (!varint(tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff) return broken();
    field = {static_cast<uint32_t>(tag >> 3), static_cast<Wire>(tag & 7), 0, {}};
    switch (field.wire) {
      case Wire::Varint:
        return varint(field.number) || broken();
      case Wire::Fixed64:
        return fixed(8, field.number) || broken();
      case Wire::Fixed32:
        return fixed(4, field.number) || broken();
      case Wire::Bytes: {
        uint64_t length = 0;
        if (!varint(length) || length > rest_.size()) return broken();
        field.bytes = rest_.substr(0, length);
        rest_.remove_prefix(length);
        return true;
      }
      default:
        return broken();
    }
  }
  bool ok() const { return ok_; }

  /// A varint at the front of `bytes`, which is moved behind it.
  static bool takeVarint(std::string_view& bytes, uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

 private:
  bool varint(uint64_t& value) { return takeVarint(rest_, value); }
  bool fixed(size_t size, uint64_t& value) {
    if (rest_.size() < size) return false;
    value = 0;
    std::memcpy(&value, rest_.data(), size);
    rest_.remove_prefix(size);
    return true;
  }
  bool broken() {
    ok_ = false;
    rest_ = {};
    return false;
  }
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace fusebox::importing
