#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace fusebox::runtime::gpu {

/// An input of a call as far as CUDA graphs care, which have addresses inside them.
struct GraphInput {
  uint64_t address = 0;  ///< 0: captured work does not read it, or it is no tensor
  int64_t bytes = 0;
};

/// What a recording was made for, and what is still in use of it.
struct RecordingState {
  std::vector<uint64_t> addresses;  ///< by input; 0: read from a copy, or not read
  int64_t liveBytes = 0;            ///< results of its last replay that somebody still holds
};

struct GraphDecision {
  enum class Action : uint8_t {
    Plain,   ///< run without a graph
    Replay,  ///< `recording`
    Record,  ///< a new one; in the place of `recording` where that is not -1
  } action = Action::Plain;
  int32_t recording = -1;
  bool moveResults = false;  ///< before replaying: results in use get memory of their own
  std::string reason;        ///< of Record, and of the first Plain after recordings were given up
};

/// Decides for one compiled graph whether a call replays a recording, makes one, or runs plainly. Knows nothing of CUDA: addresses in,
/// decision out.
///
/// - The first call is a warm-up and runs plainly. An input at the same address in the second call is taken as static (parameters,
///   results of other recordings); others are copied into the recording's own memory before every replay.
/// - A static input that moved: a recording for the new address if it had stayed for kStableReplays, else it is copied from now on.
///   Results of other recordings are never copied: there is one recording for every combination that occurs.
/// - Results of the last replay that are still in use when the next one would overwrite them: up to kMovableBytes they are moved to
///   memory of their own first; if there are more, a second recording with results of its own takes turns with the first.
class RecordingChoice {
 public:
  static constexpr int64_t kMovableBytes = int64_t{16} << 20;
  static constexpr int kStableReplays = 8;
  static constexpr size_t kMostRecordings = 8;
  static constexpr int kDefaultRecordLimit = 128;  ///< torch._inductor.config.triton.cudagraph_unexpected_rerecord_limit

  explicit RecordingChoice(int recordLimit = kDefaultRecordLimit) : recordLimit_(recordLimit) {}

  /// `isManaged`: whether an address lies in results of a recording.
  GraphDecision decide(std::span<const GraphInput> inputs, std::span<const RecordingState> recordings,
                       const std::function<bool(uint64_t)>& isManaged);
  /// Which inputs the recording that decide() asked for copies.
  const std::vector<bool>& copied() const { return copied_; }
  /// No further recordings; those there are still serve.
  void giveUp() { limitReached_ = true; }

 private:
  GraphDecision record(std::string reason, int32_t instead);
  GraphDecision recordFirst(std::span<const GraphInput> inputs, const std::function<bool(uint64_t)>& isManaged);
  GraphDecision recordMoved(std::span<const GraphInput> inputs, const RecordingState& closest, int32_t position, bool full,
                            const std::function<bool(uint64_t)>& isManaged);
  bool fits(const RecordingState& recording, std::span<const GraphInput> inputs) const;

  int recordLimit_;
  int recorded_ = 0;
  bool warm_ = false, limitReached_ = false;
  int64_t replays_ = 0;                ///< since the last recording was made
  std::vector<uint64_t> lastAddresses_;
  std::vector<bool> copied_;
  std::vector<int64_t> lastUse_;       ///< of each recording, by count of calls
  int64_t calls_ = 0;
};

}  // namespace fusebox::runtime::gpu
