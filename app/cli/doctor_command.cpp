#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "app/cli/child_output.h"
#include "app/cli/commands.h"
#include "app/cli/python_choice.h"

namespace fusebox::cli {
namespace {

using nlohmann::json;

enum class Health : uint8_t { Works, Absent, Broken };

struct Finding {
  std::string subject;
  Health health = Health::Works;
  std::string detail;
  std::string mend;  ///< what to do; empty when all is well
};

// Asks the interpreter in one go; prints one JSON line whatever is missing.
constexpr const char* kProbe = R"py(
import json, sys
out = {"python": sys.version.split()[0], "prefix": sys.prefix}
try:
    import torch
    out["torch"] = torch.__version__
    out["cuda"] = torch.version.cuda
except Exception as e:
    out["torch_error"] = "%s: %s" % (type(e).__name__, e)
if "torch" in out:
    import ctypes, os
    for name in ("libcupti.so.13", "libcupti.so.12"):
        try:
            library, version = ctypes.CDLL(name, mode=os.RTLD_NOW | os.RTLD_NOLOAD), ctypes.c_uint32()
            library.cuptiGetVersion(ctypes.byref(version))
            out["cupti"] = "%s (version %d)" % (name, version.value)
            break
        except (OSError, AttributeError):
            pass
    try:
        out["gpu"] = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    except Exception as e:
        out["gpu_error"] = str(e)
    try:
        import fusebox
        import fusebox._engine
        out["fusebox"] = getattr(fusebox, "__version__", "?")
    except BaseException as e:
        out["fusebox_error"] = "%s: %s" % (type(e).__name__, e)
print(json.dumps(out))
)py";

/// Whether a recording would hold the times of kernels on a GPU.
Finding checkGpuTimes(const json& facts) {
  const char* subject = "gpu times";
  if (facts.contains("gpu_error")) return {subject, Health::Broken, facts.value("gpu_error", ""), "CUDA does not start in this Python"};
  const std::string gpu = facts.value("gpu", "");
  if (gpu.empty()) return {subject, Health::Absent, "this PyTorch sees no GPU", "only needed for programs that use one"};
  if (!facts.contains("cupti")) {
    return {subject, Health::Absent, gpu + ", but CUPTI is not in PyTorch's process", "pip install nvidia-cuda-cupti of PyTorch's CUDA version"};
  }
  for (const char* owner : {"CUDA_INJECTION64_PATH", "NSYS_PROFILING_SESSION_ID"}) {
    if (!std::getenv(owner)) continue;
    return {subject, Health::Absent, fmt::format("{}; another profiler is in the process ({} is set)", gpu, owner),
            "only one can have CUPTI: run without it"};
  }
  return {subject, Health::Works, fmt::format("{} by {}", gpu, facts.value("cupti", "")), ""};
}

std::vector<Finding> checkPython(const DoctorOptions& options) {
  auto choice = choosePython(options.python);
  if (!choice) return {{"python", Health::Broken, choice.error().text(), "give an interpreter with --python"}};
  const std::string package = packageFolder();
  if (!package.empty()) {
    const char* old = std::getenv("PYTHONPATH");
    setenv("PYTHONPATH", (package + (old && *old ? ":" + std::string(old) : "")).c_str(), 1);
  }
  auto probe = runChild({choice->interpreter, "-c", kProbe}, "", 60'000);
  if (!probe || probe->exitCode != 0) {
    return {{"python", Health::Broken, choice->interpreter + ": " + (probe ? probe->err : probe.error().text()),
             "give a working interpreter with --python"}};
  }
  const json facts = json::parse(probe->out.substr(0, probe->out.find('\n')), nullptr, false);
  if (facts.is_discarded()) return {{"python", Health::Broken, "it prints when it starts: " + probe->out, ""}};
  std::vector<Finding> out;
  const std::string version = facts.value("python", "?");
  const bool supported = version.rfind("3.11.", 0) == 0 || version.rfind("3.12.", 0) == 0;
  out.push_back({"python", supported ? Health::Works : Health::Broken,
                 fmt::format("{} at {} (from {})", version, choice->interpreter, choice->why),
                 supported ? "" : "the engine supports CPython 3.11 and 3.12"});
  if (facts.contains("torch")) {
    const std::string torch = facts["torch"], built = builtTorchVersion();
    const bool same = built.empty() || built == torch;
    out.push_back({"torch", same ? Health::Works : Health::Broken, torch + (same ? "" : ", the engine was built for " + built),
                   same ? "" : "configure with -DFUSEBOX_PYTHON=" + choice->interpreter + " and build again"});
  } else {
    out.push_back({"torch", Health::Broken, facts.value("torch_error", ""), "install PyTorch into this Python"});
  }
  if (facts.contains("torch")) out.push_back(checkGpuTimes(facts));
  if (package.empty()) {
    out.push_back({"engine", Health::Broken, "not built", "configure with -DFUSEBOX_PYTHON=<interpreter with PyTorch>"});
  } else if (facts.contains("fusebox")) {
    out.push_back({"engine", Health::Works, fmt::format("fusebox {} in {}", facts.value("fusebox", "?"), package), ""});
  } else {
    out.push_back({"engine", Health::Broken, facts.value("fusebox_error", "not tried, torch is missing"),
                   "build it for this Python: -DFUSEBOX_PYTHON=" + choice->interpreter});
  }
  return out;
}

std::vector<Finding> checkCpu(const DoctorOptions&) {
  std::ifstream in("/proc/cpuinfo");
  std::string model, flags;
  for (std::string line; std::getline(in, line) && (model.empty() || flags.empty());) {
    if (line.rfind("model name", 0) == 0) model = line.substr(line.find(':') + 2);
    if (line.rfind("flags", 0) == 0) flags = line.substr(line.find(':') + 1) + " ";
  }
  std::string found;
  for (const char* feature : {"avx2", "fma", "f16c", "avx512f", "avx512vl", "avx512bw", "avx512dq", "avx512_bf16",
                              "avx512_fp16", "amx_tile"}) {
    if (flags.find(std::string(" ") + feature + " ") != std::string::npos) found += (found.empty() ? "" : " ") + std::string(feature);
  }
  const bool vectors = found.find("avx2") != std::string::npos;
  return {{"cpu", Health::Works, fmt::format("{}, {} processors, {}", model, sysconf(_SC_NPROCESSORS_ONLN), found),
           vectors ? "" : "without AVX2 the plain kernels are used, which are slow"}};
}

Finding checkLibrary(const char* subject, std::initializer_list<const char*> names, const std::string& mend) {
  for (const char* name : names) {
    if (void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL)) {
      dlclose(library);
      return {subject, Health::Works, name, ""};
    }
  }
  return {subject, Health::Absent, "not found", mend};
}

std::vector<Finding> checkCuda(const DoctorOptions&) {
  auto driver = checkLibrary("cuda driver", {"libcuda.so.1"}, "only needed for GPUs: install NVIDIA's driver");
  std::ifstream version("/proc/driver/nvidia/version");
  std::string line;
  if (driver.health == Health::Works && std::getline(version, line)) driver.detail += ", " + line;
  return {driver, checkLibrary("cupti", {"libcupti.so", "libcupti.so.13", "libcupti.so.12"},
                               "only needed for GPU times: it comes with the CUDA toolkit and with PyTorch's CUDA wheels")};
}

std::vector<Finding> checkDot(const DoctorOptions&) {
  auto version = runChild({"dot", "-V"}, "", 5000);
  if (!version) return {{"dot", Health::Absent, "not found", "for `fusebox diagram`: apt install graphviz"}};
  return {{"dot", Health::Works, version->err.substr(0, version->err.find('\n')), ""}};
}

std::vector<Finding> checkPermissions(const DoctorOptions&) {
  std::vector<Finding> out;
  std::error_code error;
  const std::string folder = std::filesystem::current_path(error).string();
  const bool writable = access(".", W_OK) == 0;
  out.push_back({"working directory", writable ? Health::Works : Health::Broken, folder,
                 writable ? "" : "sessions go here by default; use --session FILE elsewhere"});
  const auto space = std::filesystem::space(".", error);
  if (!error && space.available < (uint64_t{1} << 28)) {
    out.push_back({"disk", Health::Broken, fmt::format("{} MiB free", space.available >> 20), "make room, or use --session"});
  }
  std::ifstream perf("/proc/sys/kernel/perf_event_paranoid");
  int level = 0;
  if (perf >> level) {
    const bool open = level <= 2 || geteuid() == 0;
    out.push_back({"perf events", open ? Health::Works : Health::Absent, fmt::format("perf_event_paranoid is {}", level),
                   open ? "" : "only needed for hardware counters: sudo sysctl kernel.perf_event_paranoid=2"});
  }
  std::ifstream nvidia("/proc/driver/nvidia/params");
  for (std::string line; std::getline(nvidia, line);) {
    if (line.rfind("RmProfilingAdminOnly: 1", 0) != 0 || geteuid() == 0) continue;
    out.push_back({"gpu counters", Health::Absent, "only for root on this machine",
                   "only needed for GPU counters: load the nvidia module with NVreg_RestrictProfilingToAdminUsers=0"});
  }
  const bool display = std::getenv("DISPLAY") || std::getenv("WAYLAND_DISPLAY");
  out.push_back({"display", display ? Health::Works : Health::Absent, display ? "there is one" : "none",
                 display ? "" : "the window needs one; every command works without"});
  return out;
}

const char* healthName(Health health) {
  return health == Health::Works ? "works" : health == Health::Absent ? "absent" : "broken";
}

}  // namespace

int runDoctor(const DoctorOptions& options) {
  using Check = std::vector<Finding> (*)(const DoctorOptions&);
  constexpr Check kChecks[] = {checkPython, checkCpu, checkCuda, checkDot, checkPermissions};
  json list = json::array();
  bool healthy = true;
  for (const Check check : kChecks) {
    for (const Finding& f : check(options)) {
      healthy &= f.health != Health::Broken;
      list.push_back({{"subject", f.subject}, {"state", healthName(f.health)}, {"detail", f.detail}, {"mend", f.mend}});
      if (options.json) continue;
      fmt::print("{:<6}  {:<17}  {}\n", healthName(f.health), f.subject, f.detail);
      if (!f.mend.empty()) fmt::print("{:27}{}\n", "", f.mend);
    }
  }
  if (options.json) {
    fmt::print("{}\n", json{{"version", FUSEBOX_VERSION}, {"ok", healthy}, {"findings", list}}.dump(
                           2, ' ', false, json::error_handler_t::replace));
  } else {
    fmt::print("{}\n", healthy ? "Everything that is needed works." : "Something that is needed is broken; see above.");
  }
  return healthy ? kOk : kBroken;
}

}  // namespace fusebox::cli
