#include "profiler/cupti/decoder.h"

#include <cstring>

#include "profiler/cupti/activity_abi.h"

namespace fusebox::cupti {
namespace {

using Kind = Activity::Kind;

template <class Record>
void setTimes(Activity& a, const Record& r) {
  a.startNs = static_cast<int64_t>(r.start);
  a.endNs = static_cast<int64_t>(r.end);
}

/// Fields that kernels, copies and memsets share. Node ids are the graph's id above, the node's number below.
template <class Record>
void setDevice(Activity& a, const Record& r) {
  setTimes(a, r);
  a.correlation = r.correlationId;
  a.device = r.deviceId;
  a.stream = r.streamId;
  a.graph = r.graphId;
  a.graphNode = static_cast<uint32_t>(r.graphNodeId);
}

template <class Record>
Record read(const std::byte* from) {
  Record r;
  std::memcpy(&r, from, sizeof r);
  return r;
}

}  // namespace

Decoder::Outcome Decoder::decode(const std::byte* record, std::vector<Activity>& out) {
  uint32_t kind = 0;
  std::memcpy(&kind, record, sizeof kind);
  Activity a;
  switch (kind) {
    case abi::kConcurrentKernel: {
      const auto r = read<abi::Kernel>(record);
      a.kind = Kind::Kernel;
      setDevice(a, r);
      if (a.startNs == 0 || a.endNs == 0) return Outcome::Incomplete;
      LaunchShape shape;
      if (r.name) shape.symbol = r.name;
      shape.device = r.deviceId;
      shape.grid = {r.gridX, r.gridY, r.gridZ};
      shape.block = {r.blockX, r.blockY, r.blockZ};
      shape.registers = r.registersPerThread;
      shape.staticShared = r.staticSharedMemory;
      shape.dynamicShared = r.dynamicSharedMemory;
      shape.localBytes = static_cast<int32_t>(r.localMemoryPerThread);
      a.shape = shapes_.number(shape);
      break;
    }
    case abi::kMemcpy: {
      const auto r = read<abi::Memcpy>(record);
      a.kind = Kind::Memcpy;
      setDevice(a, r);
      a.bytes = static_cast<int64_t>(r.bytes);
      a.copyKind = r.copyKind;
      break;
    }
    case abi::kMemset: {
      const auto r = read<abi::Memset>(record);
      a.kind = Kind::Memset;
      setDevice(a, r);
      a.bytes = static_cast<int64_t>(r.bytes);
      break;
    }
    case abi::kDriver:
    case abi::kRuntime: {
      const auto r = read<abi::Api>(record);
      a.kind = Kind::Call;
      a.driver = kind == abi::kDriver;
      setTimes(a, r);
      a.correlation = r.correlationId;
      a.code = r.cbid;
      a.thread = r.threadId;
      break;
    }
    case abi::kSynchronization: {
      const auto r = read<abi::Synchronization>(record);
      a.kind = Kind::Synchronization;
      setTimes(a, r);
      a.correlation = r.correlationId;
      a.stream = r.streamId;
      a.code = r.type;
      break;
    }
    case abi::kOverhead: {
      const auto r = read<abi::Overhead>(record);
      a.kind = Kind::Overhead;
      setTimes(a, r);
      a.code = r.overheadKind;
      break;
    }
    default: return Outcome::Ignored;
  }
  if (a.startNs == 0 || a.endNs < a.startNs) return Outcome::Incomplete;
  out.push_back(a);
  return Outcome::Decoded;
}

}  // namespace fusebox::cupti
