#include "profiler/importers/chrome_trace.h"

#include <fmt/format.h>

#include <filesystem>

#include "profiler/importers/chrome_import.h"
#include "profiler/importers/json_slices.h"
#include "profiler/importers/stack_sources.h"

namespace fusebox::importing {
namespace {

constexpr const char* kChromeFormat = "Chrome trace";
}  // namespace

bool looksLikeChromeTrace(std::string_view head) {
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  const size_t start = head.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return false;
  head.remove_prefix(start);
  if (head[0] == '{')
    return head.find("\"traceEvents\"") != std::string_view::npos ||
           head.find("\"schemaVersion\"") != std::string_view::npos;
  if (head[0] != '[') return false;
  return head.find("\"ph\"") != std::string_view::npos;
}

Result<void> importChromeTrace(const std::string& path, SessionBuilder& session, ImportProgress* progress) {
  auto stream = ByteStream::open(path);
  if (!stream) return tl::unexpected(stream.error());
  auto links = TraceLinks::create(session);
  if (!links) return tl::unexpected(links.error());
  session.info("imported_format", std::string(kChromeFormat));
  JsonSlices slices(**stream);
  ChromeImport import(session, **links);
  int64_t events = 0;
  for (;;) {
    const auto slice = slices.next();
    if (slice.kind == JsonSlices::Kind::End) break;
    if (slice.kind == JsonSlices::Kind::Value) {
      import.member(slice.key, slice.text);
      continue;
    }
    if (slice.kind == JsonSlices::Kind::Damaged) {
      session.loss("damaged_events", 1, fmt::format("event {}: {}", events + 1, slice.text));
      continue;
    }
    ++events;
    ChromeEvent event;
    bool repaired = false;
    std::string problem;
    if (import.parser.parse(slice.text, event, repaired, problem)) {
      if (repaired)
        session.loss("repaired_events", 1,
                     fmt::format("event {}: characters that JSON does not allow were replaced", events));
      import.event(event);
    } else {
      session.loss("damaged_events", 1, fmt::format("event {}: {}", events, problem));
      slices.resynchronise();
    }
    if (events % 4096 == 0) {
      if (auto on = checkpoint(progress, kChromeFormat, (*stream)->fraction()); !on) return on;
      if (auto good = session.good(); !good) return good;
    }
  }
  if (!slices.ending().empty()) session.loss("end_of_file", 1, slices.ending());
  if (events == 0)
    return fail(ErrorCode::Corrupt,
                "the trace holds no readable event" + (slices.ending().empty() ? "" : ": " + slices.ending()), path);
  import.finish();
  if (auto linked = (*links)->finish(); !linked) return linked;
  if (auto sources = addStackSources(session, std::filesystem::path(path).parent_path().string()); !sources) return sources;
  return session.good();
}

}  // namespace fusebox::importing
