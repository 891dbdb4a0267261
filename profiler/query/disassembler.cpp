#include "profiler/query/disassembler.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "profiler/session/reader.h"

namespace fusebox::query {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostBytes = size_t{64} << 20;

bool isProgram(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

/// `folder`/`name`*/`rest`, the last by name first.
std::vector<fs::path> folders(const fs::path& folder, const std::string& prefix, const fs::path& rest) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->path().filename().string().rfind(prefix, 0) == 0) found.push_back(at->path() / rest);
  std::sort(found.rbegin(), found.rend());
  return found;
}

}  // namespace

std::string findDisassembler() {
  std::vector<fs::path> places;
  if (const char* chosen = std::getenv("FUSEBOX_NVDISASM"); chosen && *chosen) return isProgram(chosen) ? chosen : "";
  if (const char* path = std::getenv("PATH")) {
    std::istringstream parts(path);
    for (std::string part; std::getline(parts, part, ':');)
      if (!part.empty()) places.emplace_back(fs::path(part) / "nvdisasm");
  }
  for (auto& place : folders("/usr/local", "cuda", "bin/nvdisasm")) places.push_back(std::move(place));
  std::vector<fs::path> environments;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const char* environment = std::getenv(name); environment && *environment) environments.emplace_back(environment);
  if (const char* python = std::getenv("FUSEBOX_PYTHON"); python && *python) environments.push_back(fs::path(python).parent_path().parent_path());
  for (const fs::path& environment : environments) {
    for (const char* package : {"nvidia/cu13/bin/nvdisasm", "nvidia/cuda_nvdisasm/bin/nvdisasm", "triton/backends/nvidia/bin/nvdisasm"})
      for (auto& place : folders(environment / "lib", "python3", fs::path("site-packages") / package)) places.push_back(std::move(place));
  }
  const auto found = std::find_if(places.begin(), places.end(), isProgram);
  return found == places.end() ? std::string() : found->string();
}

std::vector<std::string> disassemblyCommand(const std::string& disassembler, const std::string& cubinFile) {
  return {disassembler, "--print-code", "--separate-functions", cubinFile};
}

Result<std::string> kernelBinary(const session::Reader& reader, int64_t kernel) {
  std::string bytes;
  auto read = reader.each("SELECT bytes FROM kernel_binaries WHERE kernel_id = ? AND format = 'cubin' AND length(bytes) <= ?",
                          {kernel, static_cast<int64_t>(kMostBytes)}, [&](const session::Statement& s) { bytes = s.string("bytes"); });
  if (!read) return tl::unexpected(read.error());
  if (bytes.empty()) return fail(ErrorCode::NotFound, "the session holds no machine code of this kernel", reader.origin());
  constexpr std::string_view kElf64("\x7f" "ELF\x02", 5);
  constexpr unsigned kCudaMachine = 190;  // EM_CUDA
  if (bytes.size() < 64 || bytes.compare(0, kElf64.size(), kElf64) != 0 || static_cast<unsigned char>(bytes[18]) != kCudaMachine) {
    return fail(ErrorCode::Corrupt, "what the session holds of this kernel is no cubin", reader.origin());
  }
  return bytes;
}

}  // namespace fusebox::query
