#include "app/cli/python_choice.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "app/cli/child_output.h"

namespace fusebox::cli {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Torch of a virtual environment; looks for lib/python3.X/site-packages/torch.
std::string environmentTorch(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder + "/lib", ignored)) {
    const std::string version = torchVersion(entry.path() / "site-packages" / "torch");
    if (!version.empty()) return version;
  }
  return {};
}

Result<PythonChoice> named(const std::string& name, const std::string& why) {
  const std::string program = findProgram(name);
  if (program.empty()) {
    return fail(ErrorCode::InvalidArgument, "there is no such Python interpreter; give the path of one", name + ", from " + why);
  }
  std::error_code error;
  if (fs::is_directory(program, error)) {
    return fail(ErrorCode::InvalidArgument, "this is a directory; give the interpreter in it (bin/python)",
                name + ", from " + why);
  }
  // Not resolved: a virtual environment's python is a link, and its place matters.
  return PythonChoice{fs::absolute(program, error).string(), why};
}

}  // namespace

std::string torchVersion(const std::string& folder) {
  std::ifstream in(folder + "/version.py");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("__version__", 0) != 0) continue;
    const auto first = line.find_first_of("'\""), last = line.find_last_of("'\"");
    if (first != std::string::npos && last > first) return line.substr(first + 1, last - first - 1);
  }
  return {};
}

std::string builtTorchVersion() { return torchVersion(FUSEBOX_BUILD_TORCH); }

Result<PythonChoice> choosePython(const std::string& option) {
  if (!option.empty()) return named(option, "--python");
  if (const auto wanted = environment("FUSEBOX_PYTHON"); !wanted.empty()) return named(wanted, "FUSEBOX_PYTHON");
  const std::string active = environment("VIRTUAL_ENV");
  const std::string activePython = active.empty() ? std::string() : findProgram(active + "/bin/python");
  const std::string built = findProgram(FUSEBOX_BUILD_PYTHON);
  const auto sameTorch = [&] {
    const std::string version = environmentTorch(active);
    return !version.empty() && version == builtTorchVersion();
  };
  if (!activePython.empty() && (built.empty() || sameTorch())) return named(activePython, "the active virtual environment");
  if (!built.empty()) return named(built, "the build");
  if (!findProgram("python3").empty()) return named("python3", "PATH");
  return fail(ErrorCode::InvalidArgument, "no Python interpreter was found; give one with --python or FUSEBOX_PYTHON");
}

std::string pythonPathWith(const std::string& front) {
  const std::string old = environment("PYTHONPATH");
  return front.empty() || old.empty() ? front + old : front + ":" + old;
}

std::string packageFolder() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return {};
  for (const char* folder : {"../python", "../lib/fusebox/python"}) {
    const fs::path candidate = (program.parent_path() / folder).lexically_normal();
    if (fs::exists(candidate / "fusebox", error)) return candidate.string();
  }
  return {};
}

}  // namespace fusebox::cli
