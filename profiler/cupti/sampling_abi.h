#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/cupti/counter_abi.h"

/// Parameters of CUPTI's PM sampling (cupti_pmsampling.h of CUDA 13.0; unchanged since 12.6, where it came).
namespace fusebox::cupti::abi {

struct SamplingAvailability : Parameters {
  size_t device = 0;
  size_t bytes = 0;
  uint8_t* image = nullptr;  ///< null: only the size is asked for
};
struct SamplingEnable : Parameters {
  size_t device = 0;
  void* sampling = nullptr;
};
/// Of disable, start and stop.
struct SamplingObject : Parameters {
  void* sampling = nullptr;
};
struct SamplingConfig : Parameters {
  void* sampling = nullptr;
  size_t configBytes = 0;
  const uint8_t* config = nullptr;
  size_t hardwareBytes = 0;
  uint64_t interval = 0;  ///< nanoseconds, or cycles of the system's clock
  int trigger = 1;        ///< 0: cycles, 1: nanoseconds (neither Turing nor GA100 has it)
  int append = 0;         ///< 0: keep the oldest records when the buffer is full, and say so
};
struct SamplingDataSize : Parameters {
  void* sampling = nullptr;
  const char** names = nullptr;
  size_t count = 0;
  uint32_t samples = 0;
  size_t bytes = 0;
};
struct SamplingDataInitialize : Parameters {
  void* sampling = nullptr;
  size_t bytes = 0;
  uint8_t* data = nullptr;
};
struct SamplingDecode : Parameters {
  void* sampling = nullptr;
  uint8_t* data = nullptr;
  size_t bytes = 0;
  int stopReason = 0;    ///< 1: the counter data image is full, 2: all was decoded
  uint8_t overflow = 0;  ///< of the hardware's buffer
};
struct SamplingDataInfo : Parameters {
  const uint8_t* data = nullptr;
  size_t bytes = 0, total = 0, populated = 0, completed = 0;
};
struct SamplingSampleInfo : Parameters {
  void* sampling = nullptr;
  const uint8_t* data = nullptr;
  size_t bytes = 0, index = 0;
  uint64_t start = 0, end = 0;
};

}  // namespace fusebox::cupti::abi
