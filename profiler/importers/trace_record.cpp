#include "profiler/importers/trace_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>

#include "engine/support/bounded_json.h"
#include "profiler/importers/chrome_event.h"
#include "profiler/importers/md5.h"

namespace fusebox::importing {
namespace {

constexpr size_t kMostLineBytes = size_t{64} << 20;
constexpr size_t kMostPayloadBytes = size_t{256} << 20;

bool isContext(const std::string& key) {
  static const std::set<std::string> kContext{
      "rank",  "compiled_autograd_id", "frame_id",  "frame_compile_id", "attempt",  "has_payload",
      "stack", "payload_filename",     "timestamp", "thread",           "pathname", "lineno"};
  return kContext.contains(key);
}

// The member that says what the record is about. `stack` is one only where there is no other.
std::string keyOf(const nlohmann::json& fields) {
  for (const auto& [key, value] : fields.items()) {
    if (!isContext(key)) return key;
  }
  return fields.contains("stack") ? "stack" : "";
}

bool digits(std::string_view text, size_t at, size_t count, int64_t& value) {
  if (at + count > text.size()) return false;
  const auto parsed = std::from_chars(text.data() + at, text.data() + at + count, value);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + at + count && text[at] != '-';
}

/// "V1121 09:17:11.850000 1192 torch/_dynamo/utils.py:2126] " and what follows it.
struct Prefix {
  int64_t localNs = 0, process = 0;
  size_t jsonStart = 0;
};
bool readPrefix(std::string_view line, Prefix& out) {
  if (line.size() < 30 || std::string_view("VDIWEC").find(line[0]) == std::string_view::npos) return false;
  int64_t month = 0, day = 0, hour = 0, minute = 0, second = 0, micro = 0;
  if (!digits(line, 1, 2, month) || !digits(line, 3, 2, day) || line[5] != ' ' || !digits(line, 6, 2, hour) ||
      line[8] != ':' || !digits(line, 9, 2, minute) || line[11] != ':' || !digits(line, 12, 2, second) ||
      line[14] != '.' || !digits(line, 15, 6, micro)) {
    return false;
  }
  if (month < 1 || month > 12 || day < 1 || day > 31) return false;
  static constexpr std::array<int64_t, 12> kDaysBefore{0,   31,  60,  91,  121, 152,
                                                       182, 213, 244, 274, 305, 335};  // of a leap year
  const int64_t days = kDaysBefore[static_cast<size_t>(month - 1)] + day - 1;
  out.localNs = (((days * 24 + hour) * 60 + minute) * 60 + second) * 1'000'000'000 + micro * 1000;
  size_t at = 21;
  while (at < line.size() && line[at] == ' ') ++at;
  const size_t pidStart = at;
  while (at < line.size() && line[at] >= '0' && line[at] <= '9' && at - pidStart < 18) ++at;
  if (at == pidStart || !digits(line, pidStart, at - pidStart, out.process)) return false;
  const size_t close = line.find("] ", at);
  if (close == std::string_view::npos) return false;
  out.jsonStart = close + 2;
  return true;
}

}  // namespace

const nlohmann::json& TraceRecord::about() const {
  static const nlohmann::json kNothing = nlohmann::json::object();
  const auto found = fields.find(key);
  return found == fields.end() ? kNothing : *found;
}

std::optional<int64_t> TraceRecord::integer(const char* field) const {
  const auto found = fields.find(field);
  if (found == fields.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<int64_t>();
}

bool isTraceRecordLine(std::string_view line) {
  Prefix prefix;
  return readPrefix(line, prefix) && prefix.jsonStart < line.size() && line[prefix.jsonStart] == '{';
}

bool looksLikeTraceLog(std::string_view head) {
  for (int lines = 0; lines < 200 && !head.empty(); ++lines) {
    const size_t end = head.find('\n');
    if (isTraceRecordLine(head.substr(0, end))) return true;
    head = end == std::string_view::npos ? std::string_view() : head.substr(end + 1);
  }
  return false;
}

bool looksLikeRawJsonl(std::string_view head) {
  const std::string_view line = head.substr(0, head.find('\n'));
  return line.starts_with("{\"string_table\":");
}

std::string validUtf8(std::string_view text, bool& changed) {
  changed = false;
  std::string out;
  size_t good = 0;
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    size_t length = c < 0x80                ? 1
                    : c >= 0xc2 && c < 0xe0 ? 2
                    : c >= 0xe0 && c < 0xf0 ? 3
                    : c >= 0xf0 && c < 0xf5 ? 4
                                            : 0;
    for (size_t k = 1; k < length; ++k) {
      if (i + k >= text.size() || (static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) length = 0;
    }
    if (length == 3 && ((c == 0xe0 && static_cast<unsigned char>(text[i + 1]) < 0xa0) ||
                        (c == 0xed && static_cast<unsigned char>(text[i + 1]) > 0x9f)))
      length = 0;
    if (length == 4 && ((c == 0xf0 && static_cast<unsigned char>(text[i + 1]) < 0x90) ||
                        (c == 0xf4 && static_cast<unsigned char>(text[i + 1]) > 0x8f)))
      length = 0;
    if (length > 0 && c != 0) {
      i += length;
      continue;
    }
    changed = true;
    out.append(text, good, i - good);
    out += "\xef\xbf\xbd";
    good = ++i;
  }
  out.append(text, good);
  return out;
}

TraceLogReader::TraceLogReader(std::unique_ptr<ByteStream> stream)
    : stream_(std::move(stream)), lines_(*stream_, kMostLineBytes) {}

Result<std::unique_ptr<TraceLogReader>> TraceLogReader::open(const std::string& path) {
  auto stream = ByteStream::open(path);
  if (!stream) return tl::unexpected(stream.error());
  return std::unique_ptr<TraceLogReader>(new TraceLogReader(std::move(*stream)));
}

// False: the line is no record, or one that cannot be read; both are counted.
bool TraceLogReader::header(TraceRecord& record, std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  Prefix prefix;
  size_t start = 0;
  // What another thread printed may stand before a record on its line.
  while (!readPrefix(line.substr(start), prefix) || prefix.jsonStart >= line.size() - start) {
    start = line.find_first_of("VDIWEC", start + 1);
    if (start == std::string_view::npos || start > 4096) {
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) return false;
      if (++damage_.strayLines == 1) damage_.firstStray = fmt::format("line {}: {}", lineNumber_, line.substr(0, 120));
      return false;
    }
  }
  bool changed = false;
  const std::string json = validUtf8(line.substr(start + prefix.jsonStart), changed);
  record = {};
  record.fields = parseBounded(json);
  if (!record.fields.is_object() || record.fields.empty()) {
    if (++damage_.brokenRecords == 1)
      damage_.firstBroken = fmt::format("line {}: {}", lineNumber_, json.substr(0, 120));
    record.fields = nlohmann::json::object();
    record.key = "broken";
    record.payload = json;
    record.damage = "its JSON cannot be read";
  } else {
    record.key = keyOf(record.fields);
  }
  if (changed) record.damage = "it holds bytes that are no UTF-8";
  record.localNs = prefix.localNs;
  record.process = prefix.process;
  record.line = lineNumber_;
  record.hasPayload = record.fields.contains("has_payload");
  return true;
}

void TraceLogReader::finish(TraceRecord& record) {
  if (payloadCut_) record.damage = "its payload is longer than 256 MB and was cut";
  if (record.key == "broken") return;
  if (!record.hasPayload) {
    if (payloadLines_ > 0) {
      damage_.orphanLines += static_cast<int64_t>(payloadLines_);
      record.damage = "payload lines follow although it announces none";
    }
    return;
  }
  const auto& wanted = record.fields["has_payload"];
  const std::string expected = wanted.is_string() ? wanted.get<std::string>() : "";
  if (!payloadCut_ && md5(record.payload) != expected) {
    std::string unix = record.payload;
    std::erase(unix, '\r');
    if (md5(unix) == expected) {
      record.payload = std::move(unix);
    } else {
      record.damage = "its payload is not what was written (MD5 differs)";
    }
  }
  bool changed = false;
  std::string valid = validUtf8(record.payload, changed);
  if (changed) record.payload = std::move(valid);
}

bool TraceLogReader::next(TraceRecord& record) {
  bool found = false;
  payloadLines_ = 0;
  payloadCut_ = false;
  std::string line;
  while (havePending_ || lines_.next(line)) {
    if (havePending_) {
      line = std::move(pendingLine_);
      havePending_ = false;
    } else {
      ++lineNumber_;
      if (!lines_.lastWasEnded()) damage_.cut = true;
    }
    if (line.starts_with('\t')) {
      if (!found) {
        ++damage_.orphanLines;
        continue;
      }
      if (record.payload.size() + line.size() > kMostPayloadBytes || lines_.lastWasCut()) {
        payloadCut_ = true;
        continue;
      }
      if (payloadLines_++ > 0 || record.key == "broken") record.payload += '\n';
      record.payload.append(line, 1);
      continue;
    }
    if (line.empty() || line == "\r") continue;
    if (found) {
      pendingLine_ = std::move(line);
      havePending_ = true;
      break;
    }
    found = header(record, line);
  }
  damage_.container = stream_->damage();
  if (found) finish(record);
  return found;
}

RawJsonlReader::RawJsonlReader(std::string folder, std::unique_ptr<ByteStream> stream)
    : folder_(std::move(folder)), stream_(std::move(stream)), lines_(*stream_, kMostLineBytes) {}

Result<std::unique_ptr<RawJsonlReader>> RawJsonlReader::open(const std::string& path) {
  auto stream = ByteStream::open(path);
  if (!stream) return tl::unexpected(stream.error());
  return std::unique_ptr<RawJsonlReader>(
      new RawJsonlReader(std::filesystem::path(path).parent_path().string(), std::move(*stream)));
}

// Only files inside the folder are read: the name comes from outside.
void RawJsonlReader::payload(TraceRecord& record) {
  namespace fs = std::filesystem;
  const auto name = record.fields.find("payload_filename");
  record.hasPayload = record.fields.contains("has_payload") || name != record.fields.end();
  if (name == record.fields.end() || !name->is_string()) {
    if (record.hasPayload) record.damage = "its payload is not in this file";
    return;
  }
  std::error_code error;
  const fs::path base = fs::canonical(folder_.empty() ? "." : folder_, error);
  const fs::path file = fs::canonical(base / name->get<std::string>(), error);
  const auto inside = std::mismatch(base.begin(), base.end(), file.begin(), file.end()).first == base.end();
  if (error || !inside || !fs::is_regular_file(file, error)) {
    record.damage = "its payload file is missing";
    return;
  }
  if (fs::file_size(file, error) > kMostPayloadBytes) {
    record.damage = "its payload is longer than 256 MB and was left out";
    return;
  }
  std::ifstream in(file, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  bool changed = false;
  record.payload = validUtf8(bytes, changed);
}

namespace {

// "2026-11-21T09:17:11.867000Z" as Unix time.
int64_t timeStamp(const nlohmann::json& fields) {
  const auto found = fields.find("timestamp");
  if (found == fields.end() || !found->is_string()) return 0;
  const auto& text = found->get_ref<const std::string&>();
  int64_t year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, micro = 0;
  if (!digits(text, 0, 4, year) || !digits(text, 5, 2, month) || !digits(text, 8, 2, day) ||
      !digits(text, 11, 2, hour) || !digits(text, 14, 2, minute) || !digits(text, 17, 2, second)) {
    return 0;
  }
  (void)digits(text, 20, 6, micro);
  const std::chrono::sys_days date =
      std::chrono::year(static_cast<int>(year)) / static_cast<unsigned>(month) / static_cast<unsigned>(day);
  return ((int64_t{date.time_since_epoch().count()} * 24 + hour) * 60 + minute) * 60'000'000'000 +
         second * 1'000'000'000 + micro * 1000;
}

}  // namespace

bool RawJsonlReader::next(TraceRecord& record) {
  std::string line;
  while (lines_.next(line)) {
    ++lineNumber_;
    if (!lines_.lastWasEnded()) damage_.cut = true;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    bool changed = false;
    const std::string json = validUtf8(line, changed);
    record = {};
    record.fields = parseBounded(json);
    if (!record.fields.is_object() || record.fields.empty()) {
      if (++damage_.brokenRecords == 1)
        damage_.firstBroken = fmt::format("line {}: {}", lineNumber_, json.substr(0, 120));
      continue;
    }
    if (const auto table = record.fields.find("string_table"); table != record.fields.end() && table->is_array()) {
      for (const auto& entry : *table) strings_.push_back(entry.is_string() ? entry.get<std::string>() : "");
      continue;
    }
    record.key = keyOf(record.fields);
    record.localNs = timeStamp(record.fields);
    record.process = record.integer("thread").value_or(0);
    record.line = lineNumber_;
    payload(record);
    damage_.container = stream_->damage();
    return true;
  }
  damage_.container = stream_->damage();
  return false;
}

}  // namespace fusebox::importing
