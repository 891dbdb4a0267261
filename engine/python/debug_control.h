#pragma once

#include <string>

namespace fusebox::python {

/// Connects this process to a window or console that debugs it (engine/debug). Throws std::runtime_error with the
/// reason.
void attachDebugger(const std::string& path, const std::string& token);

}  // namespace fusebox::python
