#pragma once

#include <cstdint>
#include <string>

namespace fusebox::views {

/// "1.24 ms": three significant digits and the unit that fits (ns, µs, ms, s).
std::string formatDuration(double nanoseconds);

/// "3.20 MiB" (B, KiB, MiB, GiB, TiB).
std::string formatBytes(double bytes);

/// "1 234 567" with thin spaces between groups of three digits.
std::string formatCount(int64_t count);

/// "1 node" or "12 nodes", with the words that the caller has translated.
std::string formatNumberOf(int64_t count, const std::string& one, const std::string& many);

/// "12.3 GB/s" (1e9 bytes a second) and "1.20 MB/s"; empty if either number is not positive.
std::string formatBandwidth(double bytes, double nanoseconds);

/// "12.3 GFLOP/s"; empty if either number is not positive.
std::string formatFlops(double flops, double nanoseconds);

/// "12.3 %" of `whole`, "<0.1 %" of what would round to nothing; empty if `whole` is not positive.
std::string formatShare(double part, double whole);

/// The step of a ruler (1, 2 or 5 times a power of ten) that puts labels at least `minimum` units apart.
double rulerStep(double minimum);

}  // namespace fusebox::views
