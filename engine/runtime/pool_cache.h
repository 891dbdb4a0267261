#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include <c10/core/Allocator.h>

namespace fusebox::runtime {

/// Memory pools kept between calls, shared by every compiled graph of the process. Fresh memory costs a page fault for every
/// 4 KiB, more than many kernels themselves; a kept block costs nothing. Memory comes from c10's CPU allocator, aligned to 64
/// bytes. Thread-safe.
class PoolCache {
 public:
  struct Block {
    at::DataPtr memory;
    int64_t bytes = 0;
    void* data() const { return memory.get(); }
  };

  static PoolCache& instance();

  /// A block of at least `bytes`; the smallest kept one that is large enough without wasting more than half of itself.
  Block acquire(int64_t bytes);
  /// Keeps the block for later calls, dropping the blocks unused longest while more than kLimitBytes are kept.
  void release(Block block);

  /// An allocator of tensors whose memory comes from here and returns here. Worth it for sizes that malloc maps afresh each time.
  c10::Allocator* allocator();
  static constexpr int64_t kLargeTensorBytes = int64_t{16} << 20;

  /// Frees every kept block; returns the bytes given back.
  int64_t trim();
  int64_t keptBytes() const;

 private:
  void evictLocked(std::vector<Block>& evicted);
  mutable std::mutex mutex_;
  std::vector<Block> kept_;  ///< least recently used first
  int64_t keptBytes_ = 0;
  static constexpr int64_t kLimitBytes = int64_t{1} << 30;
};

}  // namespace fusebox::runtime
