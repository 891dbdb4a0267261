#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/support/result.h"

namespace fusebox::runtime::gpu {

/// Makes machine code of PTX with NVIDIA's nvJitLink, which comes with the user's PyTorch (or CUDA): needs no driver
/// and no GPU, and runs on several threads at once. FUSEBOX_NVJITLINK names the library ("driver": none, so that the driver's
/// compiler is used); else it is what the process has loaded, that of the wheels beside torch, or the system's.
class CudaLinker {
 public:
  /// The process's linker; an Error says where it was looked for.
  static Result<const CudaLinker*> get();
  /// A cubin for devices of compute capability `capability` / 10.
  Result<std::string> link(const std::string& ptx, int capability) const;

 private:
  using Handle = void*;
  static Result<CudaLinker> load();
  int (*create_)(Handle* handle, uint32_t options, const char** text);
  int (*destroy_)(Handle* handle);
  int (*addData_)(Handle handle, int kind, const void* data, size_t bytes, const char* name);
  int (*complete_)(Handle handle);
  int (*cubinSize_)(Handle handle, size_t* bytes);
  int (*cubin_)(Handle handle, void* out);
  int (*logSize_)(Handle handle, size_t* bytes);
  int (*log_)(Handle handle, char* out);
};

}  // namespace fusebox::runtime::gpu
