#pragma once

#include <string>

namespace fusebox::cli {

/// A summary's text with the lines in red that say what was not compiled, where `fd` is a terminal and NO_COLOR is not set.
std::string coloured(const std::string& text, int fd);

/// The text without control characters but line ends and tabs: names come from files, and a terminal obeys what it is sent.
std::string printable(std::string text);

}  // namespace fusebox::cli
