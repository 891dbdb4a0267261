#include "engine/support/bounded_json.h"

namespace fusebox {

nlohmann::json parseBounded(std::string_view text, bool* isTooDeep, int most) {
  using nlohmann::json;
  bool deep = false;
  json value = json::parse(
      text.begin(), text.end(), [&](int depth, json::parse_event_t, json&) { return !(deep |= depth > most); }, false);
  if (isTooDeep) *isTooDeep = deep;
  return deep ? json(json::value_t::discarded) : value;
}

}  // namespace fusebox
