// Commands that read a session and say something about it: summary, query, export.
#include <fmt/format.h>

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>

#include "app/cli/colour.h"
#include "app/cli/commands.h"
#include "app/cli/open_input.h"
#include "profiler/export/chrome_trace.h"
#include "profiler/export/html_report.h"
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

int showSummary(const SummaryOptions& options) {
  auto reader = openInput(options.file);
  if (!reader) return complain(reader.error());
  auto summary = query::summarize(**reader);
  if (!summary) return complain(summary.error());
  if (options.json) {
    fmt::print("{}\n", query::toJson(*summary).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}\n{}", options.file, coloured(printable(query::toText(*summary)), STDOUT_FILENO));
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
  auto table = (*reader)->query(options.sql, options.limit);
  if (!table) {
    const bool sql = table.error().code == ErrorCode::InvalidArgument;
    const int code = complain(sql ? Error{table.error().code, table.error().message, {}} : table.error());
    if (sql) fmt::print(stderr, "  the views and their columns: profiler/session/SCHEMA.md, or "
                                "\"SELECT name, sql FROM sqlite_temp_schema\"\n");
    return code;
  }
  const std::string format = options.json ? "json" : options.format;
  const std::string text = format == "json"  ? exporting::toJson(*table)
                           : format == "csv" ? exporting::toCsv(*table)
                                             : exporting::toAlignedText(*table);
  std::cout << text << std::flush;
  return kOk;
}

namespace {

using Exporter = std::function<Result<int64_t>(const session::Reader&, std::ostream&)>;

struct ExportFormat {
  std::string extension;
  Exporter write;
};

const ExportFormat kFormats[] = {
    {".json", exporting::writeChromeTrace},
    {".csv",
     [](const session::Reader& reader, std::ostream& out) {
       return exporting::writeCsv(reader, "SELECT * FROM launches ORDER BY launch_id", out);
     }},
    {".pftrace", exporting::writePerfettoTrace},
    {".html", exporting::writeHtmlReport},
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
  for (const auto& f : kFormats) {
    if (options.output.ends_with(f.extension)) format = &f;
  }
  if (!format) {
    return complainUsage(options.output + ": the name must end in .json (Chrome trace), .pftrace (Perfetto), .html (report), .csv (launches) or .fusebox (a session)");
  }
  auto reader = openInput(options.file);
  if (!reader) return complain(reader.error());
  std::ofstream out(options.output, std::ios::binary);
  if (!out) return complainUsage(options.output + ": cannot be written: " + std::strerror(errno));
  auto written = format->write(**reader, out);
  if (!written) return complain(written.error());
  out.close();
  if (!out) return complainUsage(options.output + ": cannot be written: " + std::strerror(errno));
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"output", options.output}, {"events", *written}}.dump());
  } else {
    fmt::print("{}: {} events\n", options.output, *written);
  }
  return kOk;
}

}  // namespace fusebox::cli
