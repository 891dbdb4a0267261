#include "engine/runtime/gpu/cuda_linker.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <string_view>

namespace fusebox::runtime::gpu {
namespace {

constexpr int kPtxInput = 2;  // NVJITLINK_INPUT_PTX
constexpr const char* kNames[] = {"libnvJitLink.so.13", "libnvJitLink.so.12"};
constexpr const char* kWheelFolders[] = {"nvidia/cu13/lib/", "nvidia/nvjitlink/lib/"};  // beside torch in site-packages

/// The folder that holds the package torch, if torch is in this process.
std::string sitePackages() {
  void* torch = dlopen("libc10.so", RTLD_NOW | RTLD_NOLOAD);
  if (!torch) return {};
  link_map* map = nullptr;
  std::string path = dlinfo(torch, RTLD_DI_LINKMAP, &map) == 0 && map ? map->l_name : "";
  dlclose(torch);
  const size_t at = path.rfind("/torch/lib/");
  return at == std::string::npos ? std::string() : path.substr(0, at + 1);
}

void* open() {
  if (const char* chosen = std::getenv("FUSEBOX_NVJITLINK"))
    return std::string_view(chosen) == "driver" ? nullptr : dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
  for (const char* name : kNames)
    if (void* loaded = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return loaded;
  if (const std::string site = sitePackages(); !site.empty())
    for (const char* folder : kWheelFolders)
      for (const char* name : kNames)
        if (void* library = dlopen((site + folder + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  for (const char* name : kNames)
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  return nullptr;
}

}  // namespace

Result<CudaLinker> CudaLinker::load() {
  void* library = open();
  if (!library)
    return fail(ErrorCode::NotFound,
                "nvJitLink not found: not what FUSEBOX_NVJITLINK names, not loaded, not beside torch (nvidia wheels), not on the library path");
  CudaLinker l;
  const struct {
    const char* name;
    void** place;
  } functions[] = {
      {"nvJitLinkCreate", reinterpret_cast<void**>(&l.create_)},
      {"nvJitLinkDestroy", reinterpret_cast<void**>(&l.destroy_)},
      {"nvJitLinkAddData", reinterpret_cast<void**>(&l.addData_)},
      {"nvJitLinkComplete", reinterpret_cast<void**>(&l.complete_)},
      {"nvJitLinkGetLinkedCubinSize", reinterpret_cast<void**>(&l.cubinSize_)},
      {"nvJitLinkGetLinkedCubin", reinterpret_cast<void**>(&l.cubin_)},
      {"nvJitLinkGetErrorLogSize", reinterpret_cast<void**>(&l.logSize_)},
      {"nvJitLinkGetErrorLog", reinterpret_cast<void**>(&l.log_)},
  };
  for (const auto& f : functions) {
    *f.place = dlsym(library, f.name);
    if (!*f.place) return fail(ErrorCode::Unsupported, "this nvJitLink lacks a function", f.name);
  }
  return l;
}

Result<const CudaLinker*> CudaLinker::get() {
  static const Result<CudaLinker> linker = load();
  if (!linker) return tl::unexpected(linker.error());
  return &*linker;
}

Result<std::string> CudaLinker::link(const std::string& ptx, int capability) const {
  const std::string architecture = "-arch=sm_" + std::to_string(capability) + (capability == 90 ? "a" : "");  // with what only Hopper has
  const char* options[] = {architecture.c_str(), "-O3"};
  Handle handle = nullptr;
  if (int error = create_(&handle, 2, options))
    return fail(ErrorCode::Unsupported, "nvJitLink refuses this architecture (error " + std::to_string(error) + ")",
                architecture);
  int error = addData_(handle, kPtxInput, ptx.data(), ptx.size(), "kernel");
  if (!error) error = complete_(handle);
  std::string cubin;
  size_t bytes = 0;
  if (!error) error = cubinSize_(handle, &bytes);
  if (!error) {
    cubin.resize(bytes);
    error = cubin_(handle, cubin.data());
  }
  std::string log;
  if (error && logSize_(handle, &bytes) == 0 && bytes > 0) {
    log.resize(bytes);
    log_(handle, log.data());
  }
  destroy_(&handle);
  if (error)
    return fail(ErrorCode::Internal, "nvJitLink: error " + std::to_string(error) + ": " + log.c_str(), architecture);
  return cubin;
}

}  // namespace fusebox::runtime::gpu
