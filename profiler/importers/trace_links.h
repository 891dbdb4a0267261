#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "profiler/importers/session_builder.h"

namespace fusebox::importing {

/// Ties events of a profiler's trace together when all of it was read: device work to the call that started it, kernels
/// to the operator that called them, the two ends of arrows. What waits lies in temporary tables, not in memory; what device work says
/// of its operator lies in its row (`unresolved`).
class TraceLinks {
 public:
  static Result<std::unique_ptr<TraceLinks>> create(SessionBuilder& session);

  /// A call of the device's interface (cudaLaunchKernel …) that started work with this correlation. Of two calls for
  /// one launch (run-time interface and driver) the run-time interface's counts.
  void deviceCall(int64_t correlation, int64_t cpuEvent, int64_t thread, int64_t startNs, int64_t durNs, bool driver);
  /// An operator of the framework, by the id that its kernels carry.
  void operatorSpan(int64_t externalId, int64_t cpuEvent, std::string_view name);
  /// An operator that autograd numbered; its gradient (`backward`) has the same number.
  void sequence(int64_t cpuEvent, int64_t number, bool backward);
  /// A kernel seen with the id of its operator.
  void kernelOf(int64_t kernel, int64_t externalId);
  /// One end of an arrow (`key` joins the ends).
  void arrow(std::string_view key, std::string_view kind, std::string_view name, bool start, int64_t thread,
             int64_t timeNs);

  /// Writes flows, and the operators and places of kernels.
  Result<void> finish();

 private:
  explicit TraceLinks(SessionBuilder& session) : session_(session) {}
  SessionBuilder& session_;
  session::Statement call_, driverCall_, operator_, sequence_, kernel_, arrow_;
};

}  // namespace fusebox::importing
