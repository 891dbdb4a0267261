#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fusebox::importing {

/// What kind of kernel a device kernel of that name is: `generated` for those that Inductor writes, else `extern`.
std::string_view kernelKind(std::string_view name);

/// "0/1" of a span that PyTorch's profiler puts around a call of a compiled region ("Torch-Compiled Region: 0/1").
std::optional<std::string_view> compiledRegion(std::string_view name);

/// A function of a Python stack, as the profiler names it: "file.py(12): function".
struct PythonFunction {
  std::string_view file, function;
  int64_t line = 0;
};
std::optional<PythonFunction> pythonFunction(std::string_view name);

/// Whether a file of a recorded stack is a user's, or a library's that the user calls: of neither PyTorch and Triton, nor code that they
/// generated, nor those wrappers of Python's own library that call others. Profilers cut the folders of `sys.path` off.
bool isUsersFile(std::string_view file);

}  // namespace fusebox::importing
