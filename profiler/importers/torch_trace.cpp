#include "profiler/importers/torch_trace.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "engine/support/bounded_json.h"
#include "profiler/importers/json_slices.h"
#include "profiler/importers/torch_trace_import.h"

namespace fusebox::importing {
namespace fs = std::filesystem;
namespace {

constexpr const char* kLogFormat = "TORCH_TRACE log";
constexpr int64_t kQuarterHourNs = int64_t{900} * 1'000'000'000;

/// The files of a folder that hold records, by name.
std::vector<std::string> traceFiles(const std::string& folder) {
  std::vector<std::string> logs, all;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (!entry.is_regular_file(error)) continue;
    const std::string name = entry.path().filename().string();
    if (name == "raw.jsonl") return {entry.path().string()};  // tlparse's output: the same records as its raw.log
    if (name.starts_with("dedicated_log_torch_trace"))
      logs.push_back(entry.path().string());
    else if (name.ends_with(".log") || name.ends_with(".log.gz"))
      all.push_back(entry.path().string());
  }
  if (logs.empty()) {
    for (const auto& file : all) {
      const auto head = firstBytes(file, size_t{64} << 10);
      if (head && looksLikeTraceLog(*head)) logs.push_back(file);
    }
  }
  std::sort(logs.begin(), logs.end());
  return logs;
}

// Records carry local time without a year; the first span carries Unix time. Time zones are multiples of a quarter of
// an hour.
std::optional<int64_t> unixShift(const std::string& path) {
  auto reader = TraceLogReader::open(path);
  if (!reader) return std::nullopt;
  TraceRecord record;
  while ((*reader)->next(record)) {
    if (record.key != "chromium_event") continue;
    const auto event = parseBounded(record.payload);
    if (!event.is_object() || !event.contains("ts") || !event["ts"].is_number()) continue;
    const double us = event["ts"].get<double>();
    if (!(us > 0 && us < 9e15)) continue;
    const int64_t difference = static_cast<int64_t>(us * 1e3) - record.localNs;
    return (difference + kQuarterHourNs / 2) / kQuarterHourNs * kQuarterHourNs;
  }
  return std::nullopt;
}

template <class Reader>
Result<void> readAll(Reader& reader, TorchTraceImport& import, SessionBuilder& session, ImportProgress* progress,
                     double done, double share) {
  TraceRecord record;
  while (reader.next(record)) {
    import.take(record);
    if (auto on = checkpoint(progress, kLogFormat, done + share * reader.fraction()); !on) return on;
    if (auto good = session.good(); !good) return good;
  }
  import.endFile(reader.damage());
  return {};
}

Result<void> readLog(const std::string& path, TorchTraceImport& import, SessionBuilder& session,
                     ImportProgress* progress, double done, double share) {
  const auto shift = unixShift(path);
  if (!shift)
    session.loss("clock", 1,
                 fs::path(path).filename().string() +
                     ": no record carries the date; times count from the beginning of the year");
  auto reader = TraceLogReader::open(path);
  if (!reader) return tl::unexpected(reader.error());
  import.beginFile(fs::path(path).filename().string(), shift.value_or(0));
  return readAll(**reader, import, session, progress, done, share);
}

// The spans, which tlparse writes beside its records.
void readSpans(const fs::path& file, TorchTraceImport& import, SessionBuilder& session) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return;
  auto stream = ByteStream::open(file.string());
  if (!stream) return session.loss("spans", 1, "chromium_events.json cannot be read");
  JsonSlices slices(**stream);
  for (auto slice = slices.next(); slice.kind != JsonSlices::Kind::End; slice = slices.next()) {
    if (slice.kind == JsonSlices::Kind::Value) continue;
    const auto event = slice.kind == JsonSlices::Kind::Event ? parseBounded(slice.text) : nlohmann::json();
    if (!event.is_object()) {
      session.loss("spans", 1, "an event of chromium_events.json is damaged");
      if (slice.kind == JsonSlices::Kind::Event) slices.resynchronise();
      continue;
    }
    TraceRecord record;
    record.key = "chromium_event";
    record.fields = {{"chromium_event", nlohmann::json::object()}};
    const auto* arguments = event.contains("args") ? &event["args"] : nullptr;
    const std::string id = arguments && arguments->is_object() && arguments->contains("compile_id") &&
                                   (*arguments)["compile_id"].is_string()
                               ? (*arguments)["compile_id"].get<std::string>()
                               : "";
    int frame = 0, compile = 0;
    if (std::sscanf(id.c_str(), "%d/%d", &frame, &compile) == 2)
      record.fields["frame_id"] = frame, record.fields["frame_compile_id"] = compile;
    if (event.contains("ts") && event["ts"].is_number()) {
      const double us = event["ts"].get<double>();
      if (us > 0 && us < 9e15) record.localNs = static_cast<int64_t>(us * 1e3);
    }
    record.payload = event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    record.hasPayload = true;
    record.process = import.lastProcess();
    if (record.localNs > 0) import.take(record);
  }
  if (!slices.ending().empty()) session.loss("spans", 1, "chromium_events.json: " + slices.ending());
}

Result<void> readJsonl(const std::string& path, TorchTraceImport& import, SessionBuilder& session,
                       ImportProgress* progress) {
  auto reader = RawJsonlReader::open(path);
  if (!reader) return tl::unexpected(reader.error());
  import.beginFile(fs::path(path).filename().string(), 0);
  TraceRecord record;
  while ((*reader)->next(record)) {
    if (import.records() == 0 || (*reader)->strings().size() != import.stringCount())
      import.setStrings((*reader)->strings());
    import.take(record);
    if (auto on = checkpoint(progress, kLogFormat, (*reader)->fraction()); !on) return on;
    if (auto good = session.good(); !good) return good;
  }
  import.endFile((*reader)->damage());
  readSpans(fs::path(path).parent_path() / "chromium_events.json", import, session);
  return {};
}

}  // namespace

bool isTorchTraceFolder(const std::string& path) { return !traceFiles(path).empty(); }

Result<void> importTorchTrace(const std::string& path, SessionBuilder& session, ImportProgress* progress) {
  std::error_code error;
  const std::vector<std::string> files =
      fs::is_directory(path, error) ? traceFiles(path) : std::vector<std::string>{path};
  TorchTraceImport import(session);
  for (size_t i = 0; i < files.size(); ++i) {
    const auto head = firstBytes(files[i], size_t{64} << 10);
    if (!head) return tl::unexpected(head.error());
    // Every record names the Python file that wrote it.
    if (i == 0) session.info("engine", std::string(head->find("fusebox/_structured_trace.py") == std::string::npos ? "stock" : "fusebox"));
    const double share = 1.0 / static_cast<double>(files.size());
    auto read = looksLikeRawJsonl(*head)
                    ? readJsonl(files[i], import, session, progress)
                    : readLog(files[i], import, session, progress, static_cast<double>(i) * share, share);
    if (!read) return read;
  }
  if (import.records() == 0) return fail(ErrorCode::Corrupt, "the log holds no readable record", path);
  import.finish();
  session.info("imported.records", import.records());
  return session.good();
}

}  // namespace fusebox::importing
