#include "profiler/importers/formats.h"

#include <filesystem>

#include "profiler/importers/byte_stream.h"
#include "profiler/importers/chrome_trace.h"
#include "profiler/importers/compile_debug.h"
#include "profiler/importers/exported_program.h"
#include "profiler/importers/nsight_sqlite.h"
#include "profiler/importers/perfetto_trace.h"
#include "profiler/importers/torch_script.h"
#include "profiler/importers/torch_trace.h"
#include "profiler/importers/trace_record.h"

namespace fusebox::importing {
namespace {

constexpr size_t kHeadBytes = size_t{64} << 10;

constexpr Format kFormats[] = {
    {"TORCH_TRACE log or folder, tlparse's raw.jsonl",
     [](const Probe& p) {
       return p.isFolder ? isTorchTraceFolder(p.path) : looksLikeTraceLog(p.head) || looksLikeRawJsonl(p.head);
     },
     importTorchTrace},
    {"Chrome or Kineto trace (JSON, also .gz)",
     [](const Probe& p) { return !p.isFolder && looksLikeChromeTrace(p.head); }, importChromeTrace},
    {"Nsight Systems SQLite export (also .gz)", [](const Probe& p) { return !p.isFolder && isNsightExport(p.path, p.head); },
     importNsightExport},
    {"Perfetto trace (protobuf, also .gz)",
     [](const Probe& p) { return !p.isFolder && looksLikePerfettoTrace(p.head); }, importPerfettoTrace},
    {"TORCH_COMPILE_DEBUG folder", [](const Probe& p) { return p.isFolder && isCompileDebugFolder(p.path); },
     importCompileDebug},
    {"exported program (.pt2)", [](const Probe& p) { return !p.isFolder && isExportedProgram(p.path, p.head); }, importExportedProgram},
    {"TorchScript program (.pt)", [](const Probe& p) { return !p.isFolder && isTorchScript(p.path, p.head); }, importTorchScript},
};

}  // namespace

std::span<const Format> formats() { return kFormats; }

const Format* recognise(const Probe& probe) {
  for (const Format& format : kFormats) {
    if (format.sniff(probe)) return &format;
  }
  return nullptr;
}

Result<Probe> probe(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return fail(ErrorCode::NotFound, "there is no such file", path);
  Probe found{path, std::filesystem::is_directory(status), {}};
  if (found.isFolder) return found;
  if (!std::filesystem::is_regular_file(status)) return fail(ErrorCode::Corrupt, "this is not a regular file", path);
  auto head = firstBytes(path, kHeadBytes);
  if (!head) return tl::unexpected(head.error());
  found.head = std::move(*head);
  return found;
}

}  // namespace fusebox::importing
