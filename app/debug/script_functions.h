#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace fusebox::debugging {

/// The functions that a Python text defines, by their qualified names ("Model.forward", "outer.<locals>.inner"), in its order. The text is read, not
/// run: what stands in strings defines nothing, what only one branch defines is there.
std::vector<std::string> functionsIn(std::string_view text);

/// Whether a breakpoint on `pattern`, which may hold `*`, is one on a function of that qualified name: as the debugger compares it.
bool namesFunction(std::string_view pattern, std::string_view qualified);

/// Whether a Python text defines a function of that name.
bool definesFunction(std::string_view text, std::string_view name);

/// Up to three functions of other names that may have been meant: of the same name in another class, or spelt nearly so. The nearest first.
std::vector<std::string> nearestFunctions(const std::vector<std::string>& functions, std::string_view name);

/// Whether a breakpoint names a function, not a place or an event.
bool isOnFunction(const nlohmann::json& breakpoint);

/// What speaks against a breakpoint on a function: the script that is debugged defines none of its name, so that it can only be one of
/// another file; with the nearest names that it does define. Empty for breakpoints of other kinds, and where there is no script that can be read.
std::string functionDoubt(const nlohmann::json& breakpoint, const std::string& script);

}  // namespace fusebox::debugging
