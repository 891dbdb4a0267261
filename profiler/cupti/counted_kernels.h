#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "profiler/cupti/kernel_counters.h"
#include "profiler/session/row_sink.h"

namespace fusebox::cupti {

/// Ties hardware counters to the kernels that they were read of. CUPTI says neither kernel nor time of a range, but its ranges are in
/// order of launch, and kernels run one after another meanwhile: the n-th kernel event between a start and a stop is the n-th range.
class CountedKernels {
 public:
  using Loss = std::function<void(const std::string& what, int64_t count, const std::string& detail)>;

  /// Begins to remember kernels of `device`, the one whose counters are read. From any thread.
  void expect(std::vector<std::string> metrics, uint32_t device);
  bool isExpecting() const;
  bool isExpecting(uint32_t device) const;
  /// From any thread.
  void add(CounterWindow window);
  /// A kernel's event in the session. On the writer's thread, as the next ones.
  void kernelRan(int64_t event, int64_t startNs);
  /// Rows of all windows; once the last kernel has been told.
  void write(session::RowSink& sink, const Loss& loss);

 private:
  struct Kernel {
    int64_t startNs = 0, event = 0;
  };
  mutable std::mutex mutex_;  ///< of the next three
  std::vector<std::string> metrics_;
  uint32_t device_ = 0;
  std::vector<CounterWindow> windows_;
  std::vector<Kernel> kernels_;
};

}  // namespace fusebox::cupti
