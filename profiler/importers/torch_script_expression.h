#pragma once

#include <optional>
#include <string_view>

#include "profiler/importers/torch_script_code.h"

namespace fusebox::importing {

/// Parses one whole expression; nullopt where it is none.
std::optional<ScriptExpression> parseScriptExpression(std::string_view text);

}  // namespace fusebox::importing
