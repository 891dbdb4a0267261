#pragma once

#include <cstdint>

/// Numbers of the fields that are read, from perfetto/protos/perfetto/trace: trace_packet.proto (packet) and
/// track_event/track_event.proto (event).
namespace fusebox::importing {

namespace packet {
constexpr uint32_t kClockSnapshot = 6, kTimestamp = 8, kSequence = 10, kTrackEvent = 11, kInterned = 12, kFlags = 13,
                   kCleared = 41, kDropped = 42, kCompressed = 50, kClock = 58, kDefaults = 59, kTrackDescriptor = 60;
}
namespace event {
constexpr uint32_t kDelta = 1, kCategoryIds = 3, kAnnotation = 4, kLegacy = 6, kType = 9, kNameId = 10, kTrack = 11,
                   kAbsolute = 16, kCategory = 22, kName = 23, kCounter = 30, kOldFlow = 36, kCounterReal = 44,
                   kFlow = 47, kEndingFlow = 48;
constexpr uint64_t kBegin = 1, kEnd = 2, kInstant = 3, kCounterType = 4;
}  // namespace event

}  // namespace fusebox::importing
