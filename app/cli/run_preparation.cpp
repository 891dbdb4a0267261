#include "app/cli/run_preparation.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "app/cli/python_choice.h"
#include "app/cli/session_path.h"
#include "profiler/session/session_files.h"

namespace fusebox::cli {
namespace {

namespace fs = std::filesystem;


// A script's argument, whether "-m module" or "-mmodule".
std::string shortFormValue(const std::vector<std::string>& script) {
  if (script[0].size() > 2) return script[0].substr(2);
  return script.size() > 1 ? script[1] : std::string();
}

bool isShortForm(const std::vector<std::string>& script, const char* flag) { return script[0].rfind(flag, 0) == 0; }

Result<void> checkScript(const std::vector<std::string>& script) {
  if (script.empty()) {
    return fail(ErrorCode::InvalidArgument,
                "nothing to run; give a script, -m MODULE or -c CODE (see fusebox run --help)");
  }
  if (isShortForm(script, "-m") || isShortForm(script, "-c")) {
    if (!shortFormValue(script).empty()) return {};
    return fail(ErrorCode::InvalidArgument, script[0] + " needs " + (script[0] == "-m" ? "a module's name" : "code"));
  }
  if (script[0] == "-") return {};  // standard input, as Python has it
  std::error_code error;
  const fs::path path = script[0];
  if (!fs::exists(path, error)) return fail(ErrorCode::NotFound, "there is no such script, nor a command of this Python's or on the PATH that is one", script[0]);
  if (fs::is_directory(path, error) && !fs::exists(path / "__main__.py", error)) {
    return fail(ErrorCode::Corrupt, "this is a directory without __main__.py, not a script", script[0]);
  }
  if (access(path.c_str(), R_OK) != 0) return fail(ErrorCode::Io, "the script may not be read", script[0]);
  return {};
}

/// "torchrun": a command written in Python, beside the interpreter or on the PATH. Its path, or the word as it is.
std::string commandFile(const std::string& word, const std::string& interpreter) {
  std::error_code error;
  if (word.empty() || word[0] == '-' || word.find('/') != std::string::npos || fs::exists(word, error)) return word;
  std::vector<fs::path> folders{fs::path(interpreter).parent_path()};
  const char* path = std::getenv("PATH");
  std::istringstream in(path ? path : "");
  for (std::string folder; std::getline(in, folder, ':');) folders.emplace_back(folder);
  for (const fs::path& folder : folders) {
    std::ifstream file(folder / word);
    std::string first;
    if (std::getline(file, first) && first.starts_with("#!") && first.find("python") != std::string::npos) return (folder / word).string();
  }
  return word;
}

std::string defaultSession(const std::vector<std::string>& script) {
  std::string stem = "session";
  if (isShortForm(script, "-m")) {
    stem = shortFormValue(script);
  } else if (isShortForm(script, "-c")) {
    stem = "command";
  } else if (script[0] != "-") {
    std::error_code error;
    stem = fs::absolute(script[0], error).lexically_normal().stem().string();
  }
  return timedSessionName(stem);
}

}  // namespace

void sayHowItEnded(const ScriptEnd& end) {
  if (end.signal == 0) return;
  fmt::print(stderr, "fusebox: the script was killed by signal {} ({}).", end.signal, strsignal(end.signal));
  if (end.outOfMemory) {
    fmt::print(stderr, " The kernel ended it because memory ran out.");
  } else if (end.signal == SIGKILL) {
    fmt::print(stderr, " If nobody did that by hand, memory ran out: see `dmesg | grep -i oom`.");
  } else if (end.signal == SIGSEGV || end.signal == SIGABRT || end.signal == SIGBUS || end.signal == SIGILL) {
    fmt::print(stderr, " If it runs well with `fusebox run --engine eager`, please report it with the session.");
  }
  fmt::print(stderr, " What was recorded until then is kept.\n");
}

Result<PreparedRun> prepareRun(const RunOptions& options) {
  auto python = choosePython(options.python);
  std::vector<std::string> script = options.script;
  if (python && !script.empty()) script[0] = commandFile(script[0], python->interpreter);
  if (auto usable = checkScript(script); !usable) return tl::unexpected(usable.error());
  if (!python) return tl::unexpected(python.error());
  const std::string package = packageFolder();
  if (package.empty()) {
    return fail(ErrorCode::InvalidArgument,
                "this build has no engine (the Python package is not beside the program); configure with "
                "-DFUSEBOX_PYTHON=<interpreter with PyTorch> and build again");
  }
  PreparedRun run;
  run.environment = {{"PYTHONPATH", pythonPathWith(package)},
                     {"FUSEBOX_ENGINE", options.engine},
                     {"FUSEBOX_RECORD", options.noRecord ? "0" : "1"}};
  if (options.operators) run.environment["FUSEBOX_OPERATORS"] = "1";
  if (!options.gpuCounters.empty()) run.environment["FUSEBOX_GPU_COUNTERS"] = options.gpuCounters;
  if (!options.gpuSampling.empty()) run.environment["FUSEBOX_GPU_SAMPLING"] = options.gpuSampling;
  if (!options.gpuSamplingMetrics.empty()) run.environment["FUSEBOX_GPU_SAMPLING_METRICS"] = options.gpuSamplingMetrics;
  if (!options.noRecord) {
    run.session = options.session.empty() ? defaultSession(script) : options.session;
    if (auto writable = checkSessionPath(run.session); !writable) return tl::unexpected(writable.error());
    std::error_code error;
    run.environment["FUSEBOX_SESSION"] =
        fs::absolute(run.session, error).string();  // the script may change its directory
  }
  run.command = {python->interpreter, "-m", "fusebox.host"};
  run.command.insert(run.command.end(), script.begin(), script.end());
  return run;
}

ReplacedSession::ReplacedSession(const PreparedRun& run) {
  std::error_code error;
  if (run.session.empty()) return;
  const std::string aside = session::replacedName(run.session);
  if (fs::exists(run.session, error)) session::moveSession(run.session, aside);
  else if (!fs::exists(aside, error)) return;  // there where the run before was killed and nothing recorded
  path_ = run.session;
  aside_ = aside;
}

ReplacedSession::~ReplacedSession() {
  if (aside_.empty()) return;
  std::error_code error;
  if (isReplaced_ || fs::exists(path_, error)) session::removeSession(aside_);
  else session::moveSession(aside_, path_);
}

}  // namespace fusebox::cli
