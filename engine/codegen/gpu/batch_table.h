#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fusebox::codegen::gpu {

/// The one argument of a batched kernel (Kernel::isBatch), by value, 8-byte aligned: `capacity` int32 numbers of first blocks, ascending,
/// 2^31-1 for entries that are not used, then for each entry its buffers' addresses and its sizes, 8 bytes each.
struct BatchTable {
  int capacity = 0;  ///< a power of two
  int words = 0;     ///< 8-byte words of an entry

  static constexpr int64_t kUnused = 0x7fffffff;

  BatchTable(size_t buffers, size_t sizes) : words(static_cast<int>(buffers + sizes)) {
    constexpr size_t kMost = 4000;  // bytes that the parameters of a kernel may take on every device
    const size_t fits = kMost / (8 * static_cast<size_t>(std::max(1, words)) + 4);
    capacity = static_cast<int>(std::bit_floor(std::max<size_t>(2, fits)));
  }
  size_t entriesAt() const { return 4 * static_cast<size_t>(capacity); }
  size_t bytes() const { return entriesAt() + 8 * static_cast<size_t>(capacity) * static_cast<size_t>(words); }
};

}  // namespace fusebox::codegen::gpu
