#include "engine/support/control_frame.h"

#include "engine/support/bounded_json.h"

namespace fusebox::control {

using nlohmann::json;

std::string encode(const json& message) {
  std::string text = message.dump(-1, ' ', false, json::error_handler_t::replace);
  const auto length = static_cast<uint32_t>(text.size());
  std::string bytes;
  bytes.reserve(text.size() + 4);
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(length >> shift & 0xFF));
  return bytes += text;
}

std::string clipped(std::string text, size_t limit) {
  if (text.size() <= limit) return text;
  const size_t whole = text.size();
  text.resize(limit);
  return text + "\n… (" + std::to_string(whole - limit) + " more bytes are not shown)";
}

Result<std::vector<json>> MessageReader::feed(std::string_view bytes) {
  rest_ += bytes;
  std::vector<json> messages;
  size_t at = 0;
  while (rest_.size() - at >= 4) {
    uint32_t length = 0;
    for (size_t i = 0; i < 4; ++i)
      length |= static_cast<uint32_t>(static_cast<unsigned char>(rest_[at + i])) << (8 * i);
    if (length > kMaxMessageBytes)
      return fail(ErrorCode::Corrupt, "a message of " + std::to_string(length) + " bytes is too long");
    if (rest_.size() - at - 4 < length) break;
    const char* text = rest_.data() + at + 4;
    JsonFault fault{};
    json message = parseBounded({text, length}, &fault, {.nesting = kMaxDepth});
    if (fault == JsonFault::TooDeep) return fail(ErrorCode::Corrupt, "a message is nested too deeply");
    if (!message.is_object()) return fail(ErrorCode::Corrupt, "a message is no JSON object");
    messages.push_back(std::move(message));
    at += 4 + length;
  }
  rest_.erase(0, at);
  return messages;
}

}  // namespace fusebox::control
