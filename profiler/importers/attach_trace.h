#pragma once

#include <string>

#include "profiler/importers/import_context.h"

namespace fusebox::importing {

/// Adds what a foreign file tells about a run (a folder of TORCH_TRACE logs) to the finished session that was recorded of the same
/// run: frames, compiles, graphs, guards, kernels and the rest come from the file, times are moved to the session's clock, ids
/// behind the session's own. Facts of the session stay as they are. Source files are read from disk where they still are what
/// the file quotes. Errors: the importers', Io; the session is unchanged then.
Result<void> attachTrace(const std::string& session, const std::string& trace, ImportProgress* progress = nullptr);

}  // namespace fusebox::importing
