#pragma once

#include <cstdint>

#include <c10/util/FunctionRef.h>

namespace fusebox::runtime {

/// Runs `work(begin, end)` over pieces of [begin, end) of at least `grain` units each on libtorch's own threads (as many as
/// torch.set_num_threads says), and throws what a piece throws. One piece on the calling thread inside another parallel region.
void parallelFor(int64_t begin, int64_t end, int64_t grain, c10::function_ref<void(int64_t, int64_t)> work);

/// Nanoseconds of work that pay for handing it to another thread: little while idle threads spin, which is their habit, more
/// when they sleep between loops (OMP_WAIT_POLICY=PASSIVE).
double nanosecondsPerTask();

}  // namespace fusebox::runtime
