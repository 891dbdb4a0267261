#include "engine/support/bounded_json.h"

namespace fusebox {
namespace {

using nlohmann::json;
using Event = json::parse_event_t;

/// Heap bytes of what an event of the parser makes, with what the allocator adds.
size_t bytesOf(Event event, const json& value) {
  constexpr size_t kText = 48, kContainer = 64, kMapNode = 96;
  switch (event) {
    case Event::object_start:
    case Event::array_start: return sizeof(json) + kContainer;
    case Event::key: return kMapNode + value.get_ref<const std::string&>().size();
    case Event::value: return sizeof(json) + (value.is_string() ? kText + value.get_ref<const std::string&>().size() : 0);
    default: return 0;
  }
}

}  // namespace

json parseBounded(std::string_view text, JsonFault* fault, const JsonBounds& bounds) {
  JsonFault found = JsonFault::None;
  size_t bytes = 0;
  json value = json::parse(
      text.begin(), text.end(),
      [&](int depth, Event event, json& parsed) {
        if (found == JsonFault::None && depth > bounds.nesting) found = JsonFault::TooDeep;
        if (found == JsonFault::None && (bytes += bytesOf(event, parsed)) > bounds.bytes) found = JsonFault::TooLarge;
        return found == JsonFault::None;
      },
      false);
  if (found == JsonFault::None && value.is_discarded()) found = JsonFault::Damaged;
  if (fault) *fault = found;
  return found == JsonFault::None ? value : json(json::value_t::discarded);
}

}  // namespace fusebox
