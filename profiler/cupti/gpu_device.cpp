#include "profiler/cupti/gpu_device.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>

namespace fusebox::cupti {
namespace {

/// The driver's functions that are used here, by its ABI (CUresult, CUdevice: int; addresses: uint64_t; handles: pointers).
struct Driver {
  int (*deviceCount)(int*);
  int (*deviceGet)(int*, int);
  int (*deviceName)(char*, int, int);
  int (*deviceMemory)(size_t*, int);
  int (*attribute)(int*, int, int);
  int (*state)(int, unsigned*, int*);
  int (*retain)(void**, int);
  int (*release)(int);
  int (*push)(void*);
  int (*pop)(void**);
  int (*synchronize)();
  int (*memoryInfo)(size_t*, size_t*);
  int (*allocate)(uint64_t*, size_t);
  int (*free)(uint64_t);
  int (*set)(uint64_t, unsigned char, size_t);
  int (*copy)(uint64_t, uint64_t, size_t, void*);
  int (*eventCreate)(void**, unsigned);
  int (*eventRecord)(void*, void*);
  int (*eventSynchronize)(void*);
  int (*eventElapsed)(float*, void*, void*);
  int (*eventDestroy)(void*);
};

const Driver* driver() {
  static const Driver* loaded = []() -> const Driver* {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!library) return nullptr;
    static Driver d;
    const struct {
      const char* name;
      void** place;
    } functions[] = {
        {"cuDeviceGetCount", reinterpret_cast<void**>(&d.deviceCount)},
        {"cuDeviceGet", reinterpret_cast<void**>(&d.deviceGet)},
        {"cuDeviceGetName", reinterpret_cast<void**>(&d.deviceName)},
        {"cuDeviceTotalMem_v2", reinterpret_cast<void**>(&d.deviceMemory)},
        {"cuDeviceGetAttribute", reinterpret_cast<void**>(&d.attribute)},
        {"cuDevicePrimaryCtxGetState", reinterpret_cast<void**>(&d.state)},
        {"cuDevicePrimaryCtxRetain", reinterpret_cast<void**>(&d.retain)},
        {"cuDevicePrimaryCtxRelease_v2", reinterpret_cast<void**>(&d.release)},
        {"cuCtxPushCurrent_v2", reinterpret_cast<void**>(&d.push)},
        {"cuCtxPopCurrent_v2", reinterpret_cast<void**>(&d.pop)},
        {"cuCtxSynchronize", reinterpret_cast<void**>(&d.synchronize)},
        {"cuMemGetInfo_v2", reinterpret_cast<void**>(&d.memoryInfo)},
        {"cuMemAlloc_v2", reinterpret_cast<void**>(&d.allocate)},
        {"cuMemFree_v2", reinterpret_cast<void**>(&d.free)},
        {"cuMemsetD8_v2", reinterpret_cast<void**>(&d.set)},
        {"cuMemcpyDtoDAsync_v2", reinterpret_cast<void**>(&d.copy)},
        {"cuEventCreate", reinterpret_cast<void**>(&d.eventCreate)},
        {"cuEventRecord", reinterpret_cast<void**>(&d.eventRecord)},
        {"cuEventSynchronize", reinterpret_cast<void**>(&d.eventSynchronize)},
        {"cuEventElapsedTime", reinterpret_cast<void**>(&d.eventElapsed)},
        {"cuEventDestroy_v2", reinterpret_cast<void**>(&d.eventDestroy)},
    };
    for (const auto& f : functions) {
      *f.place = dlsym(library, f.name);
      if (!*f.place) return nullptr;
    }
    return &d;
  }();
  return loaded;
}

/// Float32 lanes of a multiprocessor.
int64_t lanesOf(int capability) {
  switch (capability) {
    case 70:
    case 72:
    case 75:
    case 80: return 64;
    default: return 128;
  }
}

}  // namespace

int64_t GpuDevice::peakBytesPerSecond() const { return memoryClockKhz * 1000 * 2 * (memoryBusBits / 8); }
int64_t GpuDevice::peakFlops() const { return clockKhz * 1000 * multiprocessors * lanesOf(capability) * 2; }

Result<std::vector<GpuDevice>> gpuDevices() {
  const Driver* d = driver();
  if (!d) return fail(ErrorCode::NotFound, "no NVIDIA driver in this process");
  int count = 0;
  if (const int error = d->deviceCount(&count)) return fail(ErrorCode::Unsupported, fmt::format("cuDeviceGetCount: error {}", error));
  std::vector<GpuDevice> out;
  for (int i = 0; i < count; ++i) {
    int handle = 0;
    if (d->deviceGet(&handle, i) != 0) continue;
    const auto attribute = [&](int which) {
      int value = 0;
      return d->attribute(&value, which, handle) == 0 ? value : 0;
    };
    GpuDevice g;
    g.device = i;
    char name[128] = {};
    if (d->deviceName(name, sizeof name - 1, handle) == 0) g.name = name;
    size_t bytes = 0;
    if (d->deviceMemory(&bytes, handle) == 0) g.memoryBytes = static_cast<int64_t>(bytes);
    // Numbers of CUdevice_attribute.
    g.capability = attribute(75) * 10 + attribute(76);
    g.multiprocessors = attribute(16);
    g.clockKhz = attribute(13);
    g.memoryClockKhz = attribute(36);
    g.memoryBusBits = attribute(37);
    g.l2Bytes = attribute(38);
    g.threadsPerMultiprocessor = attribute(39);
    g.sharedPerMultiprocessor = attribute(81);
    g.registersPerMultiprocessor = attribute(82);
    out.push_back(std::move(g));
  }
  return out;
}

Result<std::unique_ptr<HeldContext>> HeldContext::of(int device) {
  const Driver* d = driver();
  if (!d) return fail(ErrorCode::NotFound, "no NVIDIA driver in this process");
  int handle = 0;
  void* context = nullptr;
  if (d->deviceGet(&handle, device) != 0 || d->retain(&context, handle) != 0) {
    return fail(ErrorCode::NotFound, "no such device", std::to_string(device));
  }
  return std::unique_ptr<HeldContext>(new HeldContext(handle, context));
}

HeldContext::~HeldContext() { driver()->release(handle_); }
void HeldContext::enter() { driver()->push(context_); }
void HeldContext::leave() {
  void* popped = nullptr;
  driver()->pop(&popped);
}
void HeldContext::wait() { (void)driver()->synchronize(); }

Result<int64_t> measureCopy(int device) {
  constexpr size_t kBytes = size_t{256} << 20;
  constexpr int kRounds = 5;
  const Driver* d = driver();
  if (!d) return fail(ErrorCode::NotFound, "no NVIDIA driver in this process");
  int handle = 0;
  void* context = nullptr;
  unsigned flags = 0;
  int active = 0;
  // A device that nobody used is left alone: a context there would take memory and time.
  if (d->deviceGet(&handle, device) != 0 || d->state(handle, &flags, &active) != 0 || !active) {
    return fail(ErrorCode::NotFound, "this device is not in use", std::to_string(device));
  }
  if (d->retain(&context, handle) != 0) return fail(ErrorCode::NotFound, "no such device", std::to_string(device));
  d->push(context);
  uint64_t memory[2] = {0, 0};
  void* events[2] = {nullptr, nullptr};
  size_t free = 0, all = 0;
  double best = 0;
  const bool room = d->memoryInfo(&free, &all) == 0 && free >= 8 * kBytes;
  bool good = room && d->allocate(&memory[0], kBytes) == 0 && d->allocate(&memory[1], kBytes) == 0 &&
              d->eventCreate(&events[0], 0) == 0 && d->eventCreate(&events[1], 0) == 0 && d->set(memory[0], 1, kBytes) == 0;
  for (int i = 0; good && i < kRounds; ++i) {
    float ms = 0;
    good = d->eventRecord(events[0], nullptr) == 0 && d->copy(memory[1], memory[0], kBytes, nullptr) == 0 &&
           d->eventRecord(events[1], nullptr) == 0 && d->eventSynchronize(events[1]) == 0 &&
           d->eventElapsed(&ms, events[0], events[1]) == 0;
    if (good && ms > 0) best = std::max(best, 2.0 * static_cast<double>(kBytes) / (static_cast<double>(ms) / 1e3));
  }
  for (void* event : events)
    if (event) d->eventDestroy(event);
  for (const uint64_t address : memory)
    if (address) d->free(address);
  void* popped = nullptr;
  d->pop(&popped);
  d->release(handle);
  if (!room) return fail(ErrorCode::NotFound, "the device has too little free memory to measure a copy");
  if (!good || best <= 0) return fail(ErrorCode::Unsupported, "the copy could not be measured");
  return static_cast<int64_t>(best);
}

}  // namespace fusebox::cupti
