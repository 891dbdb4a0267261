#include "profiler/export/perfetto_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiler/export/proto_writer.h"

namespace fusebox::exporting {
namespace {

using session::Statement;

// Numbers of fields: perfetto/protos/perfetto/trace/trace_packet.proto and track_event/*.proto.
constexpr uint32_t kPacket = 1, kClockSnapshot = 6, kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11,
                   kInternedData = 12, kSequenceFlags = 13, kTrackDescriptor = 60;
constexpr uint64_t kStateCleared = 1, kNeedsState = 2;
constexpr uint64_t kSequence = 1;
constexpr uint64_t kBegin = 1, kEnd = 2;
constexpr uint64_t kCompilerTrack = 1, kKernelTrack = 2, kFirstTrack = 16;
constexpr size_t kMostNames = 1'000'000;

class TraceWriter {
 public:
  TraceWriter(std::ostream& out, const session::Reader& reader) : out_(out) {
    ProtoWriter snapshot;
    const auto clock = [&](uint64_t id, int64_t ns) {
      snapshot.message(1, ProtoWriter().number(1, id).number(2, static_cast<uint64_t>(ns)));
    };
    clock(6, reader.infoInteger("start_ns"));
    if (const int64_t unix = reader.infoInteger("start_unix_ns"); unix > 0) clock(1, unix);
    put(ProtoWriter().message(kClockSnapshot, snapshot).number(kSequenceFlags, kStateCleared));
    process(kCompilerTrack, "compiler");
    process(kKernelTrack, "kernels");
  }

  void nameThread(int64_t thread, std::string name) { threads_[thread] = std::move(name); }

  struct Span {
    std::string_view name, category;
    int64_t startNs, durNs, thread;
    std::vector<std::pair<std::string_view, std::string>> texts;
    std::vector<std::pair<std::string_view, int64_t>> numbers;
  };
  /// Spans of one process come by thread and, within it, by start, longer ones first.
  void span(uint64_t process, const Span& span) {
    const uint64_t track = trackFor(process, span);
    ProtoWriter event;
    event.number(9, kBegin)
        .number(11, track)
        .number(3, intern(categories_, 1, span.category))
        .number(10, intern(names_, 2, span.name));
    for (const auto& [key, value] : span.texts) {
      if (!value.empty()) event.message(4, ProtoWriter().text(10, key).text(6, value));
    }
    for (const auto& [key, value] : span.numbers)
      event.message(4, ProtoWriter().text(10, key).number(4, static_cast<uint64_t>(value)));
    put(ProtoWriter()
            .number(kTimestamp, static_cast<uint64_t>(span.startNs))
            .number(kSequenceFlags, kNeedsState)
            .message(kTrackEvent, event));
    put(ProtoWriter()
            .number(kTimestamp, static_cast<uint64_t>(span.startNs + span.durNs))
            .number(kSequenceFlags, kNeedsState)
            .message(kTrackEvent, ProtoWriter().number(9, kEnd).number(11, track)));
    ++count_;
  }
  int64_t count() const { return count_; }

 private:
  struct Lane {
    uint64_t track = 0;
    std::vector<int64_t> openUntil;  ///< ends of the spans around the last one, outermost first
  };

  void put(ProtoWriter packet) {
    packet.number(kSequenceId, kSequence);
    const std::string bytes = ProtoWriter().message(kPacket, packet).bytes();
    out_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  void process(uint64_t uuid, std::string_view name) {
    put(ProtoWriter().message(kTrackDescriptor, ProtoWriter().number(1, uuid).text(2, name).message(
                                                    3, ProtoWriter().number(1, uuid).text(6, name))));
  }
  // The first lane of the thread that the span fits into: after what is there, or inside of it.
  uint64_t trackFor(uint64_t process, const Span& span) {
    auto& lanes = lanes_[{process, span.thread}];
    const int64_t end = span.startNs + span.durNs;
    for (Lane& lane : lanes) {
      while (!lane.openUntil.empty() && lane.openUntil.back() <= span.startNs) lane.openUntil.pop_back();
      if (!lane.openUntil.empty() && lane.openUntil.back() < end) continue;
      lane.openUntil.push_back(end);
      return lane.track;
    }
    const uint64_t track = kFirstTrack + tracks_++;
    const auto name = threads_.find(span.thread);
    put(ProtoWriter().message(kTrackDescriptor, ProtoWriter()
                                                    .number(1, track)
                                                    .number(5, process)
                                                    .text(2, name == threads_.end() || name->second.empty()
                                                                 ? fmt::format("thread {}", span.thread)
                                                                 : name->second)));
    lanes.push_back({track, {end}});
    return track;
  }
  uint64_t intern(std::unordered_map<std::string, uint64_t>& table, uint32_t field, std::string_view text) {
    const auto found = table.find(std::string(text));
    if (found != table.end()) return found->second;
    if (table.size() >= kMostNames) table.clear();
    const uint64_t id = ++lastId_;
    table.emplace(text, id);
    put(ProtoWriter()
            .number(kSequenceFlags, kNeedsState)
            .message(kInternedData, ProtoWriter().message(field, ProtoWriter().number(1, id).text(2, text))));
    return id;
  }

  std::ostream& out_;
  std::map<int64_t, std::string> threads_;
  std::map<std::pair<uint64_t, int64_t>, std::vector<Lane>> lanes_;
  std::unordered_map<std::string, uint64_t> names_, categories_;
  uint64_t lastId_ = 0, tracks_ = 0;
  int64_t count_ = 0;
};

std::string placeOf(const Statement& row) {
  return row.isNull("file") ? std::string() : fmt::format("{}:{}", row.text("file"), row.integer("line"));
}

}  // namespace

Result<int64_t> writePerfettoTrace(const session::Reader& reader, std::ostream& out) {
  TraceWriter trace(out, reader);
  auto threads = reader.each("SELECT thread, name FROM threads", {},
                             [&](const Statement& row) { trace.nameThread(row.integer("thread"), row.string("name")); });
  if (!threads) return tl::unexpected(threads.error());
  auto cpu = reader.each(
      "SELECT start_ns, dur_ns, thread, name, kind, compile_id, detail, file, line FROM cpu_events WHERE dur_ns IS NOT "
      "NULL "
      "ORDER BY thread, start_ns, dur_ns DESC",
      {}, [&](const Statement& row) {
        TraceWriter::Span span{row.text("name"),
                               row.text("kind"),
                               row.integer("start_ns"),
                               std::max<int64_t>(0, row.integer("dur_ns")),
                               row.integer("thread"),
                               {{"detail", row.string("detail")}, {"placeOf", placeOf(row)}},
                               {}};
        if (!row.isNull("compile_id")) span.numbers.emplace_back("compile", row.integer("compile_id"));
        trace.span(kCompilerTrack, span);
      });
  if (!cpu) return tl::unexpected(cpu.error());
  auto launches = reader.each(
      "SELECT start_ns, dur_ns, thread, kernel, kernel_id, group_id, bytes, file, line FROM launches ORDER BY thread, "
      "start_ns, dur_ns DESC",
      {}, [&](const Statement& row) {
        trace.span(kKernelTrack,
                   {row.text("kernel"),
                    "kernel",
                    row.integer("start_ns"),
                    std::max<int64_t>(0, row.integer("dur_ns")),
                    row.integer("thread"),
                    {{"placeOf", placeOf(row)}},
                    {{"kernel", row.integer("kernel_id")}, {"group", row.integer("group_id")}, {"bytes", row.integer("bytes")}}});
      });
  if (!launches) return tl::unexpected(launches.error());
  return trace.count();
}

}  // namespace fusebox::exporting
