#pragma once

#include <cstddef>
#include <cstdint>

/// Parameters of CUPTI's range profiler and its evaluation on the host (cupti_range_profiler.h, cupti_profiler_host.h,
/// cupti_profiler_target.h and cupti_target.h of CUDA 13.0; unchanged since 12.6, where they came). Every structure begins with its
/// own size up to its last field and a pointer that stays null. Declared here so that nothing of CUDA is needed to build.
namespace fusebox::cupti::abi {

struct Parameters {
  size_t size = 0;
  void* reserved = nullptr;
};

/// Parameters whose size ends with `last`, as CUPTI wants it.
template <class T, class Last>
T sized(Last T::* last) {
  T parameters;
  const auto* begin = reinterpret_cast<const char*>(&parameters);
  parameters.size = static_cast<size_t>(reinterpret_cast<const char*>(&(parameters.*last)) - begin) + sizeof(Last);
  return parameters;
}

struct ProfilerInitialize : Parameters {};
struct DeviceSupported : Parameters {
  int device = 0;
  int isSupported = 0;  ///< 0 unknown, 1 no, 2 switched off, 3 yes; so the next ones
  int architecture = 0, sli = 0, virtualGpu = 0, confidentialCompute = 0, miningProcessor = 0, wsl = 0;
  int api = 0;          ///< 0: range profiler, 3: PM sampling
};
struct DeviceChip : Parameters {
  size_t device = 0;
  const char* chip = nullptr;
};
struct HostInitialize : Parameters {
  int profiler = 0;  ///< 0: range profiler, 1: PM sampling
  const char* chip = nullptr;
  const uint8_t* availability = nullptr;
  void* host = nullptr;
};
struct HostObject : Parameters {
  void* host = nullptr;
};
struct HostAddMetrics : Parameters {
  void* host = nullptr;
  const char** names = nullptr;
  size_t count = 0;
};
struct HostConfigSize : Parameters {
  void* host = nullptr;
  size_t bytes = 0;
};
struct HostConfig : Parameters {
  void* host = nullptr;
  size_t bytes = 0;
  uint8_t* image = nullptr;
};
struct HostPasses : Parameters {
  size_t bytes = 0;
  uint8_t* image = nullptr;
  size_t passes = 0;
};
struct HostBaseMetrics : Parameters {
  void* host = nullptr;
  int type = 0;  ///< 0 counters, 1 ratios, 2 throughputs
  const char** names = nullptr;
  size_t count = 0;
};
struct HostEvaluate : Parameters {
  void* host = nullptr;
  const uint8_t* data = nullptr;
  size_t bytes = 0, range = 0;
  const char** names = nullptr;
  size_t count = 0;
  double* values = nullptr;
};
struct RangeEnable : Parameters {
  void* context = nullptr;
  void* profiler = nullptr;
};
struct RangeObject : Parameters {
  void* profiler = nullptr;
};
struct RangeDataSize : Parameters {
  void* profiler = nullptr;
  const char** names = nullptr;
  size_t count = 0, ranges = 0;
  uint32_t treeNodes = 0;
  size_t bytes = 0;
};
struct RangeDataInitialize : Parameters {
  void* profiler = nullptr;
  size_t bytes = 0;
  uint8_t* data = nullptr;
};
struct RangeConfig : Parameters {
  void* profiler = nullptr;
  size_t configBytes = 0;
  const uint8_t* config = nullptr;
  size_t dataBytes = 0;
  uint8_t* data = nullptr;
  int range = 1;   ///< 1: each kernel
  int replay = 0;  ///< 1: the application's affair
  size_t rangesPerPass = 0;
  uint16_t levels = 1, firstLevel = 1;
  size_t pass = 0;
  uint16_t targetLevel = 0;
};
struct RangeStop : Parameters {
  void* profiler = nullptr;
  size_t pass = 0, targetLevel = 0;
  uint8_t allSubmitted = 0;
};
struct RangeDecode : Parameters {
  void* profiler = nullptr;
  size_t dropped = 0;
};
struct RangeDataInfo : Parameters {
  const uint8_t* data = nullptr;
  size_t bytes = 0, ranges = 0;
};

}  // namespace fusebox::cupti::abi
