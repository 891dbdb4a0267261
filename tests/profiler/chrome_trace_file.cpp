#include "tests/profiler/chrome_trace_file.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>

namespace fusebox::test {
namespace {

constexpr const char* kHead =
    "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [{\"id\": 0, \"name\": \"Generated\"}],\n"
    "  \"displayTimeUnit\": \"ms\", \"baseTimeNanoseconds\": 1790857026000000000,\n  \"traceEvents\": [\n";
constexpr const char* kTail =
    "  {\"name\": \"process_name\", \"ph\": \"M\", \"ts\": 0, \"pid\": 100, \"tid\": 0, \"args\": {\"name\": \"python\"}}\n  ],\n"
    "  \"traceName\": \"generated\"\n}\n";
// {0} number, {1} microseconds, {2} thread, {3} operator, {4} kernel, {5} stream.
constexpr const char* kLaunch = R"(  {{
    "ph": "X", "cat": "cpu_op", "name": "aten::{3}", "pid": 100, "tid": {2},
    "ts": {1}.125, "dur": 18.500,
    "args": {{
      "External id": {0},"Record function id": 0, "Ev Idx": {0}
    }}
  }},
  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100, "tid": {2},
    "ts": {1}.500, "dur": 4.250,
    "args": {{
      "External id": {0}, "cbid": 211, "correlation": {0}
    }}
  }},
  {{
    "ph": "s", "id": {0}, "pid": 100, "tid": {2}, "ts": {1}.500,
    "cat": "ac2g", "name": "ac2g"
  }},
  {{
    "ph": "X", "cat": "kernel", "name": "{4}", "pid": 0, "tid": {5},
    "ts": {1}.900, "dur": 9.000,
    "args": {{
      "External id": {0}, "queued": 0, "device": 0, "context": 1, "stream": {5}, "correlation": {0},
      "registers per thread": 32, "shared memory": 0, "grid": [128, 1, 1], "block": [256, 1, 1]
    }}
  }},
  {{
    "ph": "f", "id": {0}, "pid": 0, "tid": {5}, "ts": {1}.900,
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  }},
)";
constexpr const char* kOperators[] = {"mm", "add", "relu"};
constexpr int64_t kFirstUs = 4'000'000'000, kPeriodUs = 20;

}  // namespace

ChromeTraceFacts writeChromeTrace(const std::string& path, int64_t bytes) {
  std::ofstream out(path, std::ios::binary);
  out << kHead;
  ChromeTraceFacts facts;
  std::string rows;
  for (int64_t written = 0; out && written < bytes; written += static_cast<int64_t>(rows.size())) {
    rows.clear();
    for (int k = 0; k < 1000; ++k) {
      const int64_t i = ++facts.launches;
      fmt::format_to(std::back_inserter(rows), fmt::runtime(kLaunch), i, kFirstUs + i * kPeriodUs, 100 + i % 4, kOperators[i % 3],
                     fmt::format("triton_poi_fused_add_{}", i % 50), 7 + i % 3);
    }
    out << rows;
  }
  out << kTail;
  out.close();
  return out ? facts : ChromeTraceFacts{};
}

}  // namespace fusebox::test
