#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "engine/support/bounded_json.h"
#include "profiler/importers/trace_record.h"

/// Members of a record's JSON whose types drift between versions: what is not of the wanted type counts as absent.
namespace fusebox::importing {

inline const nlohmann::json* member(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}
inline std::string stringOf(const nlohmann::json& object, const char* key) {
  const nlohmann::json* found = member(object, key);
  return found && found->is_string() ? found->get<std::string>() : std::string();
}
inline int64_t integerOf(const nlohmann::json& object, const char* key, int64_t otherwise = 0) {
  const nlohmann::json* found = member(object, key);
  return found && found->is_number_integer() ? found->get<int64_t>() : otherwise;
}
inline std::optional<double> numberOf(const nlohmann::json& object, const char* key) {
  const nlohmann::json* found = member(object, key);
  return found && found->is_number() && std::isfinite(found->get<double>()) ? std::optional(found->get<double>())
                                                                            : std::nullopt;
}
inline nlohmann::json payloadJson(const TraceRecord& r) { return parseBounded(r.payload); }

}  // namespace fusebox::importing
