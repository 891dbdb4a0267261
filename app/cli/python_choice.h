#pragma once

#include <string>

#include "engine/support/result.h"

namespace fusebox::cli {

struct PythonChoice {
  std::string interpreter;  ///< absolute path
  std::string why;          ///< "--python", "FUSEBOX_PYTHON", …
};

/// The interpreter that runs the user's script: --python, then FUSEBOX_PYTHON, then the active virtual environment if it has
/// the PyTorch version that the engine was built for, then the interpreter chosen at build time, then python3 on the PATH.
Result<PythonChoice> choosePython(const std::string& option);

/// Folder to put in front of PYTHONPATH so that `import fusebox` works; empty when the engine was not built.
std::string packageFolder();

/// PYTHONPATH with `front` before what it is now.
std::string pythonPathWith(const std::string& front);

/// "2.11.0+cpu" of the torch package in `folder`, read from its version.py without running Python; empty if there is none.
std::string torchVersion(const std::string& folder);
/// Version of PyTorch that the engine was built for; empty without engine.
std::string builtTorchVersion();

}  // namespace fusebox::cli
