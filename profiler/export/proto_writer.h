#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace fusebox::exporting {

/// Puts together one protobuf message, field by field (https://protobuf.dev/programming-guides/encoding).
class ProtoWriter {
 public:
  ProtoWriter& number(uint32_t field, uint64_t value) {
    varint(uint64_t{field} << 3);
    varint(value);
    return *this;
  }
  ProtoWriter& text(uint32_t field, std::string_view value) {
    varint(uint64_t{field} << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  ProtoWriter& message(uint32_t field, const ProtoWriter& inner) { return text(field, inner.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value) {
    while (value >= 0x80) {
      bytes_ += static_cast<char>(value | 0x80);
      value >>= 7;
    }
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

}  // namespace fusebox::exporting
