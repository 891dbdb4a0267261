#include "profiler/importers/perfetto_trace.h"

#include <fmt/format.h>
#include <zlib.h>

#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "profiler/importers/byte_stream.h"
#include "profiler/importers/chrome_import.h"
#include "profiler/importers/json_slices.h"
#include "profiler/importers/proto_reader.h"

namespace fusebox::importing {
namespace {

using Field = ProtoReader::Field;

constexpr const char* kFormat = "Perfetto trace";
constexpr size_t kMostPacketBytes = size_t{64} << 20, kMostInflatedBytes = size_t{256} << 20;
constexpr size_t kMostInterned = 2'000'000, kMostTracks = 100'000, kMostOpen = 1'000'000, kMostSequences = 10'000;
constexpr int kMostDepth = 16;

// Numbers of fields, from the .proto files.
namespace packet {
constexpr uint32_t kClockSnapshot = 6, kTimestamp = 8, kSequence = 10, kTrackEvent = 11, kInterned = 12, kFlags = 13,
                   kCleared = 41, kDropped = 42, kCompressed = 50, kClock = 58, kDefaults = 59, kTrackDescriptor = 60;
}
namespace event {
constexpr uint32_t kDelta = 1, kCategoryIds = 3, kAnnotation = 4, kLegacy = 6, kType = 9, kNameId = 10, kTrack = 11,
                   kAbsolute = 16, kCategory = 22, kName = 23, kCounter = 30, kOldFlow = 36, kCounterReal = 44,
                   kFlow = 47, kEndingFlow = 48;
constexpr uint64_t kBegin = 1, kEnd = 2, kInstant = 3, kCounterType = 4;
}  // namespace event

/// What a writer has declared for its later packets.
struct Sequence {
  std::unordered_map<uint64_t, std::string> categories, names, annotationNames, annotationValues;
  uint64_t defaultTrack = 0, defaultClock = 0;
  std::map<uint64_t, std::pair<int64_t, int64_t>> clocks;  ///< own clocks: trace time at a snapshot, and the clock's
  std::map<uint64_t, int64_t> units;
  std::map<uint64_t, bool> incremental;
  size_t interned = 0;
};

struct Track {
  std::string name;
  uint64_t parent = 0;
  int64_t pid = 0, tid = 0;
  bool isProcess = false, isCounter = false;
};

class PerfettoImport {
 public:
  PerfettoImport(SessionBuilder& session, ChromeImport& import) : session_(session), import_(import) {}
  void packet(std::string_view bytes, int depth = 0);
  void finish();
  int64_t events() const { return events_; }

 private:
  struct Open {
    std::string name, category, arguments;
    int64_t startNs = 0;
  };
  Sequence& sequence(uint64_t id);
  void clocks(std::string_view bytes, Sequence& writer);
  void interned(std::string_view bytes, Sequence& writer);
  void defaults(std::string_view bytes, Sequence& writer);
  void descriptor(std::string_view bytes);
  void trackEvent(std::string_view bytes, Sequence& writer, int64_t timeNs);
  nlohmann::ordered_json annotation(std::string_view bytes, const Sequence& writer, std::string& name, int depth);
  void compressed(std::string_view bytes, int depth);
  int64_t traceTime(uint64_t clock, int64_t stamp, Sequence& writer);
  void emit(char phase, uint64_t track, const Open& what, int64_t durationNs);
  void flow(uint64_t id, bool start, uint64_t track, int64_t at);
  std::string lookUp(const std::unordered_map<uint64_t, std::string>& table, uint64_t id, const char* what);

  SessionBuilder& session_;
  ChromeImport& import_;
  std::unordered_map<uint64_t, Sequence> sequences_;
  std::unordered_map<uint64_t, Track> tracks_;
  std::unordered_map<uint64_t, std::vector<Open>> open_;
  std::unordered_map<uint64_t, std::pair<uint64_t, int64_t>> flows_;
  std::map<uint32_t, int64_t> otherPackets_;
  int64_t events_ = 0;
  size_t openCount_ = 0;
};

Sequence& PerfettoImport::sequence(uint64_t id) {
  if (sequences_.size() >= kMostSequences && !sequences_.contains(id)) id = 0;
  return sequences_[id];
}

void PerfettoImport::clocks(std::string_view bytes, Sequence& writer) {
  struct Reading {
    uint64_t id = 0;
    int64_t stamp = 0, unit = 1;
    bool incremental = false;
  };
  std::vector<Reading> readings;
  ProtoReader snapshot(bytes);
  for (Field f; snapshot.next(f);) {
    if (f.id != 1 || f.wire != ProtoReader::Wire::Bytes || readings.size() > 100) continue;
    Reading r;
    ProtoReader clock(f.bytes);
    for (Field c; clock.next(c);) {
      if (c.id == 1) r.id = c.number;
      if (c.id == 2) r.stamp = c.integer();
      if (c.id == 3) r.incremental = c.number != 0;
      if (c.id == 4 && c.number > 0 && c.number < 1'000'000'000) r.unit = c.integer();
    }
    readings.push_back(r);
  }
  int64_t trace = -1, unix = -1;
  for (const auto& r : readings) {
    if (r.id == 6) trace = r.stamp;  // BOOTTIME is the time of the trace
    if (r.id == 1) unix = r.stamp;
  }
  if (trace < 0 && !readings.empty()) trace = readings.front().stamp;
  if (trace >= 0 && unix > trace) session_.setUnixBase(unix - trace);
  for (const auto& r : readings) {
    if (writer.clocks.size() > 1000) break;
    writer.clocks[r.id] = {trace, r.stamp};
    writer.units[r.id] = r.unit;
    writer.incremental[r.id] = r.incremental;
  }
}

// Time stamps of other clocks are brought to the trace's by the last snapshot that has both.
int64_t PerfettoImport::traceTime(uint64_t clock, int64_t stamp, Sequence& writer) {
  if (clock == 0 || clock == 6) return stamp;
  const auto found = writer.clocks.find(clock);
  if (found == writer.clocks.end()) {
    if (clock >= 64)
      session_.loss("clock", 1, "events on a clock that no snapshot explains; taken as nanoseconds of the trace");
    return stamp;
  }
  auto& [trace, own] = found->second;
  const int64_t unit = writer.units[clock];
  int64_t scaled = 0;
  if (writer.incremental[clock]) {
    if (__builtin_add_overflow(own, stamp, &own)) return stamp;
    if (__builtin_mul_overflow(stamp, unit, &scaled) || __builtin_add_overflow(trace, scaled, &trace)) return stamp;
    return trace;
  }
  int64_t passed = 0, result = 0;
  if (__builtin_sub_overflow(stamp, own, &passed) || __builtin_mul_overflow(passed, unit, &scaled) ||
      __builtin_add_overflow(trace, scaled, &result))
    return stamp;
  return result;
}

void PerfettoImport::interned(std::string_view bytes, Sequence& writer) {
  ProtoReader data(bytes);
  for (Field f; data.next(f);) {
    auto* table = f.id == 1    ? &writer.categories
                  : f.id == 2  ? &writer.names
                  : f.id == 3  ? &writer.annotationNames
                  : f.id == 29 ? &writer.annotationValues
                               : nullptr;
    if (!table || f.wire != ProtoReader::Wire::Bytes) continue;
    uint64_t id = 0;
    std::string_view text;
    ProtoReader entry(f.bytes);
    for (Field e; entry.next(e);) {
      if (e.id == 1) id = e.number;
      if (e.id == 2) text = e.bytes;
    }
    if (++writer.interned > kMostInterned) return session_.loss("names", 1, "more names than are kept");
    (*table)[id] = text.substr(0, 4096);
  }
}

void PerfettoImport::defaults(std::string_view bytes, Sequence& writer) {
  ProtoReader all(bytes);
  for (Field f; all.next(f);) {
    if (f.id == packet::kClock) writer.defaultClock = f.number;
    if (f.id != 11 || f.wire != ProtoReader::Wire::Bytes) continue;
    ProtoReader track(f.bytes);
    for (Field t; track.next(t);) {
      if (t.id == event::kTrack) writer.defaultTrack = t.number;
    }
  }
}

void PerfettoImport::descriptor(std::string_view bytes) {
  Track track;
  uint64_t uuid = 0;
  ProtoReader all(bytes);
  for (Field f; all.next(f);) {
    if (f.id == 1) uuid = f.number;
    if (f.id == 2 || f.id == 10) track.name = f.bytes.substr(0, 400);
    if (f.id == 5) track.parent = f.number;
    if (f.id == 8) track.isCounter = true;
    if (f.id != 3 && f.id != 4) continue;
    track.isProcess = f.id == 3;
    ProtoReader of(f.bytes);
    for (Field p; of.next(p);) {
      if (p.id == 1) track.pid = p.integer();
      if (p.id == 2 && f.id == 4) track.tid = p.integer();
      if (((p.id == 6 && f.id == 3) || (p.id == 5 && f.id == 4)) && track.name.empty())
        track.name = p.bytes.substr(0, 400);
    }
  }
  if (tracks_.size() < kMostTracks || tracks_.contains(uuid)) tracks_[uuid] = std::move(track);
}

std::string PerfettoImport::lookUp(const std::unordered_map<uint64_t, std::string>& table, uint64_t id,
                                   const char* what) {
  const auto found = table.find(id);
  if (found != table.end()) return found->second;
  session_.loss("names", 1, fmt::format("{} that were declared in a part of the trace that is not there", what));
  return fmt::format("name {}", id);
}

nlohmann::ordered_json PerfettoImport::annotation(std::string_view bytes, const Sequence& writer, std::string& name,
                                                  int depth) {
  nlohmann::ordered_json value;
  ProtoReader all(bytes);
  for (Field f; all.next(f);) {
    switch (f.id) {
      case 1:
        name = lookUp(writer.annotationNames, f.number, "names of arguments");
        break;
      case 2:
        value = f.number != 0;
        break;
      case 3:
      case 7:
        value = f.number;
        break;
      case 4:
        value = f.integer();
        break;
      case 5:
        value = f.real();
        break;
      case 6:
      case 9:
        value = std::string(f.bytes.substr(0, 16384));
        break;
      case 10:
        name = f.bytes.substr(0, 400);
        break;
      case 11:
      case 12: {
        const bool fits = value.is_null() || (f.id == 11 ? value.is_object() : value.is_array());
        if (depth > kMostDepth || !fits) break;
        std::string key;
        auto inner = annotation(f.bytes, writer, key, depth + 1);
        if (f.id == 11)
          value[key] = std::move(inner);
        else
          value.push_back(std::move(inner));
        break;
      }
      case 17:
        value = lookUp(writer.annotationValues, f.number, "values of arguments");
        break;
      default:
        break;
    }
  }
  return value;
}

void PerfettoImport::emit(char phase, uint64_t track, const Open& what, int64_t durationNs) {
  ++events_;
  const std::string process = std::to_string(track);
  std::string padded = what.arguments;
  padded.append(JsonSlices::kPadding, '\0');
  ChromeEvent e;
  e.phase = phase;
  e.name = what.name;
  e.category = what.category;
  e.process = process;
  e.timeNs = what.startNs;
  e.durationNs = durationNs;
  e.arguments = std::string_view(padded.data(), what.arguments.size());
  import_.event(e);
}

void PerfettoImport::flow(uint64_t id, bool start, uint64_t track, int64_t at) {
  ChromeEvent e;
  const std::string process = std::to_string(track), key = std::to_string(id);
  e.phase = start ? 's' : 'f';
  e.name = e.category = "flow";
  e.id = key;
  e.process = process;
  e.timeNs = at;
  import_.event(e);
}

void PerfettoImport::trackEvent(std::string_view bytes, Sequence& writer, int64_t timeNs) {
  uint64_t type = 0, track = writer.defaultTrack;
  Open what;
  nlohmann::ordered_json arguments = nlohmann::ordered_json::object();
  std::vector<std::pair<uint64_t, bool>> flows;
  int64_t legacyDuration = -1;
  char legacyPhase = 0;
  ProtoReader all(bytes);
  for (Field f; all.next(f);) {
    switch (f.id) {
      case event::kType:
        type = f.number;
        break;
      case event::kTrack:
        track = f.number;
        break;
      case event::kName:
        what.name = f.bytes.substr(0, 4096);
        break;
      case event::kNameId:
        what.name = lookUp(writer.names, f.number, "names of events");
        break;
      case event::kCategory:
        what.category = f.bytes.substr(0, 400);
        break;
      case event::kCategoryIds: {
        uint64_t id = f.number;
        auto packed = f.bytes;
        if (f.wire == ProtoReader::Wire::Bytes && !ProtoReader::takeVarint(packed, id)) break;
        what.category = lookUp(writer.categories, id, "categories");
        break;
      }
      case event::kDelta:
        timeNs += f.integer() * 1000;
        break;
      case event::kAbsolute:
        if (f.integer() < int64_t{1} << 50) timeNs = f.integer() * 1000;
        break;
      case event::kCounter:
        arguments["value"] = f.integer();
        break;
      case event::kCounterReal:
        arguments["value"] = f.real();
        break;
      case event::kFlow:
      case event::kOldFlow:
        flows.emplace_back(f.number, false);
        break;
      case event::kEndingFlow:
        flows.emplace_back(f.number, true);
        break;
      case event::kAnnotation: {
        std::string name;
        auto value = annotation(f.bytes, writer, name, 0);
        if (arguments.size() < 1000) arguments[name] = std::move(value);
        break;
      }
      case event::kLegacy: {
        ProtoReader legacy(f.bytes);
        for (Field l; legacy.next(l);) {
          if (l.id == 1) what.name = lookUp(writer.names, l.number, "names of events");
          if (l.id == 2) legacyPhase = static_cast<char>(l.number);
          if (l.id == 3 && l.integer() < int64_t{1} << 50) legacyDuration = l.integer() * 1000;
        }
        break;
      }
      default:
        break;
    }
  }
  if (!all.ok()) session_.loss("damaged_packets", 1, "events that are cut or not well formed");
  if (!arguments.empty())
    what.arguments = arguments.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  what.startNs = timeNs;
  auto& stack = open_[track];
  if (type == event::kBegin || legacyPhase == 'B') {
    if (++openCount_ > kMostOpen) {
      --openCount_;
      session_.loss("spans", 1, "more than a million spans are open at once");
    } else {
      stack.push_back(what);
    }
  } else if (type == event::kEnd || legacyPhase == 'E') {
    if (stack.empty()) {
      session_.loss("unmatched_ends", 1, "ends of spans whose begin is not in the file");
    } else {
      --openCount_;
      const Open begun = std::move(stack.back());
      stack.pop_back();
      emit('X', track, begun, std::max<int64_t>(0, timeNs - begun.startNs));
    }
  } else if (legacyPhase == 'X') {
    emit('X', track, what, std::max<int64_t>(0, legacyDuration));
  } else if (type == event::kCounterType) {
    emit('C', track, what, 0);
  } else {
    emit('i', track, what, 0);
  }
  // The first event with a flow's number is its start; each further one ends an arrow and begins the next.
  for (const auto& [id, ends] : flows) {
    const auto known = flows_.find(id);
    if (known != flows_.end()) flow(id, false, track, what.startNs);
    if (known == flows_.end() && flows_.size() < kMostInterned) {
      flows_.emplace(id, std::pair(track, what.startNs));
      flow(id, true, track, what.startNs);
    }
    if (ends) flows_.erase(id);
  }
}

void PerfettoImport::compressed(std::string_view bytes, int depth) {
  if (depth > 2) return session_.loss("damaged_packets", 1, "compressed packets inside compressed packets");
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  int code = Z_OK;
  while (code == Z_OK && out.size() < kMostInflatedBytes) {
    const size_t old = out.size();
    out.resize(old + (size_t{1} << 20));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + old);
    stream.avail_out = 1 << 20;
    code = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
    if (stream.avail_in == 0 && stream.avail_out > 0) break;
  }
  inflateEnd(&stream);
  if (code != Z_STREAM_END) session_.loss("damaged_packets", 1, "compressed packets that cannot be read to their end");
  ProtoReader trace(out);
  for (Field f; trace.next(f);) {
    if (f.id == 1 && f.wire == ProtoReader::Wire::Bytes) packet(f.bytes, depth + 1);
  }
}

void PerfettoImport::packet(std::string_view bytes, int depth) {
  std::string_view trackEventBytes, internedBytes, clockBytes, descriptorBytes, defaultBytes, compressedBytes;
  uint64_t sequenceId = 0, flags = 0, clock = 0;
  int64_t stamp = 0;
  bool cleared = false;
  ProtoReader all(bytes);
  uint32_t other = 0;
  for (Field f; all.next(f);) {
    switch (f.id) {
      case packet::kTimestamp:
        stamp = f.integer();
        break;
      case packet::kSequence:
        sequenceId = f.number;
        break;
      case packet::kTrackEvent:
        trackEventBytes = f.bytes;
        break;
      case packet::kInterned:
        internedBytes = f.bytes;
        break;
      case packet::kFlags:
        flags = f.number;
        break;
      case packet::kCleared:
        cleared = f.number != 0;
        break;
      case packet::kDropped:
        if (f.number) session_.loss("dropped_packets", 1, "the recorder dropped packets before these");
        break;
      case packet::kClock:
        clock = f.number;
        break;
      case packet::kClockSnapshot:
        clockBytes = f.bytes;
        break;
      case packet::kDefaults:
        defaultBytes = f.bytes;
        break;
      case packet::kTrackDescriptor:
        descriptorBytes = f.bytes;
        break;
      case packet::kCompressed:
        compressedBytes = f.bytes;
        break;
      default:
        if (f.wire == ProtoReader::Wire::Bytes) other = f.id;
    }
  }
  if (!all.ok()) session_.loss("damaged_packets", 1, "packets that are not well formed");
  Sequence& writer = sequence(sequenceId);
  if (cleared || flags & 1) {
    const auto clocks = writer.clocks;
    const auto units = writer.units;
    const auto incremental = writer.incremental;
    writer = {};
    writer.clocks = clocks, writer.units = units, writer.incremental = incremental;
  }
  if (!clockBytes.empty()) clocks(clockBytes, writer);
  if (!defaultBytes.empty()) defaults(defaultBytes, writer);
  if (!internedBytes.empty()) interned(internedBytes, writer);
  if (!descriptorBytes.empty()) descriptor(descriptorBytes);
  if (!compressedBytes.empty()) compressed(compressedBytes, depth);
  if (!trackEventBytes.empty()) {
    trackEvent(trackEventBytes, writer, traceTime(clock ? clock : writer.defaultClock, stamp, writer));
  } else if (other != 0 && clockBytes.empty() && descriptorBytes.empty() && internedBytes.empty() &&
             otherPackets_.size() < 10'000) {
    ++otherPackets_[other];
  }
}

void PerfettoImport::finish() {
  for (const auto& [track, stack] : open_) {
    for (const auto& open : stack) {
      session_.loss("unfinished_spans", 1, "spans whose end is not in the file are shown without length");
      emit('X', track, open, 0);
    }
  }
  for (const auto& [uuid, track] : tracks_) {
    std::string name = track.name;
    if (const auto parent = tracks_.find(track.parent);
        parent != tracks_.end() && track.parent != 0 && !parent->second.name.empty()) {
      name = parent->second.name + " · " + (name.empty() ? std::to_string(track.tid) : name);
    }
    if (name.empty() && track.pid != 0) name = fmt::format("process {} · thread {}", track.pid, track.tid);
    if (!name.empty()) import_.nameRow(std::to_string(uuid), "", name);
  }
  for (const auto& [field, count] : otherPackets_) {
    session_.loss(
        "other_packets", count,
        fmt::format("packets of the system's data sources (field {} and others) have no place in a session", field));
  }
  import_.finish();
}

/// Packets of the outermost message, one by one, from a stream.
class PacketReader {
 public:
  explicit PacketReader(ByteStream& stream) : stream_(stream) {}
  bool next(std::string_view& packet) {
    for (;;) {
      std::string_view rest(buffer_.data() + at_, buffer_.size() - at_);
      std::string_view body = rest;
      uint64_t tag = 0, length = 0;
      if (ProtoReader::takeVarint(body, tag) && (tag & 7) == 2 && ProtoReader::takeVarint(body, length)) {
        if (length > kMostPacketBytes) return stop("a packet is longer than any can be");
        if (body.size() >= length) {
          packet = body.substr(0, length);
          at_ += rest.size() - body.size() + length;
          if (tag == (1 << 3 | 2)) return true;
          continue;
        }
      } else if (rest.size() >= 20) {
        return stop("what follows is no packet");
      }
      if (!more()) return rest.empty() ? false : stop("the file is cut short");
    }
  }
  const std::string& ending() const { return ending_; }

 private:
  bool more() {
    buffer_.erase(0, at_);
    at_ = 0;
    const size_t old = buffer_.size();
    buffer_.resize(old + (size_t{1} << 20));
    buffer_.resize(old + stream_.read(buffer_.data() + old, size_t{1} << 20));
    return buffer_.size() > old;
  }
  bool stop(const char* why) {
    ending_ = why;
    return false;
  }
  ByteStream& stream_;
  std::string buffer_, ending_;
  size_t at_ = 0;
};

}  // namespace

bool looksLikePerfettoTrace(std::string_view head) {
  if (head.empty() || head[0] != '\n') return false;  // field 1, length-delimited
  std::string_view body = head.substr(1);
  uint64_t length = 0;
  if (!ProtoReader::takeVarint(body, length) || length == 0 || length > kMostPacketBytes) return false;
  ProtoReader first(body.substr(0, length));
  bool known = false;
  Field f;
  while (first.next(f)) {
    known = known || f.id == packet::kTimestamp || f.id == packet::kSequence || f.id == packet::kTrackDescriptor ||
            f.id == packet::kClockSnapshot || f.id == packet::kInterned || f.id == packet::kTrackEvent ||
            (f.id >= 30 && f.id < 130);
    if (f.id > 5000) return false;
  }
  return known && (first.ok() || body.size() < length) && (body.size() <= length || body[length] == '\n');
}

Result<void> importPerfettoTrace(const std::string& path, SessionBuilder& session, ImportProgress* progress) {
  auto stream = ByteStream::open(path);
  if (!stream) return tl::unexpected(stream.error());
  auto links = TraceLinks::create(session);
  if (!links) return tl::unexpected(links.error());
  ChromeImport import(session, **links);
  PerfettoImport perfetto(session, import);
  PacketReader packets(**stream);
  std::string_view packet;
  for (int64_t count = 1; packets.next(packet); ++count) {
    perfetto.packet(packet);
    if (count % 4096 != 0) continue;
    if (auto on = checkpoint(progress, kFormat, (*stream)->fraction()); !on) return on;
    if (auto good = session.good(); !good) return good;
  }
  if (!packets.ending().empty()) session.loss("end_of_file", 1, packets.ending());
  if (!(*stream)->damage().empty()) session.loss("end_of_file", 1, (*stream)->damage());
  perfetto.finish();
  if (perfetto.events() == 0)
    return fail(ErrorCode::Corrupt, "the trace holds no track events, which are what a session can show", path);
  if (auto linked = (*links)->finish(); !linked) return linked;
  return session.good();
}

}  // namespace fusebox::importing
