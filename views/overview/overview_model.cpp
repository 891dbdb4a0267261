#include "views/overview/overview_model.h"

#include "engine/support/text.h"
#include "profiler/query/function_names.h"
#include "profiler/query/operators.h"
#include "profiler/query/program_kernels.h"
#include "profiler/session/reader.h"

namespace fusebox::views {
namespace {

using session::Statement;

constexpr const char* kFactKeys[] = {"script", "command", "engine", "torch",        "python",          "fusebox_version",
                                     "device", "cpu",     "os",     "cpu_features", "schema_version", "exit_code",
                                     "cwd",    "hostname", "pid",   "torch_threads"};

// One row per frame, guard and value would repeat the same sentence: equal ones are counted in the summary instead.
std::string hottestKernels() {
  // First which they are, then what they are: a million kernels are not joined for the sake of a hundred.
  return "WITH ran AS MATERIALIZED (SELECT kernel_id, total_ns FROM kernels WHERE launches > 0 AND " + query::kernelsOfProgram() +
         ") SELECT kernel_id, name, kind, launches, total_ns, bytes, file, line, (SELECT sum(total_ns) FROM ran), coalesce(timed_launches, 0) "
         "FROM kernels WHERE kernel_id IN (SELECT kernel_id FROM ran ORDER BY total_ns DESC LIMIT 100) ORDER BY total_ns DESC";
}
constexpr const char* kBreaks = R"(SELECT min(break_id), kind, reason, hint, file, line, count(*) FROM graph_breaks
  GROUP BY kind, reason, hint, file, line ORDER BY count(*) DESC, min(break_id) LIMIT 500)";
constexpr const char* kRecompiles = R"(SELECT failure_id, frame, guard, expected, found, outcome, file, line
  FROM guard_failures f WHERE outcome <> 'recompile' OR EXISTS(SELECT 1 FROM compiles c WHERE c.failure_id = f.failure_id)
  ORDER BY failure_id DESC LIMIT 500)";
// A stage's own time is what its inner stages leave, as in the summary: shares of it add up.
constexpr const char* kStages = R"(WITH inner_ns AS MATERIALIZED (SELECT parent_stage_id AS stage_id, sum(dur_ns) AS ns FROM stages
    WHERE parent_stage_id IS NOT NULL GROUP BY parent_stage_id),
  named AS (SELECT s.name, s.phase, count(*) AS runs, sum(s.dur_ns) AS total, sum(max(0, s.dur_ns - coalesce(i.ns, 0))) AS own
    FROM stages s LEFT JOIN inner_ns i ON i.stage_id = s.stage_id WHERE s.dur_ns IS NOT NULL GROUP BY s.phase, s.name)
  SELECT name, phase, runs, total, own, sum(own) OVER () FROM named ORDER BY own DESC, total DESC LIMIT 100)";
constexpr const char* kLosses = "SELECT what, count, detail FROM losses ORDER BY count DESC";
constexpr const char* kCalls = "SELECT kind, sum(calls), sum(total_ns) FROM calls GROUP BY kind";

TableRow kernelRow(const Statement& s) {
  TableRow row;
  const double total = s.real(4), all = s.real(8);
  const query::KernelRuns runs = query::kernelRuns(s.integer(3), s.integer(9));
  row.location = Location::of(ObjectKind::Kernel, s.integer(0));
  row.cells = {textCell(s.string(1)), textCell(s.string(2)),  countCell(runs.count),
               durationCell(total),   shareCell(total, all),  durationCell(runs.timed > 0 ? total / runs.timed : 0),
               bandwidthCell(s.real(5) * runs.ofLaunches, total), textCell(shortPlace(s.string(6), s.integer(7)))};
  row.tooltip = runs.note;
  return row;
}

std::string breakReason(const Statement& s) { return query::breakReason(s.text(2)); }

TableRow breakRow(const Statement& s) {
  TableRow row;
  row.location = {ObjectKind::Break, s.integer(0), {}, s.string(4), static_cast<int>(s.integer(5))};
  row.cells = {textCell(shortPlace(s.string(4), s.integer(5))), textCell(s.string(1)), textCell(breakReason(s)),
               textCell(s.string(3)), countCell(s.integer(6))};
  row.tooltip = breakReason(s) + (s.isNull(3) ? "" : "\n\n" + s.string(3)) + "\n\n" + s.string(4) + ":" + s.string(5);
  return row;
}

TableRow recompileRow(const Statement& s) {
  TableRow row;
  row.location = {ObjectKind::Failure, s.integer(0), {}, s.string(6), static_cast<int>(s.integer(7))};
  row.cells = {textCell(s.string(1)), textCell(s.string(2)), textCell(s.string(3)),
               textCell(s.string(4)), textCell(s.string(5)), textCell(shortPlace(s.string(6), s.integer(7)))};
  if (s.text(5) == "limit") row.tone = 3;
  return row;
}

/// Equal breaks but for the words that are meant for the compiler's developers are one row.
void addBreak(const Statement& s, TableRows& rows) {
  TableRow row = breakRow(s);
  for (TableRow& known : rows) {
    if (known.location.file != row.location.file || known.location.line != row.location.line || known.cells[1].text != row.cells[1].text ||
        known.cells[2].text != row.cells[2].text)
      continue;
    known.cells[4] = countCell(static_cast<int64_t>(known.cells[4].number + row.cells[4].number));
    return;
  }
  rows.push_back(std::move(row));
}

std::string firstAdvice(const query::Uncompiled& what) { return query::adviseUncompiled(what).front().title; }

Location placeOf(const query::Uncompiled& what) {
  const Location at{what.compile > 0 ? ObjectKind::Compile : ObjectKind::SourceLine, what.compile, "breaks", what.file, static_cast<int>(what.line)};
  return what.compile > 0 || !what.file.empty() ? at : Location::ofView("breaks");
}

TableRow functionRow(const query::FunctionCoverage& f, const query::Coverage& coverage) {
  using Verdict = query::FunctionCoverage::Verdict;
  TableRow row;
  std::string remedy = f.breakId > 0 ? say(FUSEBOX_TEXT("Coverage", "see the graph break")) : std::string();
  row.location = f.breakId > 0 ? Location{ObjectKind::Break, f.breakId, {}, f.file, static_cast<int>(f.line)} : Location::sourceLine(f.file, static_cast<int>(f.line));
  for (const query::Uncompiled& u : coverage.uncompiled) {
    if (f.why.empty() || u.recovered || u.function != f.name || u.compile != f.compile) continue;
    remedy = firstAdvice(u);
    row.location = placeOf(u);
  }
  row.cells = {textCell(f.name), textCell(query::verdictTitle(f.verdict)), countCell(f.entries), countCell(f.breaks), countCell(f.recompiles),
               textCell(f.why), textCell(remedy), textCell(shortPlace(f.file, f.line))};
  row.tone = f.verdict == Verdict::Not ? 3 : f.verdict == Verdict::Partly ? 2 : 0;
  row.tooltip = f.why.empty() ? f.name : f.name + "\n\n" + f.why;
  return row;
}

TableRow failureRow(const query::Uncompiled& u) {
  TableRow row;
  row.location = placeOf(u);
  row.cells = {textCell(u.function), textCell(u.kind), textCell(u.reason), textCell(firstAdvice(u)), countCell(u.count), textCell(shortPlace(u.file, u.line))};
  row.tone = u.recovered ? 2 : 3;
  row.tooltip = u.reason + (u.hint.empty() ? "" : "\n\n" + u.hint) + (u.recovered ? "\n\n" + say(FUSEBOX_TEXT("Coverage", "A later attempt was compiled.")) : "");
  return row;
}

/// Runs one query and collects its rows; the first error wins.
class Collector {
 public:
  explicit Collector(const session::Reader& reader) : reader_(reader) {}
  template <class Make>
  void rows(const char* sql, TableRows& into, Make make) {
    each(sql, [&](const Statement& s) { into.push_back(make(s)); });
  }
  void each(const char* sql, const std::function<void(const Statement&)>& row) {
    if (!outcome) return;
    outcome = reader_.each(sql, {}, row);
  }
  Result<void> outcome;

 private:
  const session::Reader& reader_;
};

}  // namespace

Result<OverviewModel> loadOverview(const session::Reader& reader) {
  OverviewModel model;
  auto summary = query::summarize(reader);
  if (!summary) return tl::unexpected(summary.error());
  model.summary = std::move(*summary);
  model.holdings = query::holdingsOf(reader);
  model.state = reader.info("state") == "importing" ? "importing" : std::string(session::stateName(reader.state()));
  model.notice = reader.notice();
  for (const char* key : kFactKeys) {
    if (std::string value = reader.info(key); !value.empty()) model.facts.emplace_back(key, std::move(value));
  }
  Collector collect(reader);
  collect.rows(hottestKernels().c_str(), model.kernels, kernelRow);
  for (const auto& f : model.summary.coverage.functions) model.functions.push_back(functionRow(f, model.summary.coverage));
  for (const auto& u : model.summary.coverage.uncompiled) model.failures.push_back(failureRow(u));
  collect.each(kBreaks, [&](const Statement& s) { addBreak(s, model.breaks); });
  collect.rows(kRecompiles, model.recompiles, recompileRow);
  collect.each("SELECT key, value FROM session_info WHERE key LIKE 'config.%' ORDER BY key",
               [&](const Statement& s) { model.facts.emplace_back(s.string(0), s.string(1)); });
  collect.rows(kStages, model.stages, [](const Statement& s) {
    TableRow row;
    row.cells = {textCell(s.string(0)), textCell(s.string(1)), countCell(s.integer(2)), durationCell(s.real(3)),
                 durationCell(s.real(4)), shareCell(s.real(4), s.real(5))};
    return row;
  });
  collect.rows(kLosses, model.losses, [](const Statement& s) {
    TableRow row;
    row.cells = {textCell(s.string(0)), countCell(s.integer(1)), textCell(s.string(2))};
    row.tone = query::leftToEager({s.string(0), {}, 0}) ? 3 : 2;
    return row;
  });
  collect.each(kCalls, [&](const Statement& s) {
    if (s.text(0) == "guard_check") {
      model.guardMs = s.real(2) / 1e6;
    } else {
      model.calls = s.integer(1);
    }
  });
  collect.each("SELECT count(*), sum(kind <> 'extern' AND node_count > 1) FROM fusion_groups",
               [&](const Statement& s) { model.fusedGroups = s.integer(0) > 0 ? s.integer(1) : -1; });
  if (!collect.outcome) return tl::unexpected(collect.outcome.error());
  model.hasOperators = query::hasOperators(reader);
  return model;
}

Result<TableRows> loadOperators(const session::Reader& reader) {
  const auto totals = query::operatorTotals(reader);
  if (!totals) return tl::unexpected(totals.error());
  double all = 0;
  for (const auto& o : *totals) all += static_cast<double>(o.selfNs);
  TableRows rows;
  for (const auto& o : *totals) {
    TableRow row;
    const auto time = [](int64_t ns) { return durationCell(static_cast<double>(ns)); };
    const std::string shapes = o.shapes == 0 ? "" : o.shapes == 1 ? o.shape : say(FUSEBOX_TEXT("Overview", "{} kinds of sizes"), o.shapes);
    row.cells = {textCell(o.name), countCell(o.calls), time(o.selfNs), shareCell(static_cast<double>(o.selfNs), all), time(o.totalNs), time(o.totalNs / o.calls),
                 time(o.leastNs), time(o.mostNs), o.deviceNs > 0 ? time(o.deviceNs) : Cell{"", 0}, textCell(shapes)};
    row.tooltip = o.kind;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace fusebox::views
