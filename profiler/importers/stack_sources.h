#pragma once

#include <string>

#include "profiler/importers/session_builder.h"

namespace fusebox::importing {

/// Lists the user's files that recorded Python stacks name, each with its text where the file lies here, whose functions then all begin
/// at the lines that the stacks say. Profilers cut the folders of `sys.path` off: a relative name is looked for in `folder`, where the
/// trace lies, and where this process runs.
Result<void> addStackSources(SessionBuilder& session, const std::string& folder);

/// Whether `function` ("forward", "<lambda>") can begin at that line (from 1) of a text: with its `def`, or with a decorator above it.
bool beginsAt(std::string_view text, int64_t line, std::string_view function);

}  // namespace fusebox::importing
