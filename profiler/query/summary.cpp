#include "profiler/query/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "profiler/query/break_groups.h"
#include "profiler/query/function_names.h"
#include "profiler/query/holdings.h"
#include "profiler/query/program_kernels.h"
#include "profiler/query/recompiles.h"

namespace fusebox::query {
namespace {

using session::Reader;
using session::Statement;

Result<void> readCounts(const Reader& reader, Summary& out) {
  // Not of the view `kernels`, which would join a million of them to count those that ran; and of their table only the index, and the few
  // that are launched to choose shapes (kOfProgram): the rest is scattered over a file that no disk has read yet.
  return reader.each(
      "SELECT (SELECT count(*) FROM t_frame) AS frames, (SELECT count(*) FROM t_compile WHERE status IS NOT 'saved') AS compiles, (SELECT count(*) FROM t_compile WHERE kind = 'backward') AS backward, "
      // A folder of the compiler's own notes has later stages only: one graph each compile.
      "(SELECT CASE WHEN captured > 0 THEN captured ELSE later END FROM (SELECT coalesce(sum(stage = 'captured'), 0) AS captured, "
      "count(DISTINCT CASE WHEN direction IS NOT 'backward' THEN compile_id END) AS later FROM t_graph)) AS graphs, "
      "k.generated, k.extern, (SELECT coalesce(sum(r.launches), 0) FROM (SELECT kernel_id, sum(launches) AS launches FROM t_launch_stats GROUP BY kernel_id "
      "UNION ALL SELECT kernel_id, launches FROM t_gpu_stats WHERE kernel_id NOT IN (SELECT kernel_id FROM t_launch_stats)) r "
      "WHERE r.kernel_id NOT IN (SELECT id FROM t_kernel WHERE kind = 'eager' AND op = 'autotune')) AS launches, "
      "r.generated_run, r.extern_run, r.eager_run "
      "FROM (SELECT coalesce(sum(kind IN ('generated', 'template')), 0) AS generated, coalesce(sum(kind = 'extern'), 0) AS extern FROM t_kernel) k, "
      "(SELECT coalesce(sum(kind IN ('generated', 'template')), 0) AS generated_run, coalesce(sum(kind = 'extern'), 0) AS extern_run, "
      "coalesce(sum(kind = 'eager' AND coalesce(op, '') <> 'autotune'), 0) AS eager_run FROM t_kernel "
      "WHERE id IN (SELECT kernel_id FROM t_launch_stats UNION SELECT kernel_id FROM t_gpu_stats)) r",
      {}, [&](const Statement& row) {
        out.frames = row.integer("frames");
        out.compiles = row.integer("compiles");
        out.backwardCompiles = row.integer("backward");
        out.graphs = row.integer("graphs");
        out.kernels = row.integer("generated");
        out.externCalls = row.integer("extern");
        out.launches = row.integer("launches");
        out.kernelsRun = row.integer("generated_run");
        out.externCallsRun = row.integer("extern_run");
        out.eagerRun = row.integer("eager_run");
      });
}

Result<void> readBreaks(const Reader& reader, Summary& out) {
  auto groups = breakGroups(reader);
  if (!groups) return tl::unexpected(groups.error());
  std::map<std::tuple<std::string, std::string, std::string, int64_t, StackPlace>, size_t> known;
  for (const BreakGroup& g : *groups) {
    Summary::Break b{g.kind, breakReason(g.reason), g.hint, g.file, g.line, g.count, g.first, g.inside};
    const auto [at, isNew] = known.try_emplace({b.kind, b.reason, b.file, b.line, b.inside}, out.graphBreaks.size());
    if (isNew) out.graphBreaks.push_back(std::move(b));
    else out.graphBreaks[at->second].count += g.count;
  }
  auto coverage = coverageOf(reader, *groups);
  if (!coverage) return tl::unexpected(coverage.error());
  out.coverage = std::move(*coverage);
  return {};
}

Result<void> readRecompiles(const Reader& reader, Summary& out) {
  return reader.each(
      "SELECT frame, guard, expected, found, file, outcome, line FROM guard_failures WHERE failure_id IN (" + std::string(kDecisiveFailures) + ") ORDER BY failure_id", {},
      [&](const Statement& row) {
        ++(row.text("outcome") == "limit" ? out.limitsReached : out.compiledAgain);
        out.recompiles.push_back({row.string("frame"), sourceWords(row.text("guard")), row.string("expected"), row.string("found"), row.string("file"), row.string("outcome"),
                                  row.integer("line")});
      });
}

Result<void> readCompileTimes(const Reader& reader, Summary& out) {
  auto stages = stageSums(reader);
  if (!stages) return tl::unexpected(stages.error());
  out.stages = std::move(*stages);
  const auto slot = [&](std::string_view phase) -> double* {
    if (phase == "capture") return &out.captureMs;
    if (phase == "aot") return &out.aotMs;
    if (phase == "inductor") return &out.inductorMs;
    if (phase == "codegen") return &out.codegenMs;
    return nullptr;
  };
  for (const StageSum& stage : out.stages) {
    if (double* ms = slot(stage.phase)) *ms += static_cast<double>(stage.ownNs) / 1e6;
  }
  out.totalCompileMs = out.captureMs + out.aotMs + out.inductorMs + out.codegenMs;
  // What is compiled when a backward pass first runs is beside its forward compile, not within it. An importer has each compile's length
  // from its log, to which its stages need not add up.
  const bool isImported = !reader.info("imported_from").empty();
  // A stage around a compile (PyTorch's "dynamo") is longer than it: what is outside is not the compile's.
  if (isImported) {
    auto read = reader.each("SELECT s.phase, total(max(0, c.start_ns - s.start_ns) + max(0, s.end_ns - c.end_ns)) AS outside_ns FROM t_stage s JOIN t_compile c ON c.id = s.compile_id "
                            "WHERE s.parent_id IS NULL AND s.start_ns < c.end_ns AND s.end_ns > c.start_ns GROUP BY s.phase", {}, [&](const Statement& s) {
      if (double* ms = slot(s.text("phase"))) *ms = std::max(0.0, *ms - s.real("outside_ns") / 1e6);
    });
    if (!read) return read;
  }
  constexpr const char* kCompiles =
      "SELECT sum(c.dur_ns) AS dur_ns FROM compiles c LEFT JOIN compiles p ON p.compile_id = c.parent_compile_id "
      "WHERE p.compile_id IS NULL OR c.start_ns >= p.start_ns + p.dur_ns";
  return reader.each(kCompiles, {}, [&](const Statement& row) {
    if (row.isNull("dur_ns")) return;
    const double ms = static_cast<double>(row.integer("dur_ns")) / 1e6;
    out.totalCompileMs = isImported && ms > 0 ? ms : std::max(out.totalCompileMs, ms);
  });
}

Result<void> readRunTimes(const Reader& reader, Summary& out) {
  int64_t ns = 0;
  auto calls = reader.each("SELECT coalesce(sum(total_ns), 0) AS total_ns FROM calls WHERE kind = 'call'", {},
                           [&](const Statement& row) { ns = row.integer("total_ns"); });
  if (!calls) return calls;
  if (ns == 0) {
    auto kernels = reader.each("WITH k AS MATERIALIZED (SELECT total_ns FROM kernels WHERE " + ranKernels() + " AND " + kernelsOfProgram() + ") SELECT coalesce(sum(total_ns), 0) AS all_ns FROM k", {},
                               [&](const Statement& row) { ns = row.integer("all_ns"); });
    if (!kernels) return kernels;
    out.runIsKernels = ns > 0;
  }
  out.runMs = static_cast<double>(ns) / 1e6;
  return reader.each(
      "SELECT kernel_id, launches, total_ns, bytes, name, kind, file, line, coalesce(timed_launches, 0) AS timed_launches FROM kernels WHERE kernel_id IN "
      "(SELECT kernel_id FROM kernels WHERE " + ranKernels() + " AND launches > 0 AND " + kernelsOfProgram() + " ORDER BY total_ns DESC LIMIT 5) ORDER BY total_ns DESC",
      {}, [&](const Statement& row) {
        out.hottest.push_back({row.integer("kernel_id"), kernelRuns(row.integer("launches"), row.integer("timed_launches")).count, row.integer("total_ns"), row.integer("bytes"), row.string("name"), row.string("kind"),
                               row.string("file"), row.integer("line")});
      });
}

Result<void> readCache(const Reader& reader, Summary& out) {
  const auto count = [&](const Statement& row) {
    const std::string_view outcome = row.text("outcome");
    if (outcome == "hit") out.cacheHits += row.integer("count");
    if (outcome == "miss") out.cacheMisses += row.integer("count");
    if (outcome == "bypass") out.cacheBypasses += row.integer("count");
    if (outcome == "disabled") out.cacheDisabled += row.integer("count"), out.cacheDisabledBy = row.string("why");
  };
  // One lookup of each graph: what was captured, and what PyTorch keeps around a graph, are looked up beside it.
  for (const char* sql : {"SELECT outcome, count(*) AS count, group_concat(DISTINCT nullif(reason, '')) AS why FROM cache_events WHERE cache IN ('graph', 'fx_graph') GROUP BY outcome",
                          "SELECT cache AS outcome, count(*) AS count, '' AS why FROM compiles WHERE cache IS NOT NULL GROUP BY cache"}) {
    auto read = reader.each(sql, {}, count);
    if (!read || out.cacheHits + out.cacheMisses + out.cacheBypasses + out.cacheDisabled > 0) return read;
  }
  return {};
}

Result<void> readLosses(const Reader& reader, Summary& out) {
  auto read = reader.each("SELECT what, detail, count FROM losses ORDER BY what", {}, [&](const Statement& row) {
    out.losses.push_back({row.string("what"), row.string("detail"), row.integer("count")});
  });
  if (read && !reader.notice().empty()) out.losses.push_back({"unread", reader.notice(), 1});
  return read;
}

}  // namespace

Result<Summary> summarizeCounts(const Reader& reader) {
  Summary out;
  out.engine = reader.info("engine");
  out.torch = reader.info("torch");
  out.python = reader.info("python");
  out.device = reader.info("device");
  out.command = reader.info("command");
  out.importedFormat = reader.info("imported_format");
  out.state = session::stateName(reader.state());
  const Holdings holdings = holdingsOf(reader);
  out.hasRunTimes = holdings.has(Holding::RunTimes);
  out.hasLaunches = holdings.has(Holding::Launches);
  out.hasBreaks = holdings.has(Holding::Breaks);
  out.hasRecompiles = holdings.has(Holding::Recompiles);
  out.hasCompileTimes = holdings.has(Holding::CompileTimes);
  if (auto done = readCounts(reader, out); !done) return tl::unexpected(done.error());
  return out;
}

Result<Summary> summarize(const Reader& reader) {
  auto counted = summarizeCounts(reader);
  if (!counted) return counted;
  Summary out = std::move(*counted);
  using Part = Result<void> (*)(const Reader&, Summary&);
  for (const Part part : {readBreaks, readRecompiles, readCompileTimes, readRunTimes, readCache, readLosses}) {
    if (auto done = part(reader, out); !done) return tl::unexpected(done.error());
  }
  return out;
}

nlohmann::json toJson(const Summary& s) {
  using nlohmann::json;
  // Names that the user's program chose may hold anything; what is not UTF-8 is replaced when the text is written.
  json breaks = json::array(), recompiles = json::array(), losses = json::array(), hottest = json::array();
  for (const auto& b : s.graphBreaks) {
    breaks.push_back({{"kind", b.kind}, {"reason", b.reason}, {"hint", b.hint}, {"file", b.file}, {"line", b.line},
                      {"count", b.count}, {"inside", toJson(b.inside)}});
  }
  for (const auto& r : s.recompiles) {
    recompiles.push_back({{"frame", r.frame}, {"guard", r.guard}, {"expected", r.expected}, {"found", r.found},
                          {"file", r.file}, {"line", r.line}, {"outcome", r.outcome}});
  }
  json functions = json::array();
  for (const auto& f : s.coverage.functions) {
    functions.push_back({{"function", f.name}, {"file", f.file}, {"line", f.line}, {"verdict", verdictName(f.verdict)},
                         {"entries", f.entries}, {"restarts", f.restarts}, {"breaks", f.breaks},
                         {"recompiles", f.recompiles}, {"why", f.why}, {"library", f.ofLibrary}});
  }
  for (const auto& l : s.losses) losses.push_back({{"what", l.what}, {"count", l.count}, {"detail", l.detail}});
  for (const auto& h : s.hottest) {
    hottest.push_back({{"kernel", h.kernel}, {"name", h.name}, {"kind", h.kind}, {"launches", h.launches},
                       {"total_ns", h.totalNs}, {"bytes", h.bytes}, {"file", h.file}, {"line", h.line}});
  }
  nlohmann::json out = {{"engine", s.engine},
          {"torch", s.torch},
          {"python", s.python},
          {"device", s.device},
          {"state", s.state},
          {"frames", s.frames},
          {"compiles", s.compiles},
          {"backward_compiles", s.backwardCompiles},
          {"graphs", s.graphs},
          {"functions", functions},
          {"not_compiled", toJson(s.coverage.uncompiled)},
          {"graph_breaks", breaks},
          {"recompiles", recompiles},
          {"kernels", s.kernels},
          {"launches", s.launches},
          {"extern_calls", s.externCalls},
          {"kernels_run", s.hasLaunches ? json(s.kernelsRun) : json()},
          {"extern_calls_run", s.hasLaunches ? json(s.externCallsRun) : json()},
          {"compile_ms",
           {{"capture", s.captureMs},
            {"aot", s.aotMs},
            {"inductor", s.inductorMs},
            {"codegen", s.codegenMs},
            {"total", s.totalCompileMs}}},
          {"run_ms", s.runMs},
          {"cache", {{"hits", s.cacheHits}, {"misses", s.cacheMisses}, {"bypasses", s.cacheBypasses}, {"disabled", s.cacheDisabled}, {"disabled_by", s.cacheDisabledBy}}},
          {"hottest", hottest},
          {"losses", losses}};
  if (!s.importedFormat.empty()) out["imported_format"] = s.importedFormat;
  return out;
}

}  // namespace fusebox::query
