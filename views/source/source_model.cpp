#include "views/source/source_model.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "engine/support/text.h"
#include "profiler/query/coverage.h"
#include "profiler/query/entries.h"
#include "profiler/query/function_names.h"
#include "profiler/query/guard_words.h"
#include "profiler/session/reader.h"
#include "views/common/units.h"

namespace fusebox::views {
namespace {

using session::Statement;

constexpr const char* kBreaks = R"(SELECT min(break_id) AS break_id, line, kind, reason, hint, count(*) AS count, frame FROM graph_breaks
  WHERE file = ? GROUP BY line, kind, reason, hint, frame ORDER BY line)";
constexpr const char* kFailures = R"(SELECT failure_id, line, frame, guard, expected, found, outcome, (SELECT count(*) FROM t_guard_failure WHERE file = ?1) AS all_count FROM guard_failures
  WHERE file = ?1 ORDER BY line, failure_id LIMIT ?2)";
constexpr const char* kKernels = R"(WITH mine AS MATERIALIZED (SELECT DISTINCT g.kernel_id AS kernel, n.line AS line FROM t_node n
    CROSS JOIN t_fusion_member m ON m.node_id = n.id CROSS JOIN t_fusion_group g ON g.id = m.group_id WHERE n.file = ?1 AND n.line IS NOT NULL)
  SELECT k.kernel_id, mine.line, k.name, k.kind, k.launches, k.total_ns, count(*) OVER () AS all_count, k.compile_id FROM mine CROSS JOIN kernels k ON k.kernel_id = mine.kernel
  WHERE k.launches > 0 ORDER BY mine.line, k.total_ns DESC LIMIT ?2)";

// Those of a profiler's trace, of no graph.
constexpr const char* kPlacedKernels = R"(SELECT kernel_id, line, name, kind, launches, total_ns, count(*) OVER () AS all_count, compile_id FROM kernels
  WHERE file = ?1 AND line IS NOT NULL AND launches > 0 AND compile_id IS NULL ORDER BY line, total_ns DESC LIMIT ?2)";

struct PlaceQuery {
  ObjectKind kind;
  const char* sql;
};
constexpr PlaceQuery kPlaces[] = {
    {ObjectKind::Frame, "SELECT file, line FROM frames WHERE frame_id = ?"},
    {ObjectKind::Compile, "SELECT file, line FROM compiles WHERE compile_id = ?"},
    {ObjectKind::Node, "SELECT file, line FROM nodes WHERE node_id = ?"},
    {ObjectKind::Group, "SELECT file, line FROM fusion_groups WHERE group_id = ?"},
    {ObjectKind::Kernel, "SELECT file, line FROM kernels WHERE kernel_id = ?"},
    {ObjectKind::Launch, "SELECT file, line FROM launches WHERE launch_id = ?"},
    {ObjectKind::Break, "SELECT file, line FROM graph_breaks WHERE break_id = ?"},
    {ObjectKind::Guard, "SELECT file, line FROM guards WHERE guard_id = ?"},
    {ObjectKind::Failure, "SELECT file, line FROM guard_failures WHERE failure_id = ?"}};

SourceEvent breakEvent(const Statement& s) {
  SourceEvent event;
  event.kind = SourceEvent::Kind::Break;
  event.line = static_cast<int>(s.integer("line"));
  event.headline = s.string("kind") + (s.integer("count") > 1 ? " (" + formatCount(s.integer("count")) + "\u00d7)" : "");
  event.detail = query::breakReason(s.text("reason"));
  event.hint = s.string("hint");
  event.location = Location::of(ObjectKind::Break, s.integer("break_id"));
  return event;
}

SourceEvent uncompiledEvent(const query::Uncompiled& u) {
  SourceEvent event;
  event.kind = SourceEvent::Kind::Uncompiled;
  event.line = static_cast<int>(u.line);
  event.headline = u.kind;
  event.detail = u.reason;
  event.hint = query::adviseUncompiled(u).front().title;
  if (u.compile > 0) event.location = Location::of(ObjectKind::Compile, u.compile);
  return event;
}

/// An imported file quotes single lines. Where the file lies here and has all of them unchanged, it is the one that ran.
std::string wholeText(const std::string& path, const std::string& quoted) {
  constexpr std::streamoff kLargest = 16 << 20;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file || file.tellg() < 0 || file.tellg() > kLargest) return {};
  std::string text(static_cast<size_t>(file.tellg()), '\0');
  if (!file.seekg(0).read(text.data(), static_cast<std::streamsize>(text.size()))) return {};
  std::istringstream known(quoted), here(text);
  const auto blank = [](const std::string& line) { return line.find_first_not_of(" \t\r") == std::string::npos; };
  const auto stripped = [](const std::string& line) {
    const size_t from = line.find_first_not_of(" \t\r"), to = line.find_last_not_of(" \t\r");
    return from == std::string::npos ? std::string() : line.substr(from, to - from + 1);
  };
  bool any = false;
  for (std::string a, b; std::getline(known, a);) {
    if (!std::getline(here, b)) b.clear();
    if (blank(a)) continue;
    if (stripped(a) != stripped(b)) return {};
    any = true;
  }
  return any ? text : std::string();
}

SourceEvent failureEvent(const Statement& s) {
  SourceEvent event;
  event.kind = SourceEvent::Kind::Failure;
  event.line = static_cast<int>(s.integer("line"));
  event.headline = s.string("frame") + ": " + s.string("outcome");
  event.detail = query::missWords(s.text("guard"), s.text("expected"), s.text("found"));
  event.location = Location::of(ObjectKind::Failure, s.integer("failure_id"));
  return event;
}

SourceEvent kernelEvent(const Statement& s) {
  SourceEvent event;
  event.kind = SourceEvent::Kind::Kernel;
  event.line = static_cast<int>(s.integer("line"));
  event.headline = s.string("name");
  event.detail = formatDuration(s.real("total_ns")) + "  " + formatCount(s.integer("launches")) + "\u00d7";
  event.location = Location::of(ObjectKind::Kernel, s.integer("kernel_id"));
  return event;
}

}  // namespace

Result<TableRows> loadSourceFiles(const session::Reader& reader) {
  auto files = query::sourceFiles(reader);
  if (!files) return tl::unexpected(files.error());
  TableRows rows;
  for (const auto& file : *files) {
    TableRow row;
    row.location = Location::sourceLine(file.path, 0);
    row.cells = {textCell(baseName(file.path)), countCell(file.breaks),
                 file.timeNs > 0 ? durationCell(static_cast<double>(file.timeNs)) : Cell{"", 0}};
    if (file.breaks == 0) row.cells[1].text.clear();
    row.tooltip = file.path;
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<SourceText> loadSource(const session::Reader& reader, const std::string& path, int64_t most) {
  SourceText source;
  source.path = path;
  source.onDisk = query::pathOnDisk(reader, path);
  auto text = query::sourceText(reader, path);
  if (text) {
    source.text = std::move(*text);
    const bool imported = !reader.info("imported_format").empty();
    const auto cut = reader.each("SELECT max(truncated) AS is_truncated FROM source_files WHERE file = ?", {path},
                                 [&](const Statement& s) { source.isQuoted = imported && s.integer("is_truncated") != 0; });
    if (!cut) return tl::unexpected(cut.error());
    if (source.isQuoted) {
      if (std::string whole = wholeText(path, source.text); !whole.empty()) {
        source.text = std::move(whole);
        source.isQuoted = false;
      }
    }
  } else if (text.error().code == ErrorCode::NotFound) {
    source.problem = text.error().text();
  } else {
    return tl::unexpected(text.error());
  }
  auto notes = query::lineNotes(reader, path);
  if (!notes) return tl::unexpected(notes.error());
  source.notes = std::move(*notes);
  using Make = SourceEvent (*)(const Statement&);
  struct Part {
    const char* sql;
    Make make;
    int64_t most = 0;  // 0: all are read; else `all_count` says how many there are
  };
  const auto entries = query::entryNumbers(reader);
  if (!entries) return tl::unexpected(entries.error());
  const std::string format = reader.info("imported_format");
  const bool isProfile = format.starts_with("Kineto") || format.starts_with("Chrome");
  for (const auto& [sql, make, atMost] : {Part{kBreaks, breakEvent}, {kFailures, failureEvent, 1000}, {isProfile ? kPlacedKernels : kKernels, kernelEvent, 5000}}) {
    int64_t shown = 0, all = 0;
    std::vector<session::Cell> parameters{path};
    if (atMost > 0) parameters.emplace_back(std::min(most, atMost));
    const auto outcome = reader.each(sql, parameters, [&](const Statement& s) {
      source.events.push_back(make(s));
      // Kernels of one name are of several entries.
      const auto entry = make == kernelEvent ? entries->find(s.integer("compile_id")) : entries->end();
      if (entry != entries->end() && !entry->second.isOnly) source.events.back().detail = say(FUSEBOX_TEXT("Memory", "{}, entry {}"), source.events.back().detail, entry->second.entry);
      ++shown;
      if (atMost > 0) all = s.integer("all_count");
    });
    if (!outcome) return tl::unexpected(outcome.error());
    if (all > shown) source.cuts.push_back({source.events.back().kind, source.events.back().line, shown, all});
  }
  auto coverage = query::coverageOf(reader, {});  // the breaks of this file were read
  if (!coverage) return tl::unexpected(coverage.error());
  for (const auto& u : coverage->uncompiled) {
    if (u.file == path && !u.recovered) source.events.push_back(uncompiledEvent(u));
  }
  std::stable_sort(source.events.begin(), source.events.end(),
                   [](const SourceEvent& a, const SourceEvent& b) { return a.line < b.line; });
  return source;
}

Result<Location> placeOf(const session::Reader& reader, const Location& object) {
  if (object.kind == ObjectKind::SourceLine) return object;
  Location place = Location::sourceLine({}, 0);
  for (const PlaceQuery& query : kPlaces) {
    if (query.kind != object.kind) continue;
    const auto outcome = reader.each(query.sql, {object.id}, [&](const Statement& s) {
      place.file = s.string("file");
      place.line = static_cast<int>(s.integer("line"));
    });
    if (!outcome) return tl::unexpected(outcome.error());
  }
  return place;
}

}  // namespace fusebox::views
