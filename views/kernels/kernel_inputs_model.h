#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "engine/support/result.h"

namespace fusebox::session {
class Reader;
}

namespace fusebox::views {

/// What kernels are given, by kernel: the names of the values that its nodes read and do not compute, in the order of its nodes ("x, net.a.weight").
/// Views of a value bear its name. A kernel that runs at several places has the inputs of the first. `chosen`: a JSON list of ids of kernels, or
/// empty for all. Kernels whose nodes are not known have none.
Result<std::unordered_map<int64_t, std::string>> loadKernelInputs(const session::Reader& reader, const std::string& chosen);

}  // namespace fusebox::views
