#pragma once

#include <cstddef>
#include <cstdint>

/// The parts of CUPTI's activity records that are read, declared here so that nothing of CUDA is needed to build. CUPTI only
/// ever appends fields to a record, so these prefixes hold for every version that `abiSupported` names (compared with the
/// headers of CUDA 12.8 and 13.0: CUpti_ActivityKernel9/10, Memcpy5/6, Memset4, API, Synchronization, Overhead2/3).
namespace fusebox::cupti::abi {

/// CUpti_ActivityKind.
enum Kind : uint32_t {
  kMemcpy = 1,
  kMemset = 2,
  kDriver = 4,
  kRuntime = 5,
  kConcurrentKernel = 10,
  kOverhead = 17,
  kSynchronization = 38,
};

#pragma pack(push, 1)

/// CUpti_ActivityKernel9 and later, up to graphId.
struct alignas(8) Kernel {
  uint32_t kind;
  uint8_t cacheConfig;
  uint8_t sharedMemoryConfig;
  uint16_t registersPerThread;
  uint32_t cacheRequested, cacheExecuted;
  uint64_t start, end, completed;
  uint32_t deviceId, contextId, streamId;
  int32_t gridX, gridY, gridZ;
  int32_t blockX, blockY, blockZ;
  int32_t staticSharedMemory, dynamicSharedMemory;
  uint32_t localMemoryPerThread, localMemoryTotal;
  uint32_t correlationId;
  int64_t gridId;
  const char* name;
  void* reserved0;
  uint64_t queued, submitted;
  uint8_t launchType, isCarveoutRequested, carveoutRequested, padding;
  uint32_t sharedMemoryExecuted;
  uint64_t graphNodeId;
  uint32_t shmemLimitConfig;
  uint32_t graphId;
};
static_assert(offsetof(Kernel, registersPerThread) == 6 && offsetof(Kernel, start) == 16 && offsetof(Kernel, deviceId) == 40);
static_assert(offsetof(Kernel, correlationId) == 92 && offsetof(Kernel, name) == 104 && offsetof(Kernel, graphNodeId) == 144);
static_assert(offsetof(Kernel, graphId) == 156 && sizeof(Kernel) == 160);

/// CUpti_ActivityMemcpy5 and later, up to graphId.
struct alignas(8) Memcpy {
  uint32_t kind;
  uint8_t copyKind, srcKind, dstKind, flags;
  uint64_t bytes, start, end;
  uint32_t deviceId, contextId, streamId, correlationId, runtimeCorrelationId, pad;
  void* reserved0;
  uint64_t graphNodeId;
  uint32_t graphId, channelId;
};
static_assert(offsetof(Memcpy, bytes) == 8 && offsetof(Memcpy, graphNodeId) == 64 && offsetof(Memcpy, graphId) == 72);

/// CUpti_ActivityMemset4, up to graphId.
struct alignas(8) Memset {
  uint32_t kind, value;
  uint64_t bytes, start, end;
  uint32_t deviceId, contextId, streamId, correlationId;
  uint16_t flags, memoryKind;
  uint32_t pad;
  void* reserved0;
  uint64_t graphNodeId;
  uint32_t graphId, channelId;
};
static_assert(offsetof(Memset, bytes) == 8 && offsetof(Memset, graphNodeId) == 64 && offsetof(Memset, graphId) == 72);

/// CUpti_ActivityAPI: a call of the driver or the runtime.
struct alignas(8) Api {
  uint32_t kind, cbid;
  uint64_t start, end;
  uint32_t processId, threadId, correlationId, returnValue;
};
static_assert(sizeof(Api) == 40);

/// CUpti_ActivitySynchronization, up to cudaEventId.
struct alignas(8) Synchronization {
  uint32_t kind, type;
  uint64_t start, end;
  uint32_t correlationId, contextId, streamId, cudaEventId;
};
static_assert(sizeof(Synchronization) == 40);

/// CUpti_ActivityOverhead, which later versions only append to.
struct alignas(8) Overhead {
  uint32_t kind, overheadKind, objectKind;
  uint8_t objectId[12];  ///< a union of ids: three words
  uint64_t start, end;
};
static_assert(offsetof(Overhead, start) == 24 && sizeof(Overhead) == 40);

#pragma pack(pop)

/// Whether records of this CUPTI (CUPTI_API_VERSION) have the layout above.
constexpr bool abiSupported(uint32_t version) { return version >= 18 && version < 140000; }

/// The bytes of a record that decoding needs; 0 for kinds that are not read.
constexpr size_t prefixBytes(uint32_t kind) {
  switch (kind) {
    case kConcurrentKernel: return sizeof(Kernel);
    case kMemcpy: return sizeof(Memcpy);
    case kMemset: return sizeof(Memset);
    case kDriver:
    case kRuntime: return sizeof(Api);
    case kSynchronization: return sizeof(Synchronization);
    case kOverhead: return sizeof(Overhead);
    default: return 0;
  }
}

}  // namespace fusebox::cupti::abi
