#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace fusebox::compare {

/// Times of something that happened `count` times, in nanoseconds. Median and deviation may come from a sample; count, total,
/// minimum and maximum never do.
struct Spread {
  int64_t count = 0;
  double totalNs = 0, medianNs = 0;
  double madNs = 0;  ///< median absolute deviation from the median
  double minNs = 0, maxNs = 0;
  bool onDevice = false;  ///< measured by a GPU, not as the length of the call that asked it
};
/// Count 0 for no samples.
Spread spreadOf(std::vector<double> samples);

/// Whether B is really slower or faster than A.
enum class Verdict : uint8_t {
  Unknown,  ///< a side has no times, one only, or times of another clock
  Noise,    ///< the difference is one that runs of the same program show
  Faster,
  Slower,
};
/// Differences below this share of the smaller median are never called more than noise: clocks, placement and neighbours move
/// whole runs by that much.
inline constexpr double kNoiseFloor = 0.05;
inline constexpr double kClockNs = 200;  ///< and below this many nanoseconds nothing is said
/// With five samples or more on both sides: the medians differ by more than five standard errors (1.2533 · 1.4826 · MAD / √n
/// each) and by more than the floor. With three or four: there is more between the ranges than both are wide, and the medians differ by
/// a quarter or more. So one comparison in a hundred at most, of five samples, takes the noise of one program (log-normal, σ up to 0.6)
/// for a difference; the ranges of two samples alone do not overlap in one of three. One sample says nothing of how much others would
/// differ: there is no verdict from it.
Verdict judge(const Spread& a, const Spread& b);
/// What was timed once where both sides have times: "1 launch each", "1 launch in A" (`launches`), "once each" of what is not launched. Empty
/// where no side has one time only.
std::string onceText(const Spread& a, const Spread& b, bool launches);
const char* verdictName(Verdict verdict);

/// "1.24 ms", "812 ns", "3.1 KiB": for text that people read.
std::string durationText(double nanoseconds);
std::string bytesText(double bytes);
/// "+12 %" of a to b; "×3.4" from twice on; empty where a is not positive.
std::string changeText(double a, double b);
/// The same, said to be noise where it is.
std::string judgedChange(double a, double b, bool noise);
/// "1.24 ms ± 0.03": median and MAD; with " on GPU" where that measured.
std::string spreadText(const Spread& spread);

}  // namespace fusebox::compare
