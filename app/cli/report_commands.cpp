// Commands that read a session and say something about it: summary, query, export.
#include <fmt/format.h>

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>

#include "app/cli/colour.h"
#include "app/cli/commands.h"
#include "app/cli/graph_drawing.h"
#include "app/cli/open_input.h"
#include "profiler/compare/ranks.h"
#include "profiler/export/chrome_trace.h"
#include "profiler/export/html_report.h"
#include "profiler/export/output_file.h"
#include "profiler/export/perfetto_trace.h"
#include "profiler/export/redacted_session.h"
#include "profiler/export/tables.h"
#include "profiler/query/memory.h"
#include "profiler/query/slowness.h"
#include "profiler/query/summary.h"
#include "profiler/session/reader.h"

namespace fusebox::cli {

int complain(const Error& error) {
  fmt::print(stderr, "fusebox: {}\n", printable(error.context.empty() ? error.message : error.context + ": " + error.message));
  return error.code == ErrorCode::InvalidArgument ? kUsage : kUnreadable;
}

int complainUsage(const std::string& message) {
  fmt::print(stderr, "fusebox: {}\n", message);
  return kUsage;
}

int showRanks(const std::vector<std::string>& files, bool json) {
  auto report = compare::compareRanks(files);
  if (!report) return complain(report.error());
  fmt::print("{}", json ? compare::toJson(*report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n" : printable(compare::toText(*report)));
  return kOk;
}

int showSummary(const SummaryOptions& options) {
  if (options.files.size() > 1) return showRanks(options.files, options.json);
  auto reader = openInput(options.files.front());
  if (!reader) return complain(reader.error());
  auto summary = query::summarize(**reader);
  if (!summary) return complain(summary.error());
  if (options.json) {
    fmt::print("{}\n", query::toJson(*summary).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}\n{}", options.files.front(), coloured(printable(query::toText(*summary)), STDOUT_FILENO));
  }
  return kOk;
}

namespace {

template <class T>
int printReport(const Result<T>& report, bool json) {
  if (!report) return complain(report.error());
  fmt::print("{}", json ? query::toJson(*report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n" : printable(query::toText(*report)));
  return kOk;
}

}  // namespace

int explainMemory(const MemoryOptions& options) {
  auto reader = openInput(options.file);
  if (!reader) return complain(reader.error());
  return options.graph > 0 ? printReport(query::lifetimesOf(**reader, options.graph), options.json) : printReport(query::memoryOf(**reader), options.json);
}

int explainTime(const WhyOptions& options) {
  auto reader = openInput(options.file);
  if (!reader) return complain(reader.error());
  return printReport(query::whySlow(**reader, options.wholeRun), options.json);
}

int runQuery(const QueryOptions& options) {
  auto reader = openInput(options.file);
  if (!reader) return complain(reader.error());
  // A table for a program has each byte; a terminal takes no commands from it.
  const bool isTerminal = isatty(STDOUT_FILENO) != 0;
  const auto writer = exporting::TableWriter::of(options.json ? "json" : options.format, [&](std::string text) { std::cout << (isTerminal ? printable(text) : text); });
  const auto truncated = (*reader)->query(options.sql, options.limit, [&](const std::vector<std::string>& names) { writer->columns(names); },
                                          [&](std::vector<session::Cell> cells) { writer->row(std::move(cells)); });
  if (!truncated) {
    std::cout.flush();
    const bool sql = truncated.error().code == ErrorCode::InvalidArgument;
    const int code = complain(sql ? Error{truncated.error().code, truncated.error().message, {}} : truncated.error());
    if (sql) fmt::print(stderr, "  the views and their columns: profiler/session/SCHEMA.md, or "
                                "\"SELECT name, sql FROM sqlite_temp_schema\"\n");
    return code;
  }
  writer->end(*truncated);
  std::cout.flush();
  return kOk;
}

namespace {

using Exporter = std::function<Result<int64_t>(const session::Reader&, std::ostream&)>;

struct ExportFormat {
  std::string extension;
  const char* counted;  ///< what `write` gives the number of
  Exporter write;
};

/// By the window's painter, which writes files.
Result<std::string> svgOf(const query::GraphData& graph) {
  char folder[] = "/tmp/fusebox-picture-XXXXXX";
  if (!::mkdtemp(folder)) return fail(ErrorCode::Io, std::string("no temporary folder: ") + std::strerror(errno));
  const std::string path = std::string(folder) + "/graph.svg";
  auto drawn = graphDrawing()(graph, path);
  std::string text;
  if (std::ifstream in(path, std::ios::binary); in) text.assign(std::istreambuf_iterator<char>(in), {});
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  if (!drawn) return tl::unexpected(drawn.error());
  return text;
}

const ExportFormat kFormats[] = {
    {".json", "events", exporting::writeChromeTrace},
    {".csv", "launches",
     [](const session::Reader& reader, std::ostream& out) {
       return exporting::writeCsv(reader, "SELECT * FROM launches ORDER BY launch_id", out);
     }},
    {".pftrace", "events", exporting::writePerfettoTrace},
    {".html", "rows of tables",
     [](const session::Reader& reader, std::ostream& out) {
       return exporting::writeHtmlReport(reader, out, graphDrawing() ? exporting::GraphPicture(svgOf) : exporting::GraphPicture());
     }},
};

/// A session of its own: of an imported file, or without what would show the program.
int exportCopy(const ExportOptions& options) {
  auto reader = openInput(options.file);
  if (!reader) return complain(reader.error());
  auto written = options.redact ? exporting::writeRedactedSession(**reader, options.output) : exporting::copySession(**reader, options.output);
  if (!written) return complain(written.error());
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"output", options.output}, {"redacted", options.redact}}.dump());
  } else {
    fmt::print("{}{}\n", options.output, options.redact ? ": names, paths, sources and values were removed; look at it before you give it away" : "");
  }
  return kOk;
}

}  // namespace

int exportSession(const ExportOptions& options) {
  if (options.output.ends_with(".fusebox")) return exportCopy(options);
  if (options.redact) return complainUsage("--redact works with -o NAME.fusebox");
  const ExportFormat* format = nullptr;
  const bool isCompressed = options.output.ends_with(".gz");
  const std::string_view name = std::string_view(options.output).substr(0, options.output.size() - (isCompressed ? 3 : 0));
  for (const auto& f : kFormats) {
    if (name.ends_with(f.extension)) format = &f;
  }
  if (!format) {
    return complainUsage(options.output + ": the name must end in .json (Chrome trace), .pftrace (Perfetto), .html (report), .csv (launches), each of them also with .gz behind, or .fusebox (a session)");
  }
  auto reader = openInput(options.file);
  if (!reader) return complain(reader.error());
  auto written = exporting::writeOutput(options.output, [&](std::ostream& out) { return format->write(**reader, out); });
  if (!written) return complain(written.error());
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"output", options.output}, {"count", *written}, {"of", format->counted}}.dump());
  } else {
    fmt::print("{}: {} {}\n", options.output, *written, format->counted);
  }
  return kOk;
}

}  // namespace fusebox::cli
