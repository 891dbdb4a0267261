// fusebox gpu --code: a kernel's loop IR, its PTX and, where nvdisasm is found, the machine code that the GPU ran.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/child_output.h"
#include "app/cli/colour.h"
#include "app/cli/commands.h"
#include "app/cli/open_input.h"
#include "profiler/query/disassembler.h"
#include "views/kernels/kernels_model.h"

namespace fusebox::cli {
namespace {

constexpr int kLimitMs = 20'000;

/// A file that is gone with this.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    path_ = (std::filesystem::temp_directory_path() / "fusebox-cubin-XXXXXX").string();
    const int file = mkstemp(path_.data());
    isGood_ = file >= 0 && write(file, content.data(), content.size()) == static_cast<ssize_t>(content.size());
    if (file >= 0) ::close(file);
  }
  ~TemporaryFile() { unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }
  bool isGood() const { return isGood_; }

 private:
  std::string path_;
  bool isGood_ = false;
};

Result<std::string> sassOf(const std::string& cubin) {
  if (cubin.empty()) return fail(ErrorCode::NotFound, "the session holds no machine code of this kernel");
  const std::string program = query::findDisassembler();
  if (program.empty()) {
    return fail(ErrorCode::NotFound, "nvdisasm is not found: it comes with the CUDA toolkit and with the packages nvidia-cuda-nvdisasm and triton; "
                                     "put it on PATH, or name it in FUSEBOX_NVDISASM");
  }
  const TemporaryFile file(cubin);
  if (!file.isGood()) return fail(ErrorCode::Io, "a temporary file cannot be written", file.path());
  auto ran = runChild(query::disassemblyCommand(program, file.path()), {}, kLimitMs);
  if (!ran) return tl::unexpected(ran.error());
  if (ran->exitCode != 0) return fail(ErrorCode::Corrupt, "nvdisasm failed: " + ran->err.substr(0, 400), program);
  return std::move(ran->out);
}

}  // namespace

int showGpuCode(const GpuOptions& options) {
  auto reader = openInput(options.file);
  if (!reader) return complain(reader.error());
  auto kernel = views::loadKernel(**reader, options.code);
  if (!kernel) return complain({ErrorCode::InvalidArgument, kernel.error().message, kernel.error().context});
  const auto sass = sassOf(kernel->cubin);
  const std::string assembly = kernel->tiers.empty() ? std::string() : kernel->tiers.back().assembly;
  if (options.json) {
    const nlohmann::json out = {{"kernel_id", kernel->id}, {"name", kernel->name}, {"device", kernel->device}, {"loop_ir", kernel->loopIr},
                                {"assembly", assembly}, {"sass", sass ? *sass : ""}, {"sass_missing", sass ? "" : sass.error().text()}};
    fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return kOk;
  }
  const bool isGpu = kernel->device.rfind("cuda", 0) == 0;
  fmt::print("{}", printable(fmt::format("== {}: loop IR\n{}\n== {}\n{}\n== SASS\n{}\n", kernel->name, kernel->loopIr, isGpu ? "PTX" : "Assembly",
                                         assembly, sass ? *sass : sass.error().text())));
  return kOk;
}

}  // namespace fusebox::cli
