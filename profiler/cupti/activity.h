#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fusebox::cupti {

/// How a device function was launched: every launch of it with the same grid and block shares one.
struct LaunchShape {
  std::string symbol;  ///< mangled, as the device knows it
  uint32_t device = 0;
  std::array<int32_t, 3> grid{}, block{};
  int32_t registers = 0;      ///< of a thread
  int32_t staticShared = 0, dynamicShared = 0;  ///< bytes of a block
  int32_t localBytes = 0;     ///< of a thread: its stack and what was spilled
  bool operator==(const LaunchShape&) const = default;
  int64_t threads() const { return int64_t{block[0]} * block[1] * block[2]; }
};

/// Gives every shape a number, from 1, in order of first appearance. Thread-safe.
class ShapeTable {
 public:
  int32_t number(const LaunchShape& shape);
  /// Shapes numbered from `first` on.
  std::vector<LaunchShape> from(int32_t first) const;
  /// The number of the first shape of device function `symbol`; 0: none.
  int32_t firstOf(const std::string& symbol) const;

 private:
  struct Hash {
    size_t operator()(const LaunchShape& s) const;
  };
  mutable std::mutex mutex_;
  std::unordered_map<LaunchShape, int32_t, Hash> numbers_;
  std::vector<LaunchShape> shapes_;
};

/// One record of CUPTI as a value. Times are nanoseconds of CLOCK_MONOTONIC.
struct Activity {
  enum class Kind : uint8_t { Kernel, Memcpy, Memset, Call, Synchronization, Overhead };
  Kind kind = Kind::Kernel;
  bool driver = false;       ///< Call: of the driver, not the runtime
  uint8_t copyKind = 0;      ///< Memcpy: CUpti_ActivityMemcpyKind
  int64_t startNs = 0, endNs = 0;
  uint32_t correlation = 0;  ///< of the call that asked for it; a graph's nodes share one
  uint32_t device = 0, stream = 0;
  uint32_t graph = 0;        ///< executable graph that replayed it, 0: none
  uint32_t graphNode = 0;    ///< its node in that graph, in order of creation
  int64_t bytes = 0;         ///< Memcpy, Memset
  int32_t shape = 0;         ///< Kernel: number in the ShapeTable
  uint32_t code = 0;         ///< Call: cbid; Synchronization: type; Overhead: kind
  uint32_t thread = 0;       ///< Call: CUPTI's id of the thread
};

/// A call that CUPTI is asked to report.
struct ApiCall {
  uint32_t cbid;
  const char* name;
  enum class Role : uint8_t { Launch, GraphLaunch, Copy, Set, Wait, Memory } role;
};
/// The kept calls of the driver, or of the runtime, by CUpti_driver_api_trace_cbid / CUpti_runtime_api_trace_cbid (numbers never
/// change between versions).
const std::vector<ApiCall>& keptCalls(bool driver);
/// Null for a call that is not kept.
const ApiCall* keptCall(bool driver, uint32_t cbid);

/// The host's copy kinds in the field's words: "HtoD".
const char* copyKindName(uint8_t kind);

/// "void at::native::f<float>(...)" of a mangled name; other names as they are.
std::string demangled(const std::string& symbol);
/// A name for tables: without return type, arguments and template arguments.
std::string shortName(const std::string& demangledName);

}  // namespace fusebox::cupti
