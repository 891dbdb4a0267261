#pragma once

#include <string>
#include <string_view>

#include "profiler/importers/import_context.h"
#include "profiler/importers/session_builder.h"

namespace fusebox::importing {

/// Whether `path`, whose first bytes (decompressed) are `head`, is an SQLite database that Nsight Systems exported, or,
/// compressed, may be one.
bool isNsightExport(const std::string& path, std::string_view head);

/// An SQLite export of Nsight Systems (`nsys export --type sqlite`, also written by `nsys stats`). Tables and columns
/// are looked up by name, since both vary with the version; the schema is in the manual's "SQLite Schema Reference".
/// Compressed ones are unpacked beside the session first. Only plain tables are read; views and triggers of the file are never run.
Result<void> importNsightExport(const std::string& path, SessionBuilder& session, ImportProgress* progress);

}  // namespace fusebox::importing
