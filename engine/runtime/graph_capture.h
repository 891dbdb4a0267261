#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <c10/core/Device.h>

namespace fusebox::runtime {

/// Work on a device that was captured once and can be launched again and again.
class CapturedWork {
 public:
  virtual ~CapturedWork() = default;
  /// On torch's current stream of the device; returns without waiting for it.
  virtual void launch() = 0;
};

/// How work of a device is captured: CUDA's stream capture through torch, or a stand-in where tests have no GPU. One capture at a
/// time and process.
class GraphCapture {
 public:
  virtual ~GraphCapture() = default;

  /// The process's, or null: no CUDA graphs here.
  static GraphCapture* instance();
  static void install(std::unique_ptr<GraphCapture> capture);

  /// Devices whose work it captures.
  virtual c10::DeviceType deviceType() const = 0;
  /// Before a recording or replay: work to come on torch's current stream waits for what was launched on another before, since
  /// recordings share memory. False, with nothing done, while the program itself captures that stream: the call is to run plainly.
  virtual bool begin(c10::Device device) = 0;
  /// Carries out `work` under capture: it does not run, but is written down. What it allocates comes from a pool that all captures of
  /// a device share: free memory of one is taken by the next. `random`: it draws random numbers with torch's generator, whose state
  /// moves on with every launch as it would without a graph. Throws what `work` throws, and c10::Error where capture fails.
  virtual std::unique_ptr<CapturedWork> capture(c10::Device device, bool random, const std::function<void()>& work) = 0;
  /// During `work`: memory asked for from now on is of a pool that nothing else uses, until called with false.
  virtual void keepMemory(bool keep) = 0;
  /// During `work`: nodes captured so far.
  virtual int32_t nodes() = 0;
  /// Ends the use of the pool that keepMemory(true) opened since the last call of this function; the memory stays where it is in use.
  /// Called once a recording is complete.
  virtual std::shared_ptr<void> takeKeptMemory() = 0;
  /// What the pool of all captures of a device holds, in bytes, whether or not it is in use; -1: not known. Takes as long as a walk over
  /// the pool's blocks.
  virtual int64_t poolBytes(c10::Device device) = 0;
};

}  // namespace fusebox::runtime
