#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/support/result.h"

namespace fusebox::query {

/// One change of a line (1-based) of a file.
struct LineEdit {
  enum class Kind { Replace, InsertBefore, Remove };
  Kind kind = Kind::Replace;
  int line = 0;
  std::string text;  ///< of the new line or lines, without the last newline
};

/// The edits as a unified diff with `context` lines around them ("diff -u", as `patch -p0` and `git apply` take it);
/// empty if an edit names a line that the source does not have.
std::string unifiedDiff(const std::string& path, std::string_view source, std::vector<LineEdit> edits, int context = 3);

/// The source with a diff of it applied, as `patch --fuzz=0` would; InvalidArgument where a line is not the one that the diff was made of.
Result<std::string> applyDiff(std::string_view source, std::string_view diff);
/// The file that a diff changes; empty for a text that is none, or whose lines have lost their indentation.
std::string pathOfDiff(std::string_view diff);

/// Lines of a text without their newlines.
std::vector<std::string_view> splitLines(std::string_view text);

}  // namespace fusebox::query
