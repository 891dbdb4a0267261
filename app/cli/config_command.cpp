// fusebox config: all settings, what they are and what they do here.
#include <csignal>
#include <cstring>
#include <fmt/format.h>

#include "app/cli/commands.h"
#include "app/cli/python_choice.h"
#include "app/cli/script_process.h"

namespace fusebox::cli {

int showConfig(const ConfigOptions& options) {
  auto python = choosePython(options.python);
  if (!python) return complain(python.error());
  const std::string package = packageFolder();
  if (package.empty())
    return complain(Error{ErrorCode::InvalidArgument, "this build has no engine; configure with -DFUSEBOX_PYTHON=<interpreter with PyTorch>"});
  std::vector<std::string> command{python->interpreter, "-m", "fusebox.settings"};
  if (options.json) command.emplace_back("--json");
  if (options.changed) command.emplace_back("--changed");
  command.emplace_back("--");
  command.insert(command.end(), options.names.begin(), options.names.end());
  auto end = runScriptProcess(command, {{"PYTHONPATH", pythonPathWith(package)}});
  if (!end) return complain(end.error());
  if (end->signal == SIGPIPE) return 128 + SIGPIPE;
  if (end->signal) return complain(Error{ErrorCode::Io, fmt::format("the interpreter was killed by signal {} ({})", end->signal, strsignal(end->signal))});
  return end->exitCode;
}

}  // namespace fusebox::cli
