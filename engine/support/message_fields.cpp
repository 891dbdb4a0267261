#include "engine/support/message_fields.h"

namespace fusebox::control {
namespace {

using nlohmann::json;

const json* fieldOf(const json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

}  // namespace

std::string textField(const json& object, const char* key) {
  const json* field = fieldOf(object, key);
  return field && field->is_string() ? field->get<std::string>() : std::string();
}

int64_t numberField(const json& object, const char* key, int64_t otherwise) {
  const json* field = fieldOf(object, key);
  return field && field->is_number_integer() ? field->get<int64_t>() : otherwise;
}

bool flagField(const json& object, const char* key) {
  const json* field = fieldOf(object, key);
  return field && field->is_boolean() && field->get<bool>();
}

}  // namespace fusebox::control
