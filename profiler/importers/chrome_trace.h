#pragma once

#include <string>
#include <string_view>

#include "profiler/importers/import_context.h"
#include "profiler/importers/session_builder.h"

namespace fusebox::importing {

/// Whether the first bytes are a Chrome trace's: an array of events or an object with `traceEvents`.
bool looksLikeChromeTrace(std::string_view head);

/// Chrome's trace event format in JSON, as PyTorch's profiler (Kineto), Chromium and Fusebox write it, plain or gzip.
/// Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU and, for Kineto's arguments,
/// kineto/libkineto/src/output_json.cpp. Kernels and copies become launches on a row per device stream.
Result<void> importChromeTrace(const std::string& path, SessionBuilder& session, ImportProgress* progress);

}  // namespace fusebox::importing
