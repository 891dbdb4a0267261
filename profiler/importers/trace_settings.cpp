#include "profiler/importers/trace_settings.h"

#include "engine/support/bounded_json.h"
#include "profiler/importers/trace_json.h"

namespace fusebox::importing {
namespace {

struct Module {
  const char *key, *prefix;
};
constexpr Module kModules[] = {{"dynamo_config", ""}, {"inductor_config", "inductor."}};
constexpr size_t kMostValues = 8;

/// As Python prints it, so that settings of a session that was recorded here compare with it.
std::string valueText(const nlohmann::json& value) {
  if (value.is_null()) return "None";
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_string()) return value.get<std::string>();
  return value.is_number() ? value.dump() : std::string();
}

bool isPrivate(const std::string& name) {
  return name.starts_with('_') || name.find("._") != std::string::npos || name == "TYPE_CHECKING" || name.ends_with("TESTING_ONLY");
}

}  // namespace

void TraceSettings::note(const nlohmann::json& metrics) {
  for (const auto& [key, prefix] : kModules) {
    const std::string text = stringOf(metrics, key);
    std::string& last = last_[key];
    if (text.empty() || text == last) continue;
    const auto settings = parseBounded(text);
    last = text;
    if (!settings.is_object()) continue;
    for (const auto& [name, value] : settings.items()) {
      if (isPrivate(name) || value.is_structured()) continue;
      auto& values = seen_[prefix + name];
      if (values.size() < kMostValues) values.insert(valueText(value));
    }
  }
}

std::map<std::string, std::string> TraceSettings::values() const {
  std::map<std::string, std::string> out;
  for (const auto& [name, values] : seen_) {
    std::string& text = out[name];
    for (const auto& value : values) text += (text.empty() ? "" : ", ") + value;
  }
  return out;
}

}  // namespace fusebox::importing
