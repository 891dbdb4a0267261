#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "profiler/cupti/activity_abi.h"
#include "profiler/cupti/cupti_library.h"

namespace fusebox::testing {

/// CUPTI as the process sees it, without a GPU: takes the callbacks, asks for buffers, fills them with given records and hands
/// them back when it is flushed. Its functions carry no pointer, so there is one.
struct FakeCupti {
  using Bytes = std::vector<std::byte>;
  cupti::CuptiFunctions::RequestBuffer request = nullptr;
  cupti::CuptiFunctions::CompleteBuffer complete = nullptr;
  cupti::CuptiFunctions::Clock clock = nullptr;
  std::set<uint32_t> enabled;
  std::set<uint32_t> driverCallsOff, runtimeCallsOff;
  std::map<uint32_t, int> enableErrors;  ///< by kind
  int clocksRegistered = 0;
  alignas(std::atomic_ref<int>::required_alignment) int flushes = 0, forcedFlushes = 0;  ///< by any thread: read through atomic_ref
  size_t dropped = 0;
  std::vector<Bytes> waiting;            ///< records that the next flush delivers
  size_t recordsOfBuffer = 1000;
  bool keepBuffers = false;              ///< as if another user had taken the callbacks over
  std::map<uint8_t*, std::vector<size_t>> sizes;  ///< of the records in a buffer

  static FakeCupti& instance() {
    static FakeCupti fake;
    return fake;
  }
  void reset() { *this = FakeCupti(); }

  template <class Record>
  void add(const Record& record) {
    Bytes bytes(sizeof record);
    std::memcpy(bytes.data(), &record, sizeof record);
    waiting.push_back(std::move(bytes));
  }

  void deliver() {
    size_t next = 0;
    while (next < waiting.size() && request) {
      uint8_t* buffer = nullptr;
      size_t room = 0, most = 0, used = 0;
      request(&buffer, &room, &most);
      if (!buffer) {
        dropped += waiting.size() - next;
        break;
      }
      auto& lengths = sizes[buffer];
      lengths.clear();
      while (next < waiting.size() && lengths.size() < recordsOfBuffer && used + waiting[next].size() <= room) {
        std::memcpy(buffer + used, waiting[next].data(), waiting[next].size());
        lengths.push_back(waiting[next].size());
        used += waiting[next++].size();
      }
      if (!keepBuffers) complete(nullptr, 0, buffer, room, used);
    }
    waiting.clear();
  }

  static cupti::CuptiFunctions functions() {
    cupti::CuptiFunctions f;
    f.getResultString = [](int result, const char** text) {
      *text = result == 39 ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" : "CUPTI_ERROR";
      return 0;
    };
    f.registerCallbacks = [](auto request, auto complete) {
      instance().request = request, instance().complete = complete;
      return 0;
    };
    f.registerTimestamp = [](auto clock) { return instance().clock = clock, ++instance().clocksRegistered, 0; };
    f.enable = [](uint32_t kind) {
      if (const auto error = instance().enableErrors.find(kind); error != instance().enableErrors.end()) return error->second;
      return instance().enabled.insert(kind), 0;
    };
    f.disable = [](uint32_t kind) { return instance().enabled.erase(kind), 0; };
    f.enableDriverApi = [](uint32_t cbid, uint8_t on) { return on ? 0 : (instance().driverCallsOff.insert(cbid), 0); };
    f.enableRuntimeApi = [](uint32_t cbid, uint8_t on) { return on ? 0 : (instance().runtimeCallsOff.insert(cbid), 0); };
    f.flushAll = [](uint32_t flags) {
      ++std::atomic_ref(flags ? instance().forcedFlushes : instance().flushes);
      return instance().deliver(), 0;
    };
    f.nextRecord = [](uint8_t* buffer, size_t valid, void** record) {
      const auto& lengths = instance().sizes[buffer];
      size_t at = 0, index = 0;
      if (*record) {
        while (buffer + at != *record && index < lengths.size()) at += lengths[index++];
        if (index >= lengths.size()) return 1;
        at += lengths[index];
      }
      if (at >= valid) return 12;  // CUPTI_ERROR_MAX_LIMIT_REACHED
      *record = buffer + at;
      return 0;
    };
    f.droppedRecords = [](void*, uint32_t, size_t* dropped) { return *dropped = std::exchange(instance().dropped, 0), 0; };
    f.version = 130001;
    return f;
  }
};

inline cupti::abi::Kernel kernelRecord(const char* name, uint32_t correlation, uint64_t start, uint64_t end, uint32_t stream = 7) {
  cupti::abi::Kernel k{};
  k.kind = cupti::abi::kConcurrentKernel;
  k.name = name;
  k.correlationId = correlation;
  k.start = start, k.end = end;
  k.streamId = stream;
  k.gridX = 132, k.gridY = k.gridZ = 1;
  k.blockX = 256, k.blockY = k.blockZ = 1;
  k.registersPerThread = 48;
  return k;
}

inline cupti::abi::Api callRecord(bool driver, uint32_t cbid, uint32_t correlation, uint64_t start, uint64_t end, uint32_t thread) {
  cupti::abi::Api a{};
  a.kind = driver ? cupti::abi::kDriver : cupti::abi::kRuntime;
  a.cbid = cbid;
  a.correlationId = correlation;
  a.start = start, a.end = end;
  a.threadId = thread;
  return a;
}

}  // namespace fusebox::testing
