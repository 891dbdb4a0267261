#pragma once

#include <string>
#include <string_view>

#include "profiler/importers/import_context.h"
#include "profiler/importers/session_builder.h"

namespace fusebox::importing {

/// Whether a file is what torch.export.save writes (PyTorch 2.1 and later), by the names in it.
bool isExportedProgram(const std::string& path, std::string_view head);

/// An exported program: each model's graph and the graphs inside it, with shapes (symbolic ones by name), the user's
/// lines, module paths and which inputs are which parameters; from the JSON in the archive, whose schema is
/// torch/_export/serde/schema.py. Weights and pickled sample inputs are not read.
Result<void> importExportedProgram(const std::string& path, SessionBuilder& session, ImportProgress* progress);

}  // namespace fusebox::importing
