#include "profiler/export/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "profiler/export/html_text.h"
#include "profiler/query/breaks.h"
#include "profiler/query/recompiles.h"
#include "profiler/query/slowness.h"
#include "profiler/query/summary.h"

namespace fusebox::exporting {
namespace {

using session::Statement;

constexpr int64_t kMostRows = 500;
constexpr size_t kMostCodeBytes = 64 << 10;
constexpr size_t kMostPictures = 12, kMostPictureNodes = 2000;

/// In the unit that leaves one to three digits before the point: "28.6 s", "413 µs".
std::string duration(double ns) {
  struct Unit {
    double ns;
    const char* name;
  };
  constexpr Unit kUnits[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}};
  for (const auto& [size, name] : kUnits)
    if (ns >= size) return fmt::format("{:.{}f} {}", ns / size, ns >= 100 * size ? 0 : ns >= 10 * size ? 1 : 2, name);
  return fmt::format("{:.0f} ns", ns);
}
std::string milliseconds(double ms) { return duration(ms * 1e6); }

/// A column of a report's table: text, whole number, time in ns, or code that unfolds.
enum class Show : uint8_t { Text, Number, Time, Code };
struct Column {
  const char* title;  ///< also the name that the query gives it
  Show show = Show::Text;
};
struct Section {
  const char* title;
  const char* sql;
  std::initializer_list<Column> columns;
  const char* empty;  ///< said when there is no row
};

const Section kSections[] = {
    {"Graph breaks",
     "SELECT count(*) AS Count, frame AS Frame, kind AS Kind, reason AS Reason, hint AS Hint, coalesce(file || ':' || line, '') AS Place FROM graph_breaks GROUP BY kind, "
     "reason, hint, file, line ORDER BY min(break_id)",
     {{"Count", Show::Number}, {"Frame"}, {"Kind"}, {"Reason"}, {"Hint"}, {"Place"}},
     "No graph break was recorded."},
    {"Recompiles",
     "SELECT frame AS Frame, guard AS Guard, expected AS Expected, found AS Found, outcome AS Outcome, coalesce(file || ':' || line, '') AS Place FROM guard_failures ORDER BY "
     "failure_id",
     {{"Frame"}, {"Guard"}, {"Expected"}, {"Found"}, {"Outcome"}, {"Place"}},
     "No guard failed."},
    {"Compiles",
     "SELECT compile_id AS Id, frame AS Frame, kind AS Kind, status AS Status, dur_ns AS Time, cache AS Cache, (SELECT count(*) FROM guards g WHERE g.compile_id = "
     "c.compile_id) AS Guards, error AS Error, coalesce(file || ':' || line, '') AS Place FROM compiles c ORDER BY compile_id",
     {{"Id", Show::Number},
      {"Frame"},
      {"Kind"},
      {"Status"},
      {"Time", Show::Time},
      {"Cache"},
      {"Guards", Show::Number},
      {"Error"},
      {"Place"}},
     "Nothing was compiled."},
    {"Compile time by stage",
     "SELECT name AS Stage, phase AS Phase, count(*) AS Times, sum(dur_ns) AS Total, max(dur_ns) AS Longest FROM stages WHERE end_ns IS NOT NULL GROUP BY name, phase "
     "ORDER BY sum(dur_ns) DESC",
     {{"Stage"}, {"Phase"}, {"Times", Show::Number}, {"Total", Show::Time}, {"Longest", Show::Time}},
     "No stage was recorded."},
    {"Graphs",
     "SELECT graph_id AS Id, compile_id AS Compile, stage AS Stage, direction AS Direction, node_count AS Nodes, edge_count AS Edges, coalesce(file || ':' || line, '') AS Place, text AS Text "
     "FROM graphs ORDER BY graph_id",
     {{"Id", Show::Number},
      {"Compile", Show::Number},
      {"Stage"},
      {"Direction"},
      {"Nodes", Show::Number},
      {"Edges", Show::Number},
      {"Place"},
      {"Text", Show::Code}},
     "No graph was recorded."},
    {"Kernels",
     "SELECT name AS Kernel, kind AS Kind, op AS Operator, launches AS Launches, total_ns AS Total, min_ns AS Shortest, max_ns AS Longest, reason AS Why, coalesce(file || ':' || line, '') AS Place, loop_ir AS Code "
     "FROM kernels ORDER BY total_ns DESC, kernel_id",
     {{"Kernel"},
      {"Kind"},
      {"Operator"},
      {"Launches", Show::Number},
      {"Total", Show::Time},
      {"Shortest", Show::Time},
      {"Longest", Show::Time},
      {"Why"},
      {"Place"},
      {"Code", Show::Code}},
     "No kernel was recorded."},
    {"Caches",
     "SELECT cache AS Cache, outcome AS Outcome, count(*) AS Count, sum(saved_ns) AS Saved, max(reason) AS Reason FROM cache_events GROUP BY cache, outcome",
     {{"Cache"}, {"Outcome"}, {"Count", Show::Number}, {"Saved", Show::Time}, {"Reason"}},
     "No cache was asked."},
    {"Not in this session",
     "SELECT what AS What, count AS Count, detail AS Why FROM losses ORDER BY what",
     {{"What"}, {"Count", Show::Number}, {"Why"}},
     "Nothing is known to be missing."},
};

std::string cell(const Statement& row, const char* column, Show show) {
  if (row.isNull(column)) return show == Show::Number || show == Show::Time ? "<td class=n></td>" : "<td></td>";
  switch (show) {
    case Show::Number:
      return fmt::format("<td class=n>{}</td>", row.integer(column));
    case Show::Time:
      return fmt::format("<td class=n>{}</td>", duration(static_cast<double>(row.integer(column))));
    case Show::Code: {
      const auto text = row.text(column);
      if (text.empty()) return "<td></td>";
      return fmt::format("<td><details><summary>show</summary><pre>{}{}</pre></details></td>",
                         escaped(text.substr(0, kMostCodeBytes)), text.size() > kMostCodeBytes ? "\n… (cut)" : "");
    }
    default:
      return "<td>" + escaped(row.text(column)) + "</td>";
  }
}

/// What the command line says about it, remedies and diffs too.
void writeText(const char* title, const std::string& text, std::ostream& out) {
  if (!text.empty()) out << "<h2>" << title << "</h2>\n<pre>" << escaped(text) << "</pre>\n";
}

Result<void> writeAdvice(const session::Reader& reader, const query::Summary& summary, std::ostream& out) {
  auto slowness = query::whySlow(reader);
  if (!slowness) return tl::unexpected(slowness.error());
  writeText("Why is it slow?", query::toText(*slowness), out);
  auto breaks = query::breakSummaries(reader);
  if (!breaks) return tl::unexpected(breaks.error());
  if (!breaks->empty() || !summary.coverage.uncompiled.empty()) writeText("What helps against graph breaks", query::toText(reader, *breaks, summary.coverage.uncompiled), out);
  auto chains = query::recompileChains(reader, false);
  if (!chains) return tl::unexpected(chains.error());
  if (!chains->empty()) writeText("Why it was compiled again", query::toText(reader, *chains), out);
  return {};
}

Result<int64_t> writeSection(const session::Reader& reader, const Section& section, std::ostream& out) {
  int64_t rows = 0;
  out << "<h2>" << section.title << "</h2>\n";
  auto read = reader.each(section.sql, {}, [&](const Statement& row) {
    if (rows++ == 0) {
      out << "<table><tr>";
      for (const auto& column : section.columns) {
        out << (column.show == Show::Number || column.show == Show::Time ? "<th class=n>" : "<th>") << column.title
            << "</th>";
      }
      out << "</tr>\n";
    }
    if (rows > kMostRows) return;
    out << "<tr>";
    for (const auto& column : section.columns) out << cell(row, column.title, column.show);
    out << "</tr>\n";
  });
  if (!read) return tl::unexpected(read.error());
  if (rows == 0) {
    out << "<p class=note>" << section.empty << "</p>\n";
  } else {
    out << "</table>\n";
    if (rows > kMostRows) out << fmt::format("<p class=note>The first {} of {} rows.</p>\n", kMostRows, rows);
  }
  return rows;
}

/// Graphs of the stage that says most, as they lie in the graph view.
Result<void> writePictures(const session::Reader& reader, const GraphPicture& draw, std::ostream& out) {
  if (!draw) return {};
  auto all = query::graphs(reader);
  if (!all) return tl::unexpected(all.error());
  std::vector<query::GraphRow> drawn;
  for (const char* stage : query::kDrawnStages)
    if (drawn.empty()) std::ranges::copy_if(*all, std::back_inserter(drawn), [&](const query::GraphRow& row) { return row.stage == stage && row.nodes > 0; });
  if (drawn.empty()) return {};
  out << "<h2>Pictures of graphs</h2>\n";
  size_t left = 0;
  for (const query::GraphRow& row : drawn) {
    if (&row - drawn.data() >= static_cast<std::ptrdiff_t>(kMostPictures) || row.nodes > static_cast<int64_t>(kMostPictureNodes)) {
      ++left;
      continue;
    }
    auto graph = query::loadGraph(reader, row.id);
    if (!graph) return tl::unexpected(graph.error());
    auto picture = draw(*graph);
    if (!picture) return tl::unexpected(picture.error());
    const size_t start = picture->find("<svg");
    if (start == std::string::npos) return fail(ErrorCode::Internal, "the picture of a graph is no SVG");
    out << "<h3>" << escaped(fmt::format("Graph {}, {} {}: {}", row.id, row.stage, row.direction, row.frame)) << "</h3>\n<div class=graph>"
        << std::string_view(*picture).substr(start) << "</div>\n";
  }
  if (left > 0) out << fmt::format("<p class=note>{} more graphs, or larger ones, are not drawn; fusebox diagram draws each.</p>\n", left);
  return {};
}

void writePhases(const query::Summary& s, std::ostream& out) {
  const std::pair<const char*, double> phases[] = {
      {"capture", s.captureMs}, {"aot", s.aotMs}, {"inductor", s.inductorMs}, {"codegen", s.codegenMs}};
  double most = 1e-9;
  for (const auto& [name, ms] : phases) most = std::max(most, ms);
  out << "<table>";
  for (const auto& [name, ms] : phases) {
    out << fmt::format(
        "<tr><td>{}</td><td class=n>{}</td><td style=\"width:60%\"><span class=bar "
        "style=\"width:{:.1f}%\"></span></td></tr>",
        name, milliseconds(ms), std::max(0.0, ms) / most * 100);
  }
  out << "</table>\n";
}

}  // namespace

Result<int64_t> writeHtmlReport(const session::Reader& reader, std::ostream& out, const GraphPicture& draw) {
  auto summary = query::summarize(reader);
  if (!summary) return tl::unexpected(summary.error());
  const auto& s = *summary;
  const std::string script =
      reader.info("imported_from").empty() ? reader.info("script") : reader.info("imported_from");
  const std::string title =
      "Fusebox: " + (script.empty() ? std::string("session") : script.substr(script.rfind('/') + 1));
  out << "<!DOCTYPE html>\n<html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">"
      << "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>"
      << escaped(title) << "</title>\n"
      << kHtmlStyle << "\n<h1>" << escaped(title) << "</h1>\n<table>";
  const auto fact = [&](const char* name, const std::string& value) {
    if (!value.empty()) out << "<tr><th>" << name << "</th><td>" << escaped(value) << "</td></tr>";
  };
  fact("Engine", s.engine);
  fact("Format", reader.info("imported_format"));
  fact("PyTorch", s.torch);
  fact("Python", s.python);
  fact("Device", s.device);
  fact("Command", s.command);
  fact("Captured", fmt::format("{} frames, {} compiles, {} graphs", s.frames, s.compiles, s.graphs));
  fact("Run", query::runSentence(s));
  fact("Compile time", milliseconds(s.totalCompileMs));
  fact("Caches", fmt::format("{} hits, {} misses, {} bypasses{}", s.cacheHits, s.cacheMisses, s.cacheBypasses, s.cacheDisabled > 0 ? fmt::format(", {} without: {}", s.cacheDisabled == 1 ? "1 graph" : fmt::format("{} graphs", s.cacheDisabled), s.cacheDisabledBy.empty() ? "it is disabled" : s.cacheDisabledBy) : ""));
  out << "</table>\n";
  writePhases(s, out);
  if (auto advised = writeAdvice(reader, s, out); !advised) return tl::unexpected(advised.error());
  if (auto drawn = writePictures(reader, draw, out); !drawn) return tl::unexpected(drawn.error());
  int64_t rows = 0;
  for (const auto& section : kSections) {
    auto written = writeSection(reader, section, out);
    if (!written) return written;
    rows += *written;
  }
  out << "</html>\n";
  return rows;
}

}  // namespace fusebox::exporting
