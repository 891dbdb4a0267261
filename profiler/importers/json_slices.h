#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "profiler/importers/byte_stream.h"

namespace fusebox::importing {

/// Cuts a Chrome trace (an array of events, or an object whose `traceEvents` is one) into single events and the values
/// beside them, without holding more than one in memory. Knows enough of JSON to find where a value ends; whether it is
/// well formed is for the caller to say, who then asks to resynchronise at the next thing that looks like an event.
class JsonSlices {
 public:
  static constexpr size_t kPadding = 64;  ///< readable bytes behind every slice
  static constexpr size_t kMostSliceBytes = size_t{16} << 20;

  explicit JsonSlices(ByteStream& stream) : stream_(stream) {}

  enum class Kind : uint8_t {
    Event,    ///< an element of the array of events
    Value,    ///< another member of the outer object: `key` and its value
    Damaged,  ///< bytes that are no event; `text` says why
    End,
  };
  struct Slice {
    Kind kind = Kind::End;
    std::string key;
    std::string_view text;  ///< valid until the next call
  };
  Slice next();
  /// The event just returned is not well formed: go on behind its first byte.
  void resynchronise();
  /// How the file ended, if not as it should; empty otherwise.
  const std::string& ending() const { return ending_; }

 private:
  enum class State : uint8_t { Start, Members, Events, Done };
  bool more();
  int peek(size_t ahead = 0);
  int skipSpace();
  Slice finish(std::string why);
  /// Nothing: only the state has changed.
  std::optional<Slice> startOfFile();
  std::optional<Slice> nextMember();
  std::optional<Slice> nextEvent();
  Slice damaged(const char* why);
  bool seekEvent();
  bool looksLikeEvent(size_t at);
  std::string_view balanced(size_t limit, const char*& problem);
  std::string_view scalar(size_t limit);

  ByteStream& stream_;
  std::string buffer_;
  size_t position_ = 0, end_ = 0;  ///< of what was read into the buffer
  size_t sliceStart_ = 0;
  uint64_t wasted_ = 0;
  bool atEnd_ = false, inObject_ = false;
  State state_ = State::Start;
  std::string ending_;
};

}  // namespace fusebox::importing
