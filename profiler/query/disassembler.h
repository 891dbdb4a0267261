#pragma once

#include <string>
#include <vector>

#include "engine/support/result.h"

namespace fusebox::session {
class Reader;
}

namespace fusebox::query {

/// NVIDIA's nvdisasm, which turns cubins into SASS: FUSEBOX_NVDISASM, PATH, CUDA's usual folders, and the packages
/// nvidia-cuda-nvdisasm and triton of the active environment (VIRTUAL_ENV, CONDA_PREFIX) or of FUSEBOX_PYTHON. Empty if there is none.
/// Nothing that a session names is ever run.
std::string findDisassembler();

/// What to run on a file with a cubin.
std::vector<std::string> disassemblyCommand(const std::string& disassembler, const std::string& cubinFile);

/// The machine code of a kernel; NotFound where the session holds none, Corrupt where it is no ELF file for a GPU.
Result<std::string> kernelBinary(const session::Reader& reader, int64_t kernel);

}  // namespace fusebox::query
