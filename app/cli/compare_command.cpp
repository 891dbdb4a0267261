// fusebox compare: two sessions, or one script under two engines.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <filesystem>
#include <ostream>

#include "app/cli/colour.h"
#include "app/cli/commands.h"
#include "app/cli/open_input.h"
#include "profiler/compare/report.h"
#include "profiler/export/output_file.h"

namespace fusebox::cli {
namespace {

namespace fs = std::filesystem;

int report(const CompareOptions& options) {
  auto a = openInput(options.a), b = openInput(options.b);
  if (!a) return complain(a.error());
  if (!b) return complain(b.error());
  auto comparison = compare::compareSessions(**a, **b);
  if (!comparison) return complain(comparison.error());
  comparison->a.path = options.a;
  comparison->b.path = options.b;
  if (!options.html.empty()) {
    auto written = exporting::writeOutput(options.html, [&](std::ostream& out) -> Result<int64_t> {
      compare::writeHtml(*comparison, out);
      return 0;
    });
    if (!written) return complain(written.error());
  }
  if (options.json) {
    fmt::print("{}\n", compare::toJson(*comparison).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}", printable(compare::toText(*comparison)));
  }
  return options.exitCode && comparison->cause.effects > 0 ? kDifferent : kOk;
}

}  // namespace

int runForComparison(CompareOptions& options) {
  const size_t comma = options.engines.find(',');
  const std::string first = options.engines.substr(0, comma), second = comma == std::string::npos ? std::string() : options.engines.substr(comma + 1);
  for (const auto& engine : {first, second}) {
    if (engine != "fusebox" && engine != "stock" && engine != "eager") {
      return complainUsage("--engines takes two of fusebox, stock and eager: --engines fusebox,stock");
    }
  }
  const std::string stem = options.script.empty() || options.script[0].starts_with("-") ? "run" : fs::path(options.script[0]).stem().string();
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  const std::string base = fmt::format("{}-{:%Y%m%d-%H%M%S}", stem, fmt::localtime(now));
  std::string* const sessions[] = {&options.a, &options.b};
  const std::string engines[] = {first, second};
  for (int i = 0; i < 2; ++i) {
    *sessions[i] = fmt::format("{}-{}{}.fusebox", base, engines[i], first == second ? fmt::format("-{}", i + 1) : "");
    fmt::print(stderr, "fusebox: running under {}\n", engines[i]);
    RunOptions run;
    run.session = *sessions[i];
    run.engine = engines[i];
    run.python = options.python;
    run.script = options.script;
    run.quiet = true;
    const int code = runScript(run);
    if (code != 0) {
      fmt::print(stderr, "fusebox: the run under {} ended with code {}; nothing is compared\n", engines[i], code);
      return code;
    }
  }
  return kOk;
}

int compareFiles(CompareOptions options) {
  if (options.run) {
    if (const int code = runForComparison(options); code != kOk) return code;
  } else if (options.a.empty() || options.b.empty()) {
    return complainUsage("name two sessions, or --run and a script (see fusebox compare --help)");
  }
  return report(options);
}

}  // namespace fusebox::cli
