#pragma once

#include <cstdint>
#include <string>

namespace fusebox::test {

/// What a written trace holds, so that tests can compare.
struct ChromeTraceFacts {
  int64_t launches = 0;  ///< each an operator, a launch call and a kernel, tied by an arrow
};

/// Writes a Chrome trace of at least `bytes`, shaped like Kineto's: four threads, three streams, fifty kernels. No launches:
/// the file cannot be written.
ChromeTraceFacts writeChromeTrace(const std::string& path, int64_t bytes);

}  // namespace fusebox::test
