#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/inductor/ir/lowered_graph.h"

namespace fusebox {

/// What can be read off a scheduled program for people: how long buffers live and what its steps move. Bytes of symbolic sizes count 0.
struct ProgramFacts {
  struct Lifetime {
    int32_t first = -1, last = -1;  ///< fusion groups (positions in Schedule::groups) that touch the memory, views included
    bool isFreed = false;           ///< the program lets go of it behind `last`; else it is in the pool, or lives on as a result
  };
  struct Traffic {
    int64_t readBytes = 0, writeBytes = 0;
    int64_t flops = 0;  ///< of generated kernels: floating-point operations, each function (exp, tanh) counted as one
  };
  std::vector<Lifetime> buffers;  ///< by buffer
  std::vector<Traffic> groups;    ///< by fusion group
  std::vector<int32_t> reuses;    ///< by buffer: the planned one whose place in the pool it takes, -1 if none
  std::vector<int32_t> producers; ///< by buffer: the post-grad node that makes it, -1 for inputs and constants
};
ProgramFacts factsOf(const inductor::LoweredGraph& lowered, const inductor::Schedule& schedule);

using inductor::bytesOf;

/// Multiplications and additions of an extern call, for the matrix products and convolutions whose cost follows from their operands;
/// 0 for others.
int64_t flopsOf(const inductor::ExternStep& call, const std::vector<inductor::ProgramBuffer>& buffers);

/// Where an extern call's first result lies ("cpu" where it has none).
std::string deviceOf(const inductor::ExternStep& call, const std::vector<inductor::ProgramBuffer>& buffers);

}  // namespace fusebox
