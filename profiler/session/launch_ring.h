#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

namespace fusebox::session {

/// What a thread notes for one kernel launch, or (with one of the tags as group) one call of a compiled entry.
struct LaunchRecord {
  int64_t startNs;
  int64_t durNs;
  int64_t bytes;
  int32_t id;     ///< kernel, or compile for calls
  int32_t group;  ///< fusion group, or a tag
};
inline constexpr int32_t kCallTag = std::numeric_limits<int32_t>::min();
inline constexpr int32_t kGuardCheckTag = kCallTag + 1;
/// An operator of torch outside compiled graphs, for a BatchListener; `id` is the recorder's number for its name and place.
inline constexpr int32_t kOperatorTag = kGuardCheckTag + 1;

/// What records are of, as losses name it.
inline constexpr std::array<const char*, 4> kRecordKinds = {"launches", "calls of compiled functions", "guard checks", "operators"};
using RecordCounts = std::array<int64_t, kRecordKinds.size()>;
constexpr size_t recordKind(const LaunchRecord& record) {
  return record.group > kOperatorTag ? 0 : static_cast<size_t>(int64_t{record.group} - kCallTag) + 1;
}

/// A ring from one recording thread to the writer thread. push() takes no lock and allocates nothing; when the ring is full
/// the record is dropped and counted.
class LaunchRing {
 public:
  static constexpr size_t kCapacity = size_t{1} << 17;

  explicit LaunchRing(int32_t thread) : thread_(thread), slots_(new LaunchRecord[kCapacity]) {}

  /// By the owning thread only.
  void push(const LaunchRecord& record) noexcept {
    const uint64_t head = head_.load(std::memory_order_relaxed);
    if (head - cachedTail_ >= kCapacity) [[unlikely]] {
      cachedTail_ = tail_.load(std::memory_order_acquire);
      if (head - cachedTail_ >= kCapacity) {
        dropped_[recordKind(record)].fetch_add(1, std::memory_order_relaxed);
        return;
      }
    }
    slots_[head & (kCapacity - 1)] = record;
    head_.store(head + 1, std::memory_order_release);
  }

  /// By the writer thread only: calls `visit(const LaunchRecord&)` for at most `limit` records, oldest first.
  template <class Visit>
  size_t drain(size_t limit, Visit&& visit) {
    const uint64_t tail = tail_.load(std::memory_order_relaxed);
    const uint64_t available = head_.load(std::memory_order_acquire) - tail;
    const size_t count = available < limit ? static_cast<size_t>(available) : limit;
    for (size_t i = 0; i < count; ++i) visit(slots_[(tail + i) & (kCapacity - 1)]);
    tail_.store(tail + count, std::memory_order_release);
    return count;
  }

  /// Recorded thread id. Changed by the writer only while no thread owns the ring.
  int32_t thread() const { return thread_.load(std::memory_order_relaxed); }
  void setThread(int32_t thread) { thread_.store(thread, std::memory_order_relaxed); }
  /// Records dropped since the last call.
  RecordCounts takeDropped() {
    RecordCounts taken;
    for (size_t i = 0; i < taken.size(); ++i) taken[i] = dropped_[i].exchange(0, std::memory_order_relaxed);
    return taken;
  }
  /// Set when the owning thread has ended and will push no more.
  std::atomic<bool> closed{false};

 private:
  std::atomic<int32_t> thread_;
  std::unique_ptr<LaunchRecord[]> slots_;  ///< pages are touched as they are used
  alignas(64) std::atomic<uint64_t> head_{0};
  uint64_t cachedTail_ = 0;
  std::array<std::atomic<int64_t>, kRecordKinds.size()> dropped_{};
  alignas(64) std::atomic<uint64_t> tail_{0};
};

}  // namespace fusebox::session
