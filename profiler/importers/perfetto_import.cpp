// Packets and what they declare: clocks, names, tracks.
#include "profiler/importers/perfetto_import.h"

#include <fmt/format.h>
#include <zlib.h>

#include "profiler/importers/perfetto_fields.h"
#include "profiler/importers/proto_reader.h"

namespace fusebox::importing {
namespace {

using Field = ProtoReader::Field;

constexpr size_t kMostInflatedBytes = size_t{256} << 20;
constexpr size_t kMostInterned = 2'000'000, kMostTracks = 100'000, kMostSequences = 10'000;

}  // namespace

PerfettoSequence& PerfettoImport::sequence(uint64_t id) {
  if (sequences_.size() >= kMostSequences && !sequences_.contains(id)) id = 0;
  return sequences_[id];
}

void PerfettoImport::clocks(std::string_view bytes, PerfettoSequence& writer) {
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
int64_t PerfettoImport::traceTime(uint64_t clock, int64_t stamp, PerfettoSequence& writer) {
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

void PerfettoImport::interned(std::string_view bytes, PerfettoSequence& writer) {
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

void PerfettoImport::defaults(std::string_view bytes, PerfettoSequence& writer) {
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
  PerfettoTrack track;
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
  PerfettoSequence& writer = sequence(sequenceId);
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

}  // namespace fusebox::importing
