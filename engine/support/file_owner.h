#pragma once

#include <string_view>
#include <vector>

namespace fusebox {

/// Whether a recorded file belongs to Fusebox's own Python package, wherever that was installed or built: the host that starts the
/// program, the wrapper around modules. It is never a part of the user's program.
bool isFuseboxFile(std::string_view file);

/// Whether a recorded file is of the user's program: not PyTorch's, not Fusebox's, not Python's, of no installed library.
bool isProgramFile(std::string_view file);

/// The program's line that led to the end of a stack (innermost last): its innermost place in a file of the program, the innermost of
/// all where none is. Null for an empty stack.
template <class Place>
const Place* programPlace(const std::vector<Place>& stack) {
  for (auto at = stack.rbegin(); at != stack.rend(); ++at) {
    if (isProgramFile(at->file)) return &*at;
  }
  return stack.empty() ? nullptr : &stack.back();
}

}  // namespace fusebox
