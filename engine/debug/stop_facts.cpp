#include "engine/debug/stop_facts.h"

#include <algorithm>

#include "engine/debug/breakpoint.h"
#include "engine/support/condition.h"
#include "engine/support/message_fields.h"

namespace fusebox::debug {
namespace {

using control::textField;
using nlohmann::json;

json tensorFact(const json& row) {
  json fact{{"dtype", dtypeInPython(textField(row, "dtype"))}};
  for (const auto& [field, name] : {std::pair{"sizes", "shape"}, {"strides", "strides"}, {"device", "device"}, {"role", "role"}, {"first_values", "first"}})
    if (const auto found = row.find(field); found != row.end()) fact[name] = *found;
  return fact;
}

/// The value of a local variable: what its text says where that is a literal of Python, else its type and text.
json valueFact(const json& row) {
  if (row.contains("sizes")) return tensorFact(row);
  const std::string text = textField(row, "value");
  if (const auto literal = Condition::parse(text)) {
    if (auto value = literal->value([](const std::string&) { return std::optional<json>(); })) return std::move(*value);
  }
  return json{{"type", textField(row, "type")}, {"text", text}};
}

}  // namespace

std::optional<json> StopFacts::operator()(const std::string& name) {
  if (!std::exchange(isKnown_, true)) {
    const auto questions = site_.questions();
    for (const char* question : {"locals", "arguments"})
      if (std::find(questions.begin(), questions.end(), question) != questions.end()) add(question);
    addFields();
  }
  const auto found = known_.find(name);
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

void StopFacts::add(const char* question) {
  const auto rows = site_.answer(question);
  if (!rows || !rows->is_array()) return;
  for (const json& row : *rows) {
    const std::string name = textField(row, "name");
    if (textField(row, "value") != "(unbound)") known_.emplace(name, valueFact(row));
  }
}

void StopFacts::addFields() {
  known_.emplace("kind", debug::name(event_.kind));
  known_.emplace("line", event_.line);
  if (event_.file) known_.emplace("file", event_.file);
  json names = json::array();
  for (const std::string& name : event_.names) names.push_back(name);
  known_.emplace("names", std::move(names));
  known_.emplace("title", site_.title());
  const json detail = site_.detail();
  if (detail.is_object())
    for (const auto& [name, value] : detail.items()) known_.emplace(name, value);
}

}  // namespace fusebox::debug
