#include "views/guards/guards_model.h"

#include <algorithm>

#include "profiler/query/function_names.h"
#include "profiler/session/reader.h"

namespace fusebox::views {
namespace {

using session::Statement;

constexpr const char* kGuards = R"(SELECT guard_id, position, kind, source, expected, failures, file, line, code, reason
  FROM guards WHERE compile_id = ? ORDER BY position)";
constexpr const char* kFailures = R"(SELECT failure_id, frame, guard, expected, found, outcome, file, line, recompile_id
  FROM guard_failures WHERE frame_id = ?1 OR ?1 = 0 ORDER BY failure_id DESC LIMIT 5000)";

}  // namespace

Result<std::vector<query::RecompileChain>> loadGuardedFrames(const session::Reader& reader) {
  auto chains = query::recompileChains(reader, true);
  if (chains) std::ranges::sort(*chains, {}, &query::RecompileChain::frame);
  return chains;
}

Result<TableRows> loadGuards(const session::Reader& reader, int64_t compile) {
  TableRows rows;
  const auto outcome = reader.each(kGuards, {compile}, [&](const Statement& s) {
    TableRow row;
    row.location = {ObjectKind::Guard, s.integer("guard_id"), {}, s.string("file"), static_cast<int>(s.integer("line"))};
    row.cells = {countCell(s.integer("position")), textCell(s.string("kind")), textCell(query::sourceWords(s.text("source"))), textCell(s.string("expected")),
                 countCell(s.integer("failures")), textCell(shortPlace(s.string("file"), s.integer("line")))};
    if (s.integer("failures") == 0) row.cells[4].text.clear();
    row.tone = s.integer("failures") > 0 ? 2 : 0;
    row.tooltip = s.isNull("code") || s.text("code").empty() ? s.string("source") + "\n" + s.string("expected") : s.string("code");
    if (!s.text("reason").empty()) row.tooltip += "\n\n" + s.string("reason");
    rows.push_back(std::move(row));
  });
  if (!outcome) return tl::unexpected(outcome.error());
  return rows;
}

Result<TableRows> loadFailures(const session::Reader& reader, int64_t frame) {
  TableRows rows;
  const auto outcome = reader.each(kFailures, {frame}, [&](const Statement& s) {
    TableRow row;
    row.location = {ObjectKind::Failure, s.integer("failure_id"), {}, s.string("file"), static_cast<int>(s.integer("line"))};
    row.cells = {textCell(s.string("frame")), textCell(query::sourceWords(s.text("guard"))), textCell(s.string("expected")), textCell(s.string("found")),
                 textCell(s.string("outcome")), textCell(shortPlace(s.string("file"), s.integer("line")))};
    row.tone = s.text("outcome") == "limit" ? 3 : 0;
    rows.push_back(std::move(row));
  });
  if (!outcome) return tl::unexpected(outcome.error());
  return rows;
}

Result<int64_t> countFailures(const session::Reader& reader, int64_t frame) {
  int64_t count = 0;
  const auto read = reader.each("SELECT count(*) AS count FROM t_guard_failure WHERE frame_id = ?1 OR ?1 = 0", {frame}, [&](const Statement& s) { count = s.integer("count"); });
  if (!read) return tl::unexpected(read.error());
  return count;
}

Result<GuardPlace> guardPlace(const session::Reader& reader, const Location& location) {
  GuardPlace place;
  const char* sql = nullptr;
  switch (location.kind) {
    case ObjectKind::Frame: sql = "SELECT frame_id, 0 AS compile_id, 0 AS guard_id, 0 AS failure_id FROM frames WHERE frame_id = ?"; break;
    case ObjectKind::Compile:  // a backward runs under the guards of its forward
      sql = "SELECT frame_id, CASE kind WHEN 'backward' THEN coalesce(parent_compile_id, compile_id) ELSE compile_id END AS compile_id, 0 AS guard_id, 0 AS failure_id "
            "FROM compiles WHERE compile_id = ?";
      break;
    case ObjectKind::Guard: sql = "SELECT frame_id, compile_id, guard_id, 0 AS failure_id FROM guards WHERE guard_id = ?"; break;
    case ObjectKind::Failure:
      sql = "SELECT frame_id, compile_id, guard_id, failure_id FROM guard_failures WHERE failure_id = ?";
      break;
    default: return place;
  }
  const auto outcome = reader.each(sql, {location.id}, [&](const Statement& s) {
    place = {s.integer("frame_id"), s.integer("compile_id"), s.integer("guard_id"), s.integer("failure_id")};
  });
  if (!outcome) return tl::unexpected(outcome.error());
  return place;
}

}  // namespace fusebox::views
