#include "engine/runtime/pool_cache.h"

#include <c10/core/CPUAllocator.h>

namespace fusebox::runtime {

PoolCache& PoolCache::instance() {
  // Leaked on purpose: compiled graphs held by Python objects may be destroyed after static destructors have run.
  static auto* cache = new PoolCache;
  return *cache;
}

PoolCache::Block PoolCache::acquire(int64_t bytes) {
  {
    std::lock_guard lock(mutex_);
    size_t best = kept_.size();
    for (size_t i = 0; i < kept_.size(); ++i)
      if (kept_[i].bytes >= bytes && kept_[i].bytes <= 2 * bytes + (int64_t{1} << 20) &&
          (best == kept_.size() || kept_[i].bytes < kept_[best].bytes))
        best = i;
    if (best < kept_.size()) {
      Block block = std::move(kept_[best]);
      kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(best));
      keptBytes_ -= block.bytes;
      return block;
    }
  }
  return {c10::GetCPUAllocator()->allocate(static_cast<size_t>(bytes)), bytes};
}

void PoolCache::release(Block block) {
  if (!block.memory) return;
  std::vector<Block> evicted;  // freed after the lock is gone
  std::lock_guard lock(mutex_);
  keptBytes_ += block.bytes;
  kept_.push_back(std::move(block));
  evictLocked(evicted);
}

int64_t PoolCache::trim() {
  std::vector<Block> evicted;
  std::lock_guard lock(mutex_);
  evicted.swap(kept_);
  return std::exchange(keptBytes_, 0);
}

int64_t PoolCache::keptBytes() const {
  std::lock_guard lock(mutex_);
  return keptBytes_;
}

void PoolCache::setLimitBytes(int64_t bytes) {
  std::vector<Block> evicted;
  std::lock_guard lock(mutex_);
  limitBytes_ = bytes;
  evictLocked(evicted);
}

void PoolCache::evictLocked(std::vector<Block>& evicted) {
  size_t count = 0;
  while (keptBytes_ > limitBytes_ && count < kept_.size()) {
    keptBytes_ -= kept_[count].bytes;
    evicted.push_back(std::move(kept_[count++]));
  }
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(count));
}

}  // namespace fusebox::runtime
