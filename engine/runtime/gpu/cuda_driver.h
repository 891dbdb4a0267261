#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/support/result.h"

namespace fusebox::runtime::gpu {

/// Handles of the driver, which are opaque pointers there too.
using CudaContext = void*;
using CudaModule = void*;
using CudaFunction = void*;
using CudaStream = void*;
using CudaGraph = void*;
using CudaGraphExec = void*;
using CudaAddress = uint64_t;

/// The functions of libcuda.so.1 that are used, by the names and signatures of the driver API (CUresult and CUdevice
/// are ints).
struct CudaDriver {
  int (*cuInit)(unsigned flags);
  int (*cuGetErrorName)(int error, const char** name);
  int (*cuGetErrorString)(int error, const char** text);
  int (*cuDriverGetVersion)(int* version);
  int (*cuDeviceGetCount)(int* count);
  int (*cuDeviceGet)(int* device, int ordinal);
  int (*cuDeviceGetAttribute)(int* value, int attribute, int device);
  int (*cuDevicePrimaryCtxRetain)(CudaContext* context, int device);
  int (*cuCtxGetCurrent)(CudaContext* context);
  int (*cuCtxSetCurrent)(CudaContext context);
  int (*cuCtxSynchronize)();
  int (*cuModuleLoadDataEx)(CudaModule* module, const void* image, unsigned options, int* names, void** values);
  int (*cuModuleGetFunction)(CudaFunction* function, CudaModule module, const char* name);
  int (*cuFuncSetAttribute)(CudaFunction function, int attribute, int value);
  int (*cuModuleUnload)(CudaModule module);
  int (*cuLaunchKernel)(CudaFunction function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                        unsigned blockY, unsigned blockZ, unsigned sharedBytes, CudaStream stream, void** arguments,
                        void** extra);
  int (*cuGraphLaunch)(CudaGraphExec graph, CudaStream stream);
  int (*cuGraphGetNodes)(CudaGraph graph, void** nodes, size_t* count);
  int (*cuStreamGetCaptureInfo)(CudaStream stream, int* status, uint64_t* id, CudaGraph* graph, void*** dependencies, size_t* count);
  int (*cuThreadExchangeStreamCaptureMode)(int* mode);
  int (*cuEventCreate)(void** event, unsigned flags);
  int (*cuEventRecord)(void* event, CudaStream stream);
  int (*cuEventSynchronize)(void* event);
  int (*cuEventElapsedTime)(float* milliseconds, void* begin, void* end);
  int (*cuEventDestroy)(void* event);
  int (*cuMemsetD8Async)(CudaAddress address, unsigned char value, size_t bytes, CudaStream stream);
  int (*cuMemAlloc)(CudaAddress* address, size_t bytes);
  int (*cuMemFree)(CudaAddress address);
  int (*cuMemcpyHtoD)(CudaAddress to, const void* from, size_t bytes);
  int (*cuMemcpyDtoH)(void* to, CudaAddress from, size_t bytes);

  /// The process's driver, initialised; the reason where there is none is kept too. Thread-safe.
  static Result<const CudaDriver*> get();

  /// An Error that names the call and the driver's own words; empty for CUDA_SUCCESS (0).
  Result<void> check(int error, const char* call) const;
  /// Makes the device's context current on a thread that has none yet: one of autograd's that has not called CUDA so far. Call it under
  /// a guard of that device: CUDA takes the device of the current context for the thread's current device.
  Result<void> ensureContext(int device) const;
};

struct DeviceFacts {
  int capability = 0;  ///< compute capability times ten
  int multiprocessors = 0;
};
Result<DeviceFacts> deviceFacts(int device);
/// What code and plans for a device depend on, and its driver: "compute capability 90, …".
Result<std::string> deviceText(int device);

}  // namespace fusebox::runtime::gpu
