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

}  // namespace fusebox::importing
