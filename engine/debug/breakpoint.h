#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "engine/debug/site.h"
#include "engine/support/condition.h"

namespace fusebox::debug {

/// "graph_break"; kinds by the names that breakpoints and stops have outside.
const char* name(Kind kind);
std::optional<Kind> kindNamed(const std::string& name);

/// Where to stop. Empty fields match everything.
struct Breakpoint {
  int64_t id = 0;
  Kind kind = Kind::Line;
  std::optional<When> when;  ///< Pass, KernelCompile
  std::string file;          ///< whole path, or its last parts
  int line = 0;              ///< 0 with a `text`: where a function of that name begins
  std::string text;          ///< compared with the event's names; `*` stands for anything
  bool enabled = true, once = false;
  int64_t hits = 0, tag = 0;  ///< `tag`: whoever set it knows it by this
  int64_t ignore = 0;         ///< so many further matches pass without a stop
  std::shared_ptr<const Condition> condition;  ///< only where this holds; null: always

  /// All but the condition.
  bool matches(const Event& event) const;
};

/// InvalidArgument says what is wrong with a description that came over the wire.
Result<Breakpoint> breakpointFrom(const nlohmann::json& description);
nlohmann::json toJson(const Breakpoint& breakpoint);

/// `pattern` with `*` against a whole name.
bool matchesPattern(std::string_view pattern, std::string_view name);
/// Whether `path` is the file that a person calls `wanted`.
bool isSameFile(std::string_view path, std::string_view wanted);

}  // namespace fusebox::debug
