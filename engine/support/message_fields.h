#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

/// What both ends of the control channel read in its messages. Nothing is trusted to be there.
namespace fusebox::control {

/// Events that can be stopped at, in the order of debug::Kind.
inline constexpr std::array<std::string_view, 11> kKindNames{"compile", "line",   "graph_break",    "guard_failure", "recompile",
                                                             "pass",    "fusion", "kernel_compile", "kernel_launch", "error",
                                                             "specialise"};

/// Field `key` of an object if it is there and of that type; `json` may be anything.
std::string textField(const nlohmann::json& json, const char* key);
int64_t numberField(const nlohmann::json& json, const char* key, int64_t otherwise = 0);
bool flagField(const nlohmann::json& json, const char* key);

}  // namespace fusebox::control
