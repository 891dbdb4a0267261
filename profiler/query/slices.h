#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "profiler/session/reader.h"

namespace fusebox::query {

/// Anything on the timeline that has a name, a begin and an end: spans of threads, stages, calls, launches, work of devices.
struct Slice {
  enum class Kind : uint8_t { Span, Launch, Call, Device };
  int64_t startNs = 0, endNs = 0;
  std::string name = {};
  Kind kind = Kind::Span;
  int64_t thread = 0;  ///< its row of `threads`: where it ran, of a device's work the device's lane
  int64_t id = 0;      ///< tells slices of one kind apart that begin and end together
};

/// Compilations as spans, but for those that one of their stages tells of from begin to end: a query with id, start_ns, dur_ns, name, status, thread.
extern const char* const kCompileSpans;

/// One of the slices whose name holds a text.
struct SliceHit {
  Slice slice = {};
  int64_t number = 0, count = 0;  ///< its place among all of them in order of time, from 1; how many there are
};
enum class SliceDirection : uint8_t { From, Next, Previous };
/// The first that starts with `at` or later, the next one after it, or the one before it; after the last comes the first. Of those that start
/// together the longer comes first: the others lie in it.
Result<SliceHit> findSlice(const session::Reader& reader, const std::string& text, const Slice& at, SliceDirection direction);

/// What ran in a span of time, summed up by name; the parts of it that lie in the span.
struct SliceSum {
  enum class Kind : uint8_t { Kernel, Device, Operator, Span };
  Kind kind = Kind::Kernel;
  std::string name = {};
  int64_t kernel = 0;  ///< kernel_id, where one stands behind all of them
  int64_t count = 0, totalNs = 0, minNs = 0, maxNs = 0;
  /// How many are shorter than 100 ns, than 1 µs, …, than 100 ms, and how many are longer: each counted once.
  static constexpr size_t kDecades = 8;
  std::array<int64_t, kDecades> lengths{};
};
/// A bar for each decade from the shortest to the longest, between the bounds of both: "1 µs ▁█▃ 1 ms".
std::string lengthsText(const std::array<int64_t, SliceSum::kDecades>& lengths);
/// Most time first, at most `most` of each kind.
Result<std::vector<SliceSum>> sumSlices(const session::Reader& reader, int64_t from, int64_t to, int64_t most = 12);

/// What is known of one event of cpu_events besides its times.
struct SlicePlace {
  std::string file = {}, detail = {};
  int64_t line = 0, compile = 0;
  int64_t launches = 0, kernelNs = 0;  ///< of its thread, inside of its time
};
Result<SlicePlace> placeOfSlice(const session::Reader& reader, int64_t event, int64_t thread, int64_t startNs, int64_t endNs);

}  // namespace fusebox::query
