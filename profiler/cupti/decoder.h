#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "profiler/cupti/activity.h"

namespace fusebox::cupti {

/// Turns CUPTI's records into values.
class Decoder {
 public:
  explicit Decoder(ShapeTable& shapes) : shapes_(shapes) {}

  /// What became of one record.
  enum class Outcome : uint8_t {
    Decoded,
    Ignored,     ///< of a kind that is not read
    Incomplete,  ///< work that had not ended when the buffer was flushed
  };
  /// Appends the record to `out`. `record` has at least abi::prefixBytes(its kind) readable bytes.
  Outcome decode(const std::byte* record, std::vector<Activity>& out);

 private:
  ShapeTable& shapes_;
};

}  // namespace fusebox::cupti
