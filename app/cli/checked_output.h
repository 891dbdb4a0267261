#pragma once

#include <functional>

namespace fusebox::cli {

/// Runs a command and sees to it that what it wrote to stdout has arrived. The command's exit code, or, where that was
/// kOk and the output could not be written (a full disk), kUnreadable after a word on stderr. A reader that had enough
/// (`| head`) is no failure.
int withCheckedOutput(const std::function<int()>& command);

}  // namespace fusebox::cli
