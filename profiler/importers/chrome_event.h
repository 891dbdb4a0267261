#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace fusebox::importing {

/// One event of a Chrome trace. Texts are valid until the next event is parsed.
struct ChromeEvent {
  char phase = 0;
  std::string_view name, category, id;
  std::string_view process, thread;  ///< as written: numbers or quoted names
  std::optional<int64_t> timeNs, durationNs;
  std::string_view arguments;  ///< raw JSON object, empty if there is none
};

/// What Kineto says about an event in its arguments.
struct ChromeArguments {
  std::optional<int64_t> correlation, externalId, stream, device, bytes;
  std::optional<int64_t> sequence, forwardThread;  ///< of operators: joins one with its gradient, which names the thread of the former
  std::optional<int64_t> registers, sharedBytes, occupancyPercent;  ///< of kernels
  std::string_view grid, block;                                     ///< as written: "[32, 1, 1]"
  std::string_view name;  ///< of metadata events
  std::string_view labels;
};

/// Parses events with simdjson. Keeps its memory for the next one.
class ChromeEventParser {
 public:
  ChromeEventParser();
  ~ChromeEventParser();
  /// False if the text is no JSON object; `problem` then says why. Control characters and bytes that are no UTF-8
  /// inside strings are replaced, and `repaired` is set. `json` must be followed by JsonSlices::kPadding readable
  /// bytes.
  bool parse(std::string_view json, ChromeEvent& event, bool& repaired, std::string& problem);
  /// What cannot be read is left empty. `json` must be a part of the event parsed last.
  void parseArguments(std::string_view json, ChromeArguments& arguments);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Microseconds in decimal, as traces write them, to nanoseconds without going through floating point (only an exponent
/// does).
std::optional<int64_t> microsecondsToNs(std::string_view text);

/// The text with control characters and bytes that are no UTF-8 replaced.
std::string replaceDamagedText(std::string_view text);

}  // namespace fusebox::importing
