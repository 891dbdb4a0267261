#include <fmt/format.h>

#include <filesystem>

#include "app/cli/commands.h"
#include "app/cli/debug_console.h"
#include "app/cli/run_preparation.h"

namespace fusebox::cli {
Result<nlohmann::json> firstBreakpoints(const DebugOptions& options) {
  nlohmann::json list = nlohmann::json::array();
  if (!options.go) list.push_back({{"kind", "compile"}, {"once", true}});
  for (const std::string& text : options.breakpoints) {
    auto made = debugging::parseBreakpoint(text);
    if (!made) return made;
    list.push_back(std::move(*made));
  }
  return list;
}

int debugAtConsole(const DebugOptions& options) {
  auto breakpoints = firstBreakpoints(options);
  if (!breakpoints) return complainUsage("--break: " + breakpoints.error().message);
  auto run = prepareRun(options.run);
  if (!run) return complain(run.error());
  debugging::DebugClient client;
  client.server().setFirstBreakpoints(std::move(*breakpoints));
  if (auto listening = client.server().listen(); !listening) return complain(listening.error());
  for (const auto& [name, value] : client.server().environment()) run->environment[name] = value;
  ReplacedSession replaced(*run);
  DebuggedProcess process;
  if (auto started = process.start(run->command, run->environment, options.run.json); !started)
    return complain(started.error());
  const auto& words = options.run.script;
  const bool isScript = !words.empty() && !words.front().starts_with('-');
  DebugConsole console(client, process, options.run.json, isScript ? words.front() : std::string());
  const ScriptEnd end = console.run();
  if (std::error_code error; std::filesystem::exists(run->session, error)) fmt::print(stderr, "fusebox: recorded {}\n", run->session);
  else if (replaced.isThere()) fmt::print(stderr, "fusebox: {} is still the session of an earlier run.\n", run->session);
  return end.exitCode;
}

}  // namespace fusebox::cli
