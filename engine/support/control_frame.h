#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/support/result.h"

/// The wire between a debugged host and whoever debugs it (window or console): messages over one local stream socket. A
/// message is four bytes of length (little endian, of what follows) and that many bytes of JSON, an object, in UTF-8.
namespace fusebox::control {

/// Said in both hellos; ends that differ do not talk.
inline constexpr int kProtocol = 1;
/// Longer messages are refused by the reader and never made by the writer (texts are clipped first).
inline constexpr uint32_t kMaxMessageBytes = 16u << 20;
/// What one field of text may hold at most.
inline constexpr size_t kMaxTextBytes = 2u << 20;
inline constexpr int kMaxDepth = 32;  ///< of nesting

/// Environment of a host that is to be debugged: path of the socket, and the word that the host has to say first.
inline constexpr const char* kPathVariable = "FUSEBOX_CONTROL";
inline constexpr const char* kTokenVariable = "FUSEBOX_CONTROL_TOKEN";

/// The bytes of a message. Bytes of texts that are no UTF-8 are replaced.
std::string encode(const nlohmann::json& message);

/// A text cut to `limit` bytes, with a line that says so.
std::string clipped(std::string text, size_t limit = kMaxTextBytes);

/// Cuts a stream of bytes into messages.
class MessageReader {
 public:
  /// Adds bytes; returns the messages that are complete now. After an error (too long, no JSON, no object, too deep)
  /// the stream is lost: close it.
  Result<std::vector<nlohmann::json>> feed(std::string_view bytes);

 private:
  std::string rest_;
};

}  // namespace fusebox::control
