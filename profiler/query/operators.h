#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/session/reader.h"

namespace fusebox::query {

/// What an operator of torch cost in a recording of torch.profiler, all its calls together: a row of what PyTorch prints as
/// `key_averages()`, with calls of the CUDA runtime and what the profiler itself took as rows of their own, as there.
struct OperatorTotals {
  std::string name = {}, kind = {};  ///< kind: cpu_op, user_annotation, cuda_runtime, cuda_driver, overhead (what the profiler itself took), call, memory (what was given out or back outside of all of these)
  int64_t calls = 0;
  int64_t totalNs = 0;   ///< on the CPU, with what it called; a call inside of a call of the same name counts twice
  int64_t selfNs = 0;    ///< without the operators, annotations and runtime calls inside of it
  int64_t leastNs = 0, mostNs = 0;
  int64_t deviceNs = 0;  ///< of the kernels and copies that its calls asked for themselves, a region's replays of CUDA graphs among them
  int64_t deviceTotalNs = 0;  ///< with those that what it called asked for
  /// What torch's allocators gave out less what they took back while its calls were under way, on any thread, where the profiler recorded memory:
  /// `own` without what was so while a call inside of it was.
  struct Memory {
    int64_t ownBytes = 0, bytes = 0;
  };
  Memory cpu = {}, device = {};
  int64_t shapes = 0;    ///< different sizes of inputs; 0: the recording has none
  struct Place {
    std::string file;
    int64_t line = 0, calls = 0, selfNs = 0;
  };
  std::vector<Place> places = {};  ///< functions of the user that called it, most own time first; none without recorded stacks
  std::string shape = {};///< the sizes, where there is one kind of them: "[[64, 64], [64, 192]]"
};

/// Most time of its own first. Whether a session has any: hasOperators().
Result<std::vector<OperatorTotals>> operatorTotals(const session::Reader& reader);
/// Whether what torch ran outside compiled code would be in the session.
bool knowsOperators(const session::Reader& reader);
bool hasOperators(const session::Reader& reader);

}  // namespace fusebox::query
