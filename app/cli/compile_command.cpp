// fusebox compile: an exported program as one file of compiled code.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>

#include "app/cli/commands.h"
#include "app/cli/python_choice.h"
#include "app/cli/script_process.h"

namespace fusebox::cli {

int compileProgram(const CompileProgramOptions& options) {
  if (access(options.file.c_str(), R_OK) != 0) return complain(Error{ErrorCode::Io, std::strerror(errno), options.file});
  std::error_code ignored;
  if (std::filesystem::is_directory(options.output, ignored)) return complain(Error{ErrorCode::InvalidArgument, "this is a directory; name a file in it", options.output});
  if (std::filesystem::equivalent(options.output, options.file, ignored)) return complain(Error{ErrorCode::InvalidArgument, "this is the program itself; name another file", options.output});
  auto python = choosePython(options.python);
  if (!python) return complain(python.error());
  const std::string package = packageFolder();
  if (package.empty())
    return complain(Error{ErrorCode::InvalidArgument, "this build has no engine; configure with -DFUSEBOX_PYTHON=<interpreter with PyTorch>"});
  std::vector<std::string> command{python->interpreter, "-m", "fusebox.compile_program", options.file, "-o", options.output};
  if (options.json) command.emplace_back("--json");
  auto end = runScriptProcess(command, {{"PYTHONPATH", pythonPathWith(package)}});
  if (!end) return complain(end.error());
  if (end->signal) return complain(Error{ErrorCode::Io, fmt::format("the engine was killed by signal {} ({})", end->signal, strsignal(end->signal))});
  return end->exitCode;
}

}  // namespace fusebox::cli
