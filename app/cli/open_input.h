#pragma once

#include <memory>
#include <string>

#include "profiler/session/reader.h"

namespace fusebox::cli {

/// The session of a FILE argument: a session, or anything that is imported into one. Says how far a long import is on
/// stderr when that is a terminal.
Result<std::unique_ptr<session::Reader>> openInput(const std::string& file);

}  // namespace fusebox::cli
