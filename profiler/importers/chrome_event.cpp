#include "profiler/importers/chrome_event.h"

#include <simdjson.h>

#include <cmath>

#include "profiler/importers/json_slices.h"

namespace fusebox::importing {
namespace {

using namespace simdjson;

std::string_view trimmed(std::string_view token) {
  while (!token.empty() &&
         (token.back() == ' ' || token.back() == '\n' || token.back() == '\r' || token.back() == '\t')) {
    token.remove_suffix(1);
  }
  return token;
}
std::string_view unquoted(std::string_view token) {
  if (token.size() >= 2 && token.front() == '"' && token.back() == '"') return token.substr(1, token.size() - 2);
  return token;
}

std::optional<int64_t> whole(ondemand::value value) {
  int64_t number = 0;
  if (value.get_int64().get(number) == SUCCESS) return number;
  return std::nullopt;
}

// Text of a string; the token of anything else.
error_code asText(ondemand::value value, std::string_view& out) {
  ondemand::json_type type;
  if (auto error = value.type().get(type)) return error;
  if (type == ondemand::json_type::string) return value.get_string().get(out);
  if (type == ondemand::json_type::object || type == ondemand::json_type::array) return SUCCESS;
  out = trimmed(value.raw_json_token());
  return SUCCESS;
}

enum class Member : uint8_t { Phase, Name, Category, Id, Process, Thread, Time, Duration, Arguments, Other };
Member memberOf(std::string_view key) {
  struct Entry {
    std::string_view key;
    Member member;
  };
  static constexpr Entry kMembers[] = {{"ph", Member::Phase},     {"cat", Member::Category},   {"name", Member::Name},
                                       {"pid", Member::Process},  {"tid", Member::Thread},     {"ts", Member::Time},
                                       {"dur", Member::Duration}, {"args", Member::Arguments}, {"id", Member::Id}};
  for (const auto& entry : kMembers) {
    if (entry.key == key) return entry.member;
  }
  return Member::Other;
}

error_code readMember(ondemand::field& field, ChromeEvent& event) {
  std::string_view key;
  if (auto error = field.unescaped_key().get(key)) return error;
  ondemand::value value = field.value();
  std::string_view text;
  switch (memberOf(key)) {
    case Member::Phase: {
      auto error = asText(value, text);
      if (!error && text.size() == 1) event.phase = text[0];
      return error;
    }
    case Member::Name:
      return asText(value, event.name);
    case Member::Category:
      return asText(value, event.category);
    case Member::Id:
      return asText(value, event.id);
    case Member::Process:
      return asText(value, event.process);
    case Member::Thread:
      return asText(value, event.thread);
    case Member::Time:
    case Member::Duration: {
      const auto error = asText(value, text);
      if (!error) (memberOf(key) == Member::Time ? event.timeNs : event.durationNs) = microsecondsToNs(text);
      return error;
    }
    case Member::Arguments: {
      ondemand::json_type type;
      if (auto error = value.type().get(type)) return error;
      if (type != ondemand::json_type::object) return SUCCESS;
      ondemand::object object;
      if (auto error = value.get_object().get(object)) return error;
      return object.raw_json().get(event.arguments);
    }
    default:
      return SUCCESS;
  }
}

error_code readEvent(ondemand::parser& parser, std::string_view json, ChromeEvent& event) {
  event = {};
  ondemand::document document;
  if (auto error = parser.iterate(json.data(), json.size(), json.size() + JsonSlices::kPadding).get(document))
    return error;
  ondemand::object object;
  if (auto error = document.get_object().get(object)) return error;
  for (auto member : object) {
    ondemand::field field;
    if (auto error = std::move(member).get(field)) return error;
    if (auto error = readMember(field, event)) return error;
  }
  return SUCCESS;
}

}  // namespace

static_assert(JsonSlices::kPadding >= SIMDJSON_PADDING);

struct ChromeEventParser::Impl {
  ondemand::parser events, arguments;
  std::string repaired;
};

ChromeEventParser::ChromeEventParser() : impl_(new Impl) {}
ChromeEventParser::~ChromeEventParser() = default;

bool ChromeEventParser::parse(std::string_view json, ChromeEvent& event, bool& repaired, std::string& problem) {
  repaired = false;
  auto error = readEvent(impl_->events, json, event);
  if (error == UTF8_ERROR || error == UNESCAPED_CHARS || error == STRING_ERROR) {
    impl_->repaired = replaceDamagedText(json);
    const size_t size = impl_->repaired.size();
    impl_->repaired.append(JsonSlices::kPadding, ' ');
    error = readEvent(impl_->events, std::string_view(impl_->repaired.data(), size), event);
    repaired = error == SUCCESS;
  }
  if (error) problem = error_message(error);
  return error == SUCCESS;
}

namespace {

/// A list as it is written.
void readArray(ondemand::value value, std::string_view& out) {
  ondemand::array array;
  if (!value.get_array().get(array) && array.raw_json().get(out)) out = {};
}

}  // namespace

void ChromeEventParser::parseArguments(std::string_view json, ChromeArguments& out) {
  if (json.empty()) return;
  ondemand::document document;
  if (impl_->arguments.iterate(json.data(), json.size(), json.size() + JsonSlices::kPadding).get(document)) return;
  ondemand::object object;
  if (document.get_object().get(object)) return;
  for (auto member : object) {
    ondemand::field field;
    if (std::move(member).get(field)) return;
    std::string_view key;
    if (field.unescaped_key().get(key)) return;
    if (key == "correlation")
      out.correlation = whole(field.value());
    else if (key == "External id" || key == "external id")
      out.externalId = whole(field.value());
    else if (key == "Sequence number")
      out.sequence = whole(field.value());
    else if (key == "Fwd thread id")
      out.forwardThread = whole(field.value());
    else if (key == "stream")
      out.stream = whole(field.value());
    else if (key == "device")
      out.device = whole(field.value());
    else if (key == "bytes" || key == "Bytes")
      out.bytes = whole(field.value());
    else if (key == "registers per thread")
      out.registers = whole(field.value());
    else if (key == "shared memory")
      out.sharedBytes = whole(field.value());
    else if (key == "est. achieved occupancy %")
      out.occupancyPercent = whole(field.value());
    else if (key == "grid")
      readArray(field.value(), out.grid);
    else if (key == "block")
      readArray(field.value(), out.block);
    else if (key == "name")
      (void)asText(field.value(), out.name);
    else if (key == "labels")
      (void)asText(field.value(), out.labels);
  }
}

std::optional<int64_t> microsecondsToNs(std::string_view token) {
  token = unquoted(token);
  if (token.empty() || token.size() > 40) return std::nullopt;
  if (token.find_first_of("eE") != std::string_view::npos) {
    const double value = std::strtod(std::string(token).c_str(), nullptr) * 1e3;
    return std::isfinite(value) && std::abs(value) < 9e18 ? std::optional(static_cast<int64_t>(std::llround(value)))
                                                          : std::nullopt;
  }
  const bool negative = token.front() == '-';
  if (negative) token.remove_prefix(1);
  int64_t ns = 0;
  int decimals = -1;
  for (const char c : token) {
    if (c == '.' && decimals < 0) {
      decimals = 0;
      continue;
    }
    if (c < '0' || c > '9') return std::nullopt;
    if (decimals >= 3) continue;
    if (decimals >= 0) ++decimals;
    if (__builtin_mul_overflow(ns, int64_t{10}, &ns) || __builtin_add_overflow(ns, int64_t{c - '0'}, &ns))
      return std::nullopt;
  }
  for (int i = std::max(decimals, 0); i < 3; ++i) {
    if (__builtin_mul_overflow(ns, int64_t{10}, &ns)) return std::nullopt;
  }
  return negative ? -ns : ns;
}

std::string replaceDamagedText(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x80) {
      out += c < 0x20 && c != '\n' && c != '\t' ? ' ' : static_cast<char>(c);
      if (c == '\t') out.back() = ' ';
      ++i;
      continue;
    }
    const size_t length = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    if (c >= 0xc2 && c < 0xf5 && i + length <= text.size() && simdjson::validate_utf8(text.substr(i, length))) {
      out += text.substr(i, length);
      i += length;
    } else {
      out += "?";
      ++i;
    }
  }
  return out;
}

}  // namespace fusebox::importing
