#pragma once

#include <string>

#include "profiler/importers/import_context.h"
#include "profiler/importers/session_builder.h"

namespace fusebox::importing {

/// Whether a folder is, or holds, what TORCH_COMPILE_DEBUG=1 makes: torch_compile_debug/run_…/torchinductor/model__….
bool isCompileDebugFolder(const std::string& path);

/// A TORCH_COMPILE_DEBUG folder: of each model the graph before and after Inductor's passes, the kernels of its output
/// code, the buffers of its IR, and every text file as an artifact. Such folders hold no times.
Result<void> importCompileDebug(const std::string& path, SessionBuilder& session, ImportProgress* progress);

}  // namespace fusebox::importing
