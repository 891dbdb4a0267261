#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/support/result.h"

namespace fusebox::cupti {

/// The functions of libcupti that are used, by the names and signatures of the activity API (CUptiResult and CUpti_ActivityKind
/// are ints). Deliberately without cuptiSubscribe, which shuts torch.profiler out for good, and cuptiFinalize, after which CUDA
/// graphs that were replayed under CUPTI fail and take the context with them.
struct CuptiFunctions {
  using RequestBuffer = void (*)(uint8_t** buffer, size_t* bytes, size_t* maxRecords);
  using CompleteBuffer = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t bytes, size_t validBytes);
  using Clock = uint64_t (*)();

  int (*getVersion)(uint32_t* version) = nullptr;
  int (*getResultString)(int result, const char** text) = nullptr;
  int (*registerCallbacks)(RequestBuffer request, CompleteBuffer complete) = nullptr;
  int (*registerTimestamp)(Clock clock) = nullptr;
  int (*enable)(uint32_t kind) = nullptr;
  int (*disable)(uint32_t kind) = nullptr;
  int (*enableDriverApi)(uint32_t cbid, uint8_t on) = nullptr;
  int (*enableRuntimeApi)(uint32_t cbid, uint8_t on) = nullptr;
  int (*flushAll)(uint32_t flags) = nullptr;
  int (*nextRecord)(uint8_t* buffer, size_t validBytes, void** record) = nullptr;
  int (*droppedRecords)(void* context, uint32_t stream, size_t* dropped) = nullptr;

  std::string from;      ///< the library's file
  uint32_t version = 0;  ///< CUPTI_API_VERSION

  std::string errorText(int result) const;
};

/// The CUPTI that is in this process already (torch's CUDA libraries need it); otherwise one from the library path. Another
/// copy beside a loaded one would see nothing. NotFound: there is none; Unsupported: a version whose records are not known.
Result<CuptiFunctions> loadCupti();

}  // namespace fusebox::cupti
