#include "profiler/session/launch_store.h"

#include <algorithm>

namespace fusebox::session {
namespace {
// Small enough that a reader skips most of a session, large enough that blocks cost nothing.
constexpr int64_t kBlockRows = 4096;
constexpr size_t kBatchRows = 16384;
}  // namespace

void LaunchStore::Sums::add(const LaunchRecord& r) {
  minNs = count ? std::min(minNs, r.durNs) : r.durNs;
  maxNs = std::max(maxNs, r.durNs);
  firstNs = count ? std::min(firstNs, r.startNs) : r.startNs;
  lastNs = std::max(lastNs, r.startNs + r.durNs);
  totalNs += r.durNs;
  bytes += r.bytes;
  ++count;
}

PyramidBuilder& LaunchStore::pyramid(Track track, int32_t thread) {
  return pyramids_.try_emplace({track, thread}, track, thread).first->second;
}

size_t LaunchStore::drain(LaunchRing& ring) {
  const int32_t thread = ring.thread();
  OpenBlock blocks[2];
  PyramidBuilder* pyramids[2] = {&pyramid(kLaunches, thread), &pyramid(kCalls, thread)};
  const size_t count = ring.drain(LaunchRing::kCapacity, [&](const LaunchRecord& r) {
    ++inBatch_[recordKind(r)];
    if (r.group == kGuardCheckTag) {
      calls_[{1, r.id}].add(r);
      return;
    }
    if (r.group == kOperatorTag) {
      if (listener_) listener_->operatorRan(thread, r);
      return;
    }
    const Track track = r.group == kCallTag ? kCalls : kLaunches;
    if (track == kCalls) {
      calls_[{0, r.id}].add(r);
    } else {
      launches_[uint64_t{static_cast<uint32_t>(r.id)} << 32 | static_cast<uint32_t>(r.group)].add(r);
    }
    int64_t id = 0;
    if (nextId_[track] <= maxRows_) {
      id = nextId_[track]++;
      keep(track, track == kCalls ? RowBatch::Row{{id, r.id, r.startNs, r.durNs, thread}}
                                  : RowBatch::Row{{id, r.id, r.group, r.startNs, r.durNs, r.bytes, thread}});
      extend(blocks[track], track, thread, id, r);
    } else {
      ++notKept_;
    }
    if (listener_ && track == kLaunches) listener_->launched(thread, id, r);
    pyramids[track]->add(id, r.startNs, r.durNs, sink_);
  });
  closeBlock(blocks[kLaunches], kLaunches, thread);
  closeBlock(blocks[kCalls], kCalls, thread);
  return count;
}

void LaunchStore::extend(OpenBlock& block, Track track, int32_t thread, int64_t id, const LaunchRecord& r) {
  if (block.firstId == 0) block = {id, id, r.startNs, r.startNs + r.durNs};
  block.lastId = id;
  block.startNs = std::min(block.startNs, r.startNs);
  block.endNs = std::max(block.endNs, r.startNs + r.durNs);
  if (block.lastId - block.firstId + 1 >= kBlockRows) closeBlock(block, track, thread);
}

void LaunchStore::closeBlock(OpenBlock& block, Track track, int32_t thread) {
  if (block.firstId == 0) return;
  sink_.put(rows::Block{.track = int64_t{track}, .first_id = int64_t{block.firstId}, .last_id = int64_t{block.lastId}, .thread = int64_t{thread},
      .start_ns = int64_t{block.startNs}, .end_ns = int64_t{block.endNs}});
  block = {};
}

void LaunchStore::keep(Track track, const RowBatch::Row& row) {
  rows_[track].push_back(row);
  if (rows_[track].size() >= kBatchRows) sink_.putBatch(track == kCalls ? RowKind::Call : RowKind::Launch, rows_[track]);
}

void LaunchStore::flush() {
  sink_.putBatch(RowKind::Launch, rows_[kLaunches]);
  sink_.putBatch(RowKind::Call, rows_[kCalls]);
  for (auto& [key, pyramid] : pyramids_) pyramid.flush(sink_);
  for (const auto& [key, s] : launches_) {
    const auto kernel = static_cast<int32_t>(key >> 32), group = static_cast<int32_t>(key);
    sink_.put(rows::LaunchStats{.kernel_id = int64_t{kernel}, .group_id = int64_t{group}, .launches = int64_t{s.count},
        .total_ns = int64_t{s.totalNs}, .min_ns = int64_t{s.minNs}, .max_ns = int64_t{s.maxNs}, .bytes = int64_t{s.bytes},
        .first_ns = int64_t{s.firstNs}, .last_ns = int64_t{s.lastNs}});
  }
  for (const auto& [key, s] : calls_) {
    sink_.put(rows::CallStats{.kind = int64_t{key.first}, .compile_id = int64_t{key.second}, .calls = int64_t{s.count},
        .total_ns = int64_t{s.totalNs}, .min_ns = int64_t{s.minNs}, .max_ns = int64_t{s.maxNs}});
  }
}

void LaunchStore::committed() {
  launches_.clear();
  calls_.clear();
  inBatch_ = {};
  std::copy(std::begin(nextId_), std::end(nextId_), std::begin(batchStart_));
}

RecordCounts LaunchStore::rolledBack() {
  const RecordCounts lost = inBatch_;
  std::copy(std::begin(batchStart_), std::end(batchStart_), std::begin(nextId_));
  for (auto& [key, pyramid] : pyramids_) pyramid.discard();
  for (auto& rows : rows_) rows.clear();
  committed();
  return lost;
}

}  // namespace fusebox::session
