#include "engine/runtime/pool_cache.h"

#include <memory>

#include <c10/core/CPUAllocator.h>

namespace fusebox::runtime {
namespace {

class PoolAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    auto block = std::make_unique<PoolCache::Block>(PoolCache::instance().acquire(static_cast<int64_t>(bytes)));
    void* data = block->data();
    return {data, block.release(), &giveBack, c10::DeviceType::CPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }  // data and context differ
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  static void giveBack(void* context) {
    std::unique_ptr<PoolCache::Block> block(static_cast<PoolCache::Block*>(context));
    PoolCache::instance().release(std::move(*block));
  }
};

}  // namespace

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

c10::Allocator* PoolCache::allocator() {
  static auto* allocator = new PoolAllocator;  // leaked, as the cache is
  return allocator;
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

void PoolCache::evictLocked(std::vector<Block>& evicted) {
  size_t count = 0;
  while (keptBytes_ > kLimitBytes && count < kept_.size()) {
    keptBytes_ -= kept_[count].bytes;
    evicted.push_back(std::move(kept_[count++]));
  }
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(count));
}

}  // namespace fusebox::runtime
