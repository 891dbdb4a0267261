#include "views/overview/overview_model.h"

#include <algorithm>

#include "engine/support/text.h"
#include "profiler/query/function_names.h"
#include "profiler/query/operators.h"
#include "profiler/query/program_kernels.h"
#include "profiler/query/recompiles.h"
#include "profiler/session/reader.h"
#include "views/common/units.h"

namespace fusebox::views {
namespace {

using session::Statement;

constexpr const char* kFactKeys[] = {"script", "command", "engine", "torch",        "python",          "fusebox_version",
                                     "device", "cpu",     "os",     "cpu_features", "schema_version", "exit_code",
                                     "cwd",    "hostname", "pid",   "torch_threads"};

// One row per frame, guard and value would repeat the same sentence: equal ones are counted in the summary instead.
std::string hottestKernels() {
  // First which they are, then what they are: a million kernels are not joined for the sake of a hundred.
  return "WITH ran AS MATERIALIZED (SELECT kernel_id, total_ns FROM kernels WHERE " + query::ranKernels() + " AND launches > 0 AND " + query::kernelsOfProgram() +
         ") SELECT kernel_id, name, kind, launches, total_ns, bytes, file, line, (SELECT sum(total_ns) FROM ran) AS all_ns, coalesce(timed_launches, 0) AS timed "
         "FROM kernels WHERE kernel_id IN (SELECT kernel_id FROM ran ORDER BY total_ns DESC LIMIT 100) ORDER BY total_ns DESC";
}
std::string recompiles() {
  return std::string("SELECT failure_id, frame, guard, expected, found, outcome, file, line FROM guard_failures WHERE failure_id IN (") + query::kDecisiveFailures +
         ") ORDER BY failure_id DESC LIMIT 500";
}
constexpr size_t kMostBreaks = 500, kMostStages = 100;
constexpr size_t kMostPlaces = 10;  // in a tooltip
constexpr const char* kLosses = "SELECT what, count, detail FROM losses ORDER BY count DESC";
constexpr const char* kCalls = "SELECT kind, sum(calls) AS all_calls, sum(total_ns) AS total_ns FROM calls GROUP BY kind";

TableRow kernelRow(const Statement& s) {
  TableRow row;
  const double total = s.real("total_ns"), all = s.real("all_ns");
  const query::KernelRuns runs = query::kernelRuns(s.integer("launches"), s.integer("timed"));
  row.location = Location::of(ObjectKind::Kernel, s.integer("kernel_id"));
  row.cells = {textCell(s.string("name")), textCell(s.string("kind")),  countCell(runs.count),
               durationCell(total),   shareCell(total, all),  durationCell(runs.timed > 0 ? total / runs.timed : 0),
               bandwidthCell(s.real("bytes") * runs.ofLaunches, total), textCell(shortPlace(s.string("file"), s.integer("line")))};
  row.tooltip = runs.note;
  return row;
}

TableRow breakRow(const query::Summary::Break& b) {
  TableRow row;
  row.location = {ObjectKind::Break, b.id, {}, b.file, static_cast<int>(b.line)};
  row.cells = {textCell(shortPlace(b.file, b.line)), textCell(b.kind), textCell(b.reason), textCell(b.hint), countCell(b.count)};
  row.tooltip = b.reason + (b.hint.empty() ? "" : "\n\n" + b.hint) + "\n\n" + b.file + ":" + std::to_string(b.line);
  return row;
}

/// Those that most compilations met first.
TableRows breakRows(const std::vector<query::Summary::Break>& breaks) {
  std::vector<const query::Summary::Break*> sorted;
  for (const auto& b : breaks) sorted.push_back(&b);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->count > b->count; });
  if (sorted.size() > kMostBreaks) sorted.resize(kMostBreaks);
  TableRows rows;
  for (const auto* b : sorted) rows.push_back(breakRow(*b));
  return rows;
}

TableRows stageRows(const std::vector<query::StageSum>& stages) {
  double all = 0;
  for (const auto& s : stages) all += static_cast<double>(s.ownNs);
  TableRows rows;
  for (size_t i = 0; i < stages.size() && i < kMostStages; ++i) {
    const query::StageSum& s = stages[i];
    const auto total = static_cast<double>(s.totalNs), own = static_cast<double>(s.ownNs);
    TableRow row;
    row.cells = {textCell(s.name), textCell(s.phase), countCell(s.runs), durationCell(total), durationCell(own), shareCell(own, all)};
    rows.push_back(std::move(row));
  }
  return rows;
}

TableRow recompileRow(const Statement& s) {
  TableRow row;
  row.location = {ObjectKind::Failure, s.integer("failure_id"), {}, s.string("file"), static_cast<int>(s.integer("line"))};
  row.cells = {textCell(s.string("frame")), textCell(s.string("guard")), textCell(s.string("expected")),
               textCell(s.string("found")), textCell(s.string("outcome")), textCell(shortPlace(s.string("file"), s.integer("line")))};
  if (s.text("outcome") == "limit") row.tone = 3;
  return row;
}

std::string firstAdvice(const query::Uncompiled& what) { return query::adviseUncompiled(what).front().title; }

Location placeOf(const query::Uncompiled& what) {
  const Location at{what.compile > 0 ? ObjectKind::Compile : ObjectKind::SourceLine, what.compile, "breaks", what.file, static_cast<int>(what.line)};
  return what.compile > 0 || !what.file.empty() ? at : Location::ofView("breaks");
}

TableRow functionRow(const query::FunctionCoverage& f, const query::Coverage& coverage, const query::Holdings& holdings) {
  using Verdict = query::FunctionCoverage::Verdict;
  TableRow row;
  std::string remedy = f.breakId > 0 ? say(FUSEBOX_TEXT("Coverage", "see the graph break")) : std::string();
  row.location = f.breakId > 0 ? Location{ObjectKind::Break, f.breakId, {}, f.file, static_cast<int>(f.line)} : Location::sourceLine(f.file, static_cast<int>(f.line));
  for (const query::Uncompiled& u : coverage.uncompiled) {
    if (f.why.empty() || u.recovered || u.function != f.name || u.compile != f.compile) continue;
    remedy = firstAdvice(u);
    row.location = placeOf(u);
  }
  row.cells = {textCell(f.name), textCell(f.ofLibrary ? say(FUSEBOX_TEXT("Coverage", "library")) : std::string()), textCell(query::verdictTitle(f.verdict)), countCell(f.entries),
               f.breaks > 0 || holdings.has(query::Holding::Breaks) ? countCell(f.breaks) : textCell("–"), f.recompiles > 0 || holdings.has(query::Holding::Recompiles) ? countCell(f.recompiles) : textCell("–"),
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

namespace {

Result<OverviewModel> beginOverview(const session::Reader& reader, Result<query::Summary> summary) {
  OverviewModel model;
  if (!summary) return tl::unexpected(summary.error());
  model.summary = std::move(*summary);
  model.holdings = query::holdingsOf(reader);
  model.state = reader.info("state") == "importing" ? "importing" : std::string(session::stateName(reader.state()));
  model.notice = reader.notice();
  for (const char* key : kFactKeys) {
    if (std::string value = reader.info(key); !value.empty()) model.facts.emplace_back(key, std::move(value));
  }
  return model;
}

}  // namespace

Result<OverviewModel> loadOverviewStart(const session::Reader& reader) { return beginOverview(reader, query::summarizeCounts(reader)); }

Result<OverviewModel> loadOverview(const session::Reader& reader) {
  auto begun = beginOverview(reader, query::summarize(reader));
  if (!begun) return begun;
  OverviewModel model = std::move(*begun);
  Collector collect(reader);
  collect.rows(hottestKernels().c_str(), model.kernels, kernelRow);
  for (const auto& f : model.summary.coverage.functions) model.functions.push_back(functionRow(f, model.summary.coverage, model.holdings));
  for (const auto& u : model.summary.coverage.uncompiled) model.failures.push_back(failureRow(u));
  model.breaks = breakRows(model.summary.graphBreaks);
  model.stages = stageRows(model.summary.stages);
  collect.rows(recompiles().c_str(), model.recompiles, recompileRow);
  collect.each("SELECT key, value FROM session_info WHERE key LIKE 'config.%' ORDER BY key",
               [&](const Statement& s) { model.facts.emplace_back(s.string("key"), s.string("value")); });
  collect.rows(kLosses, model.losses, [](const Statement& s) {
    TableRow row;
    row.cells = {textCell(s.string("what")), countCell(s.integer("count")), textCell(s.string("detail"))};
    row.tone = query::leftToEager({s.string("what"), {}, 0}) ? 3 : 2;
    return row;
  });
  collect.each(kCalls, [&](const Statement& s) {
    if (s.text("kind") == "guard_check") {
      model.guardMs = s.real("total_ns") / 1e6;
    } else {
      model.calls = s.integer("all_calls");
    }
  });
  // Stock's logs seldom say of which nodes a kernel is made: what was fused is not known then.
  collect.each("SELECT count(*) AS groups, coalesce(sum(nodes > 1), 0) AS fused FROM (SELECT m.group_id, count(*) AS nodes FROM t_fusion_member m GROUP BY m.group_id) m "
               "JOIN t_fusion_group g ON g.id = m.group_id WHERE g.kind <> 'extern'",
               [&](const Statement& s) { model.fusedGroups = s.integer("groups") > 0 ? s.integer("fused") : -1; });
  if (!collect.outcome) return tl::unexpected(collect.outcome.error());
  model.hasOperators = query::hasOperators(reader);
  return model;
}

/// The line that calls it, or the one with most of its time.
static std::string placesOf(const query::OperatorTotals& o) {
  if (o.places.empty()) return {};
  const std::string first = shortPlace(o.places[0].file, o.places[0].line);
  return o.places.size() == 1 ? first : say(FUSEBOX_TEXT("Overview", "{} and {} more"), first, o.places.size() - 1);
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
    const auto ifAny = [](int64_t ns) { return ns > 0 ? durationCell(static_cast<double>(ns)) : Cell{"", 0}; };
    const auto bytes = [](int64_t amount) { return bytesCell(static_cast<double>(amount)); };  // an operator may give more back than it takes
    row.cells = {textCell(o.name), countCell(o.calls), time(o.selfNs), shareCell(static_cast<double>(o.selfNs), all), time(o.totalNs), time(o.totalNs / o.calls),
                 time(o.leastNs), time(o.mostNs), ifAny(o.deviceNs), ifAny(o.deviceTotalNs), bytes(o.cpu.ownBytes), bytes(o.cpu.bytes),
                 bytes(o.device.ownBytes), bytes(o.device.bytes), textCell(placesOf(o)), textCell(shapes)};
    row.tooltip = o.kind;
    for (size_t i = 0; i < o.places.size() && i < kMostPlaces; ++i) {
      const auto& p = o.places[i];
      row.tooltip += fmt::format("\n{}:{}  {} × {}", p.file, p.line, p.calls, formatDuration(static_cast<double>(p.selfNs)));
    }
    if (!o.places.empty()) row.location = Location::sourceLine(o.places[0].file, static_cast<int>(o.places[0].line));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace fusebox::views
