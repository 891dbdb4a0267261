#include "engine/runtime/gpu/cuda_driver.h"

#include <dlfcn.h>

#include <mutex>

namespace fusebox::runtime::gpu {
namespace {

/// Attributes of cuDeviceGetAttribute.
constexpr int kMultiprocessorCount = 16, kL2Bytes = 38, kCapabilityMajor = 75, kCapabilityMinor = 76, kSharedBytesOfBlock = 97;

Result<CudaDriver> load() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = dlerror();
    return fail(ErrorCode::NotFound, "no NVIDIA driver on this machine", why ? why : "libcuda.so.1");
  }
  CudaDriver d{};
  const struct {
    const char* name;
    void** place;
  } functions[] = {
#define FUSEBOX_CUDA(member, symbol) {symbol, reinterpret_cast<void**>(&d.member)}
      FUSEBOX_CUDA(cuInit, "cuInit"),
      FUSEBOX_CUDA(cuGetErrorName, "cuGetErrorName"),
      FUSEBOX_CUDA(cuGetErrorString, "cuGetErrorString"),
      FUSEBOX_CUDA(cuDriverGetVersion, "cuDriverGetVersion"),
      FUSEBOX_CUDA(cuDeviceGetCount, "cuDeviceGetCount"),
      FUSEBOX_CUDA(cuDeviceGet, "cuDeviceGet"),
      FUSEBOX_CUDA(cuDeviceGetAttribute, "cuDeviceGetAttribute"),
      FUSEBOX_CUDA(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain"),
      FUSEBOX_CUDA(cuCtxGetCurrent, "cuCtxGetCurrent"),
      FUSEBOX_CUDA(cuCtxSetCurrent, "cuCtxSetCurrent"),
      FUSEBOX_CUDA(cuCtxSynchronize, "cuCtxSynchronize"),
      FUSEBOX_CUDA(cuModuleLoadDataEx, "cuModuleLoadDataEx"),
      FUSEBOX_CUDA(cuModuleGetFunction, "cuModuleGetFunction"),
      FUSEBOX_CUDA(cuFuncSetAttribute, "cuFuncSetAttribute"),
      FUSEBOX_CUDA(cuModuleUnload, "cuModuleUnload"),
      FUSEBOX_CUDA(cuLaunchKernel, "cuLaunchKernel"),
      FUSEBOX_CUDA(cuGraphLaunch, "cuGraphLaunch"),
      FUSEBOX_CUDA(cuGraphGetNodes, "cuGraphGetNodes"),
      FUSEBOX_CUDA(cuStreamGetCaptureInfo, "cuStreamGetCaptureInfo_v2"),
      FUSEBOX_CUDA(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode"),
      FUSEBOX_CUDA(cuEventCreate, "cuEventCreate"),
      FUSEBOX_CUDA(cuEventRecord, "cuEventRecord"),
      FUSEBOX_CUDA(cuEventSynchronize, "cuEventSynchronize"),
      FUSEBOX_CUDA(cuEventElapsedTime, "cuEventElapsedTime"),
      FUSEBOX_CUDA(cuEventDestroy, "cuEventDestroy_v2"),
      FUSEBOX_CUDA(cuMemsetD8Async, "cuMemsetD8Async"),
      FUSEBOX_CUDA(cuMemAlloc, "cuMemAlloc_v2"),
      FUSEBOX_CUDA(cuMemFree, "cuMemFree_v2"),
      FUSEBOX_CUDA(cuMemcpyHtoD, "cuMemcpyHtoD_v2"),
      FUSEBOX_CUDA(cuMemcpyDtoH, "cuMemcpyDtoH_v2"),
#undef FUSEBOX_CUDA
  };
  for (const auto& f : functions) {
    *f.place = dlsym(library, f.name);
    if (!*f.place)
      return fail(ErrorCode::Unsupported, "the NVIDIA driver is too old: libcuda.so.1 lacks a function", f.name);
  }
  if (auto started = d.check(d.cuInit(0), "cuInit"); !started) return tl::unexpected(started.error());
  return d;
}

}  // namespace

Result<const CudaDriver*> CudaDriver::get() {
  static const Result<CudaDriver> driver = load();
  if (!driver) return tl::unexpected(driver.error());
  return &*driver;
}

Result<void> CudaDriver::check(int error, const char* call) const {
  if (error == 0) return {};
  const char *name = nullptr, *text = nullptr;
  cuGetErrorName(error, &name);
  cuGetErrorString(error, &text);
  return fail(ErrorCode::Internal, std::string("CUDA: ") + (text ? text : "unknown error"),
              std::string(call) + ", " + (name ? name : "?"));
}

Result<void> CudaDriver::ensureContext(int device) const {
  CudaContext current = nullptr;
  if (cuCtxGetCurrent(&current) == 0 && current) return {};
  int handle = 0;
  if (auto found = check(cuDeviceGet(&handle, device), "cuDeviceGet"); !found) return found;
  if (auto held = check(cuDevicePrimaryCtxRetain(&current, handle), "cuDevicePrimaryCtxRetain"); !held) return held;
  return check(cuCtxSetCurrent(current), "cuCtxSetCurrent");
}

Result<DeviceFacts> deviceFacts(int device) {
  auto driver = CudaDriver::get();
  if (!driver) return tl::unexpected(driver.error());
  const CudaDriver& d = **driver;
  int handle = 0, major = 0, minor = 0, count = 0;
  if (auto r = d.check(d.cuDeviceGet(&handle, device), "cuDeviceGet"); !r) return tl::unexpected(r.error());
  for (const auto& [attribute, place] :
       {std::pair{kCapabilityMajor, &major}, {kCapabilityMinor, &minor}, {kMultiprocessorCount, &count}})
    if (auto r = d.check(d.cuDeviceGetAttribute(place, attribute, handle), "cuDeviceGetAttribute"); !r)
      return tl::unexpected(r.error());
  return DeviceFacts{10 * major + minor, count};
}

Result<std::string> deviceText(int device) {
  auto facts = deviceFacts(device);
  if (!facts) return tl::unexpected(facts.error());
  const CudaDriver& d = **CudaDriver::get();
  std::string text = "compute capability " + std::to_string(facts->capability) + ", " + std::to_string(facts->multiprocessors) + " multiprocessors";
  int handle = 0, value = 0;
  if (auto r = d.check(d.cuDeviceGet(&handle, device), "cuDeviceGet"); !r) return tl::unexpected(r.error());
  for (const auto& [attribute, what] : {std::pair{kSharedBytesOfBlock, " bytes of shared memory a block"}, {kL2Bytes, " bytes of L2 cache"}}) {
    if (auto r = d.check(d.cuDeviceGetAttribute(&value, attribute, handle), "cuDeviceGetAttribute"); !r) return tl::unexpected(r.error());
    text += ", " + std::to_string(value) + what;
  }
  if (auto r = d.check(d.cuDriverGetVersion(&value), "cuDriverGetVersion"); !r) return tl::unexpected(r.error());
  return text + ", driver " + std::to_string(value);
}

}  // namespace fusebox::runtime::gpu
