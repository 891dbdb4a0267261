#include "engine/runtime/gpu/recording_choice.h"

#include <algorithm>

namespace fusebox::runtime::gpu {
namespace {

std::string megabytes(int64_t bytes) { return std::to_string((bytes + (1 << 19)) >> 20) + " MB"; }

}  // namespace

bool RecordingChoice::fits(const RecordingState& recording, std::span<const GraphInput> inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (recording.addresses[i] != 0 && recording.addresses[i] != inputs[i].address) return false;
  return true;
}

GraphDecision RecordingChoice::record(std::string reason, int32_t instead) {
  if (limitReached_ || recorded_ >= recordLimit_) {
    const bool first = !limitReached_;
    limitReached_ = true;
    GraphDecision plain;
    if (first)
      plain.reason = "recorded " + std::to_string(recorded_) +
                     " times (triton.cudagraph_unexpected_rerecord_limit); not recorded again: " + reason;
    return plain;
  }
  ++recorded_;
  replays_ = 0;
  if (instead >= 0) lastUse_[static_cast<size_t>(instead)] = calls_;
  return {GraphDecision::Action::Record, instead, false, std::move(reason)};
}

GraphDecision RecordingChoice::recordFirst(std::span<const GraphInput> inputs,
                                           const std::function<bool(uint64_t)>& isManaged) {
  copied_.assign(inputs.size(), false);
  for (size_t i = 0; i < inputs.size(); ++i)
    copied_[i] = inputs[i].address != lastAddresses_[i] && !isManaged(inputs[i].address);
  return record("first use after the warm-up", -1);
}

GraphDecision RecordingChoice::recordMoved(std::span<const GraphInput> inputs, const RecordingState& closest, int32_t position,
                                           bool full, const std::function<bool(uint64_t)>& isManaged) {
  std::string moved;
  int count = 0;
  bool allManaged = true;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (closest.addresses[i] == 0 || closest.addresses[i] == inputs[i].address) continue;
    if (count++ < 3) moved += (moved.empty() ? "" : ", ") + std::to_string(i);
    if (isManaged(inputs[i].address)) continue;
    allManaged = false;
    if (replays_ < kStableReplays) copied_[i] = true;
  }
  if (count > 3) moved += ", …";
  const std::string which = std::to_string(count) + (count == 1 ? " input (" : " inputs (") + moved + ")";
  if (allManaged) return record(which + " from another recording than before", full ? position : -1);
  return record(which + " at another address than in the recording", position);
}

GraphDecision RecordingChoice::decide(std::span<const GraphInput> inputs, std::span<const RecordingState> recordings,
                                      const std::function<bool(uint64_t)>& isManaged) {
  using Action = GraphDecision::Action;
  ++calls_;
  lastUse_.resize(recordings.size(), calls_);
  if (!warm_) {
    warm_ = true;
    for (const GraphInput& input : inputs) lastAddresses_.push_back(input.address);
    return {};
  }
  if (recordings.empty()) return recordFirst(inputs, isManaged);

  int32_t fitting = -1, closest = 0, oldest = 0;
  size_t fewest = inputs.size() + 1;
  for (size_t r = 0; r < recordings.size(); ++r) {
    const RecordingState& recording = recordings[r];
    const auto position = static_cast<int32_t>(r);
    if (lastUse_[r] < lastUse_[static_cast<size_t>(oldest)]) oldest = position;
    if (fits(recording, inputs)) {
      if (fitting < 0 || recording.liveBytes < recordings[static_cast<size_t>(fitting)].liveBytes) fitting = position;
      continue;
    }
    size_t differences = 0;
    for (size_t i = 0; i < inputs.size(); ++i)
      differences += recording.addresses[i] != 0 && recording.addresses[i] != inputs[i].address;
    if (differences < fewest) {
      fewest = differences;
      closest = position;
    }
  }
  const bool full = recordings.size() >= kMostRecordings;
  if (fitting < 0) return recordMoved(inputs, recordings[static_cast<size_t>(closest)], full ? oldest : closest, full, isManaged);

  const int64_t live = recordings[static_cast<size_t>(fitting)].liveBytes;
  if (live > kMovableBytes && !full) {
    GraphDecision another = record(megabytes(live) + " of results of the last replay are still in use", -1);
    if (another.action == Action::Record) return another;
  }
  ++replays_;
  lastUse_[static_cast<size_t>(fitting)] = calls_;
  return {Action::Replay, fitting, live > 0, {}};
}

}  // namespace fusebox::runtime::gpu
