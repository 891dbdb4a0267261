#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "profiler/importers/byte_stream.h"

namespace fusebox::importing {

/// One record of PyTorch's structured log (torch/_logging/_internal.py, trace_structured).
struct TraceRecord {
  nlohmann::json fields;  ///< the JSON object of the record's line
  std::string key;        ///< what it is about: dynamo_start, artifact, chromium_event, …
  std::string payload;
  bool hasPayload = false;
  std::string damage;   ///< empty, or what is wrong with it
  int64_t localNs = 0;  ///< since the beginning of the year, local time (log), or Unix time (raw.jsonl)
  int64_t process = 0;
  int64_t line = 0;  ///< of the file

  const nlohmann::json& about() const;                      ///< the value of `key`
  std::optional<int64_t> integer(const char* field) const;  ///< of `fields`
};

/// What was in a file that is no record.
struct TraceFileDamage {
  int64_t strayLines = 0;     ///< lines that are neither record nor payload
  int64_t brokenRecords = 0;  ///< records whose JSON cannot be read
  int64_t orphanLines = 0;    ///< payload lines without a record
  std::string firstStray, firstBroken, container;
  bool cut = false;  ///< the last line has no end
};

/// Whether `line` begins like a record of the log: "V1121 09:17:11.850000 1192 torch/…:2126] {".
bool isTraceRecordLine(std::string_view line);
/// Whether the first bytes are a TORCH_TRACE log, or tlparse's raw.jsonl.
bool looksLikeTraceLog(std::string_view head);
bool looksLikeRawJsonl(std::string_view head);

/// Records of a log, one after the other. Payloads are checked against their MD5.
class TraceLogReader {
 public:
  static Result<std::unique_ptr<TraceLogReader>> open(const std::string& path);
  bool next(TraceRecord& record);
  const TraceFileDamage& damage() const { return damage_; }
  double fraction() const { return stream_->fraction(); }

 private:
  explicit TraceLogReader(std::unique_ptr<ByteStream> stream);
  bool header(TraceRecord& record, std::string_view line);
  void finish(TraceRecord& record);
  std::unique_ptr<ByteStream> stream_;
  LineReader lines_;
  TraceFileDamage damage_;
  std::string pendingLine_;
  int64_t lineNumber_ = 0;
  bool havePending_ = false, payloadCut_ = false;
  size_t payloadLines_ = 0;
};

/// Records of tlparse's raw.jsonl; payloads are read from the files beside it.
class RawJsonlReader {
 public:
  static Result<std::unique_ptr<RawJsonlReader>> open(const std::string& path);
  bool next(TraceRecord& record);
  const TraceFileDamage& damage() const { return damage_; }
  double fraction() const { return stream_->fraction(); }
  /// The table that stack frames point into.
  const std::vector<std::string>& strings() const { return strings_; }

 private:
  RawJsonlReader(std::string folder, std::unique_ptr<ByteStream> stream);
  void payload(TraceRecord& record);
  std::string folder_;
  std::unique_ptr<ByteStream> stream_;
  LineReader lines_;
  TraceFileDamage damage_;
  std::vector<std::string> strings_;
  int64_t lineNumber_ = 0;
};

/// Bytes that are no UTF-8 replaced; `changed` says whether there were any. Line feeds and tabs stay.
std::string validUtf8(std::string_view text, bool& changed);

}  // namespace fusebox::importing
