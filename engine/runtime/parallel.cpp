#include "engine/runtime/parallel.h"

#include <cstdlib>
#include <string_view>

#include <ATen/Parallel.h>

// libtorch decides in its header whether a loop is parallel: a source compiled without OpenMP would get a serial one, silently.
#if AT_PARALLEL_OPENMP && !defined(INTRA_OP_PARALLEL)
#error "engine/runtime/parallel.cpp must be compiled with OpenMP, as libtorch was"
#endif

namespace fusebox::runtime {

void parallelFor(int64_t begin, int64_t end, int64_t grain, c10::function_ref<void(int64_t, int64_t)> work) {
  at::parallel_for(begin, end, grain, work);
}

double nanosecondsPerTask() {
  static const bool sleeps = [] {
    const char* policy = std::getenv("OMP_WAIT_POLICY");
    return policy && (policy == std::string_view("PASSIVE") || policy == std::string_view("passive"));
  }();
  return sleeps ? 100'000 : 20'000;
}

}  // namespace fusebox::runtime
