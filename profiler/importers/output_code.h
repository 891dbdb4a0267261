#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fusebox::importing {

/// What a wrapper that Inductor generated (output_code.py) says about its kernels. The code is read as text, never run.
struct OutputCode {
  struct Kernel {
    std::string name, language;            ///< triton, cpp, …
    std::string source, path;              ///< its text; the file it was written to, if the wrapper says so
    std::vector<std::string> nodes;        ///< post-grad nodes that it computes
    std::vector<std::string> sourceNodes;  ///< captured nodes that they come from
    std::string device;                    ///< cuda, cpu, xpu, …; empty if the wrapper does not say
    std::string kind;                      ///< pointwise, reduction, template, loops
  };
  struct Call {
    std::string name;                       ///< of a kernel above, or extern_kernels.mm, aten.randint.low_out, …
    int64_t kernel = -1;                    ///< index of the kernel above; -1: a library's
    int64_t handle = -1;                    ///< the debug handle of provenance tracking
    std::vector<std::string> nodes;         ///< empty: those of the kernel
    std::vector<std::string> originalAten;  ///< operators that it carries out
    std::string arguments;                  ///< as written
  };
  std::vector<Kernel> kernels;
  std::vector<Call> calls;  ///< in order of execution
};
OutputCode parseOutputCode(std::string_view text);

}  // namespace fusebox::importing
