#include "profiler/importers/perfetto_trace.h"

#include "profiler/importers/byte_stream.h"
#include "profiler/importers/perfetto_fields.h"
#include "profiler/importers/perfetto_import.h"
#include "profiler/importers/proto_reader.h"
#include "profiler/importers/trace_links.h"

namespace fusebox::importing {
namespace {

constexpr const char* kPerfettoFormat = "Perfetto trace";
constexpr size_t kMostPacketBytes = size_t{64} << 20;

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
  ProtoReader::Field f;
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
    if (auto on = checkpoint(progress, kPerfettoFormat, (*stream)->fraction()); !on) return on;
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
