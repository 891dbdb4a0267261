#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace fusebox::debugging {

/// Whether a Python text defines a function of that name, which may be qualified ("Model.forward": the last part counts) and hold `*`.
bool definesFunction(std::string_view text, std::string_view name);

/// What speaks against a breakpoint on a function: the script that is debugged defines none of its name, so that it can only be one of
/// another file. Empty for breakpoints of other kinds, and where there is no script that can be read.
std::string functionDoubt(const nlohmann::json& breakpoint, const std::string& script);

}  // namespace fusebox::debugging
