#include <fmt/format.h>

#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <map>

#include "app/cli/colour.h"
#include "app/cli/commands.h"
#include "app/cli/run_preparation.h"
#include "app/cli/script_process.h"
#include "app/cli/stock_trace.h"
#include "profiler/compare/ranks.h"
#include "profiler/cupti/pm_sampler.h"
#include "profiler/export/output_file.h"
#include "profiler/query/summary.h"
#include "profiler/session/reader.h"
#include "profiler/session/recorded_list.h"

namespace fusebox::cli {
namespace {

namespace fs = std::filesystem;

void writeSummaryFile(const std::string& path, const nlohmann::json& json) {
  auto written = exporting::writeOutput(path, json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  if (!written) complain(written.error());
}

/// Before the script runs, which may take hours.
Result<void> checkSummaryPath(const std::string& path) {
  if (path.empty()) return {};
  std::error_code error;
  const fs::path folder = fs::absolute(path, error).parent_path();
  if (!fs::is_directory(folder, error)) return fail(ErrorCode::Io, "the summary's directory does not exist", folder.string());
  if (fs::is_directory(path, error)) return fail(ErrorCode::Io, "the summary must be a file, not a directory", path);
  if (access(folder.c_str(), W_OK) != 0 && access(path.c_str(), W_OK) != 0) return fail(ErrorCode::Io, "the summary cannot be written to this directory", folder.string());
  return {};
}

void report(const RunOptions& options, const std::string& session, const ScriptEnd& end, const ReplacedSession& replaced) {
  std::error_code error;
  if (!fs::exists(session, error)) {
    fmt::print(stderr, "fusebox: nothing was recorded: the script ended before the engine was loaded.\n");
    if (replaced.isThere()) fmt::print(stderr, "fusebox: {} is still the session of an earlier run.\n", session);
    return;
  }
  if (options.quiet) {
    fmt::print(stderr, "fusebox: recorded {}\n", session);
    return;
  }
  auto reader = session::Reader::open(session);
  if (!reader) {
    complain(reader.error());
    return;
  }
  auto summary = query::summarize(**reader);
  if (!summary) {
    complain(summary.error());
    return;
  }
  auto json = query::toJson(*summary);
  json["session"] = fs::absolute(session, error).string();
  json["exit_code"] = end.exitCode;
  if (!options.summary.empty()) writeSummaryFile(options.summary, json);
  if (options.json) {
    fmt::print(stderr, "{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print(stderr, "fusebox: recorded {}\n{}", session, coloured(printable(query::toText(*summary)), STDERR_FILENO));
  }
}

/// Sessions of ranks that torchrun or torch.multiprocessing.spawn started in this run (see host.py), in their order.
std::vector<std::string> sessionsOfRanks(const std::string& session, fs::file_time_type since) {
  const fs::path base = session;
  const std::string stem = base.stem().string() + "-rank", ending = base.extension().string();
  std::map<std::pair<int, std::string>, std::string> found;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(fs::absolute(base, error).parent_path(), error)) {
    const std::string name = file.path().stem().string();
    int rank = 0;
    const char *begin = name.data() + stem.size(), *end = name.data() + name.size();
    if (!name.starts_with(stem) || file.path().extension() != ending || file.last_write_time(error) < since) continue;
    const auto [rest, problem] = std::from_chars(begin, end, rank);
    const std::string restart(rest, end);
    if (problem == std::errc() && (restart.empty() || restart.starts_with("-restart") || restart.starts_with("-spawn"))) found[{rank, restart}] = (base.parent_path() / file.path().filename()).string();
  }
  std::vector<std::string> sessions;
  for (auto& [key, path] : found) sessions.push_back(std::move(path));
  return sessions;
}

void reportRanks(const RunOptions& options, const std::vector<std::string>& sessions, const ScriptEnd& end) {
  for (const std::string& session : sessions) session::noteRecorded(session);
  auto report = compare::compareRanks(sessions);
  if (!report) {
    complain(report.error());
    return;
  }
  auto json = compare::toJson(*report);
  json["exit_code"] = end.exitCode;
  if (!options.summary.empty()) writeSummaryFile(options.summary, json);
  if (options.json) fmt::print(stderr, "{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  else fmt::print(stderr, "fusebox: recorded {} ranks\n{}", sessions.size(), printable(compare::toText(*report)));
}

/// Why what was asked of the GPU's counters cannot be; empty: it can.
std::string countersProblem(const RunOptions& options) {
  const bool samples = !options.gpuSampling.empty() || !options.gpuSamplingMetrics.empty();
  if (options.noRecord && options.operators) return "--operators are recorded: they do not go with --no-record";
  if (options.noRecord && !options.gpuCounters.empty()) return "--gpu-counters are recorded: they do not go with --no-record";
  if (options.noRecord && samples) return "--gpu-sampling is recorded: it does not go with --no-record";
  if (samples && !options.gpuCounters.empty()) return "--gpu-counters and --gpu-sampling use the same counters of the GPU: ask for one of them";
  if (!options.gpuSamplingMetrics.empty() && options.gpuSampling.empty()) return "--gpu-sampling-metrics needs --gpu-sampling";
  int64_t interval = cupti::kShortestIntervalNs / 1000;
  const char* const end = options.gpuSampling.data() + options.gpuSampling.size();
  const auto [rest, error] = std::from_chars(options.gpuSampling.data(), end, interval);
  const bool isNumber = options.gpuSampling.empty() || (error == std::errc() && rest == end);
  constexpr int64_t kLeast = cupti::kShortestIntervalNs / 1000, kMost = cupti::kLongestIntervalNs / 1000;
  if (isNumber && interval >= kLeast && interval <= kMost) return {};
  return fmt::format("--gpu-sampling takes whole microseconds from {} to {}, not {}", kLeast, kMost, options.gpuSampling);
}

}  // namespace

int runScript(const RunOptions& options) {
  if (options.noRecord && (!options.session.empty() || !options.summary.empty())) {
    return complainUsage("--no-record records nothing: it goes with neither --session nor --summary");
  }
  if (const std::string why = countersProblem(options); !why.empty()) return complainUsage(why);
  if (auto writable = checkSummaryPath(options.summary); !writable) return complain(writable.error());
  auto run = prepareRun(options);
  if (!run) return complain(run.error());
  StockTrace trace(options.engine == "stock" && !options.noRecord);
  trace.request(run->environment);
  ReplacedSession replaced(*run);
  const auto began = fs::file_time_type::clock::now();
  auto end = runScriptProcess(run->command, run->environment);
  if (!end) return complain({ErrorCode::InvalidArgument, end.error().message, end.error().context});
  sayHowItEnded(*end);
  trace.attachTo(run->session);
  const std::vector<std::string> ranks = options.noRecord ? std::vector<std::string>() : sessionsOfRanks(run->session, began);
  if (!ranks.empty()) {
    replaced.dropOld();
    reportRanks(options, ranks, *end);
    if (std::error_code error; fs::exists(run->session, error)) {
      session::noteRecorded(run->session);
      fmt::print(stderr, "fusebox: recorded {}, of the process that started them\n", run->session);
    }
  } else if (!options.noRecord) {
    if (std::error_code error; fs::exists(run->session, error)) session::noteRecorded(run->session);
    report(options, run->session, *end, replaced);
  }
  return end->exitCode;
}

}  // namespace fusebox::cli
