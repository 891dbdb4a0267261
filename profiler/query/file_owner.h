#pragma once

#include <string_view>

namespace fusebox::query {

/// Whether a recorded file belongs to Fusebox's own Python package, wherever that was installed or built: the host that starts the
/// program, the wrapper around modules. It is never a part of the user's program.
bool isFuseboxFile(std::string_view file);

}  // namespace fusebox::query
