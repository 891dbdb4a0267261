#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/support/result.h"

namespace fusebox::cupti {

/// What the driver says of a GPU; 0 where it does not.
struct GpuDevice {
  int device = 0;
  std::string name;
  int capability = 0;  ///< ten times the compute capability
  int multiprocessors = 0;
  int64_t threadsPerMultiprocessor = 0, registersPerMultiprocessor = 0, sharedPerMultiprocessor = 0;  ///< shared in bytes
  int64_t memoryBytes = 0, l2Bytes = 0;
  int64_t clockKhz = 0, memoryClockKhz = 0, memoryBusBits = 0;

  /// Two transfers a clock over the whole bus.
  int64_t peakBytesPerSecond() const;
  /// One fused multiply-add a clock in every float32 lane.
  int64_t peakFlops() const;
};

/// Devices of this process's driver, which must have been initialised; none where there is no driver.
Result<std::vector<GpuDevice>> gpuDevices();

/// What a large copy inside the device reads and writes a second: the roof that memory-bound kernels are held against. Allocates
/// twice 256 MiB for some milliseconds, beside torch's allocator; NotFound where the device has not four times that free. Waits for
/// the device's work under way.
Result<int64_t> measureCopy(int device);

/// The primary context of a device, held while this lives and current to this thread between enter() and leave().
class HeldContext {
 public:
  static Result<std::unique_ptr<HeldContext>> of(int device);
  ~HeldContext();
  void* get() const { return context_; }
  void enter();
  /// Makes what was current before current again.
  void leave();
  /// Waits for the device's work; between enter() and leave().
  void wait();

 private:
  HeldContext(int handle, void* context) : handle_(handle), context_(context) {}
  const int handle_;
  void* const context_;
};

}  // namespace fusebox::cupti
