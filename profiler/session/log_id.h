#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fusebox::session {

/// A compilation as PyTorch's logs and reports print it: `[frame/compile]`, both counted from 0, the autograd engine's number before
/// it (`[!0/1/0]`) and, from the second attempt on, the attempt behind it (`[0/0_1]`). Empty where neither number is known.
std::string logId(std::optional<int64_t> autograd, std::optional<int64_t> frame, std::optional<int64_t> compile, int64_t attempt = 0);

}  // namespace fusebox::session
