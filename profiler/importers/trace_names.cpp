#include "profiler/importers/trace_names.h"

#include <charconv>

namespace fusebox::importing {

std::string_view kernelKind(std::string_view name) {
  for (const std::string_view generated : {"triton_", "cpp_fused", "cuda_fused", "cutlass_fused"}) {
    if (name.starts_with(generated)) return "generated";
  }
  return name.find("_cpp_fused") != std::string_view::npos ? "generated" : "extern";
}

std::optional<std::string_view> compiledRegion(std::string_view name) {
  constexpr std::string_view kPrefix = "Torch-Compiled Region: ";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  return name.substr(0, 64);
}

std::optional<PythonFunction> pythonFunction(std::string_view name) {
  const size_t close = name.find("): ");
  if (close == std::string_view::npos) return std::nullopt;
  const size_t open = name.rfind('(', close);
  if (open == std::string_view::npos || open == 0) return std::nullopt;
  PythonFunction f{name.substr(0, open), name.substr(close + 3), 0};
  const char* end = name.data() + close;
  if (std::from_chars(name.data() + open + 1, end, f.line).ptr != end) return std::nullopt;
  return f;
}

bool isUsersFile(std::string_view file) {
  constexpr std::string_view kPackages[] = {"torch/", "torchgen/", "triton/", "concurrent/futures/", "multiprocessing/", "asyncio/"};
  constexpr std::string_view kWrappers[] = {"contextlib.py", "functools.py", "threading.py", "typing.py", "runpy.py"};
  if (file.empty() || file.front() == '<') return false;
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/"}) {
    if (const size_t at = file.find(folder); at != std::string_view::npos) file.remove_prefix(at + folder.size());
  }
  if (const size_t at = file.find("/lib/python3"); at != std::string_view::npos) {
    const size_t end = file.find('/', at + 12);
    if (end != std::string_view::npos) file.remove_prefix(end + 1);
  }
  for (const auto package : kPackages) {
    if (file.starts_with(package)) return false;
  }
  for (const auto wrapper : kWrappers) {
    if (file == wrapper) return false;
  }
  // Inductor writes its code to files that are named by 'c' and a hash in base 32, in folders of the two letters after that.
  const size_t slash = file.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? file : file.substr(slash + 1);
  const bool hashed = name.size() == 55 && name.front() == 'c' && name.ends_with(".py") &&
                      name.substr(0, 52).find_first_not_of("abcdefghijklmnopqrstuvwxyz234567") == std::string_view::npos;
  return !hashed;
}

}  // namespace fusebox::importing
