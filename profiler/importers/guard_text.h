#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fusebox::importing {

/// A guard as TorchDynamo prints it.
struct GuardText {
  std::string kind;    ///< TENSOR_MATCH, EQUALS_MATCH, …
  std::string source;  ///< L['x'], of the guard manager that it hangs on
  std::string code, expected;
  std::string reason;  ///< the user's line, and hints
  std::string file;    ///< may lack its beginning: PyTorch cuts long names from the left
  int64_t line = 0;
};

/// The guards of a printed tree (`dynamo_cpp_guards_str`), in the order of checking.
std::vector<GuardText> parseGuardTree(std::string_view text);

/// "code  # user's line  # file.py:12 in f" into its parts.
GuardText parseGuardLine(std::string_view text);

/// Why an entry could not be used, of a `recompile_reasons` artifact: "0/1: tensor 'x' size mismatch … expected 8,
/// actual 1".
struct RecompileReason {
  std::string entry;  ///< "0/1"; empty if the text names none
  GuardText guard;
  std::string expected, found;
};
RecompileReason parseRecompileReason(std::string_view text);

}  // namespace fusebox::importing
