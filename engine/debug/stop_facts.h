#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "engine/debug/site.h"

namespace fusebox::debug {

/// What a condition may name at a place that might stop: local variables, buffers of a launch, then what the stop's message would
/// say (line, function, names, kernel, …). Asked on the thread that is there, and only for what is named.
class StopFacts {
 public:
  StopFacts(const Event& event, Site& site) : event_(event), site_(site) {}
  std::optional<nlohmann::json> operator()(const std::string& name);

 private:
  void add(const char* question);
  void addFields();

  const Event& event_;
  Site& site_;
  std::map<std::string, nlohmann::json> known_;
  bool isKnown_ = false;
};

}  // namespace fusebox::debug
