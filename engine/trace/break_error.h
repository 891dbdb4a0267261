#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace fusebox::trace {

/// Why tracing cannot go on past an operator.
enum class BreakKind {
  DataDependent,   ///< a Python value depends on tensor data (item, bool, tolist, equal)
  DynamicShape,    ///< the result's shape depends on tensor data (nonzero, masked indexing)
  DataAccess,      ///< something wants the tensor's memory (numpy, data_ptr, pickle)
  UnsupportedOp,   ///< no shape rule, or no functional form of a mutation
  UnknownTensor,   ///< a real tensor reached an operator and the lift policy refused it
  InputAliasing,   ///< inputs share memory and one of them is written
  InputMutation,   ///< an input is changed in a way that cannot be written back (set_, resize_, requires_grad_)
  FinishedTrace,   ///< a stand-in outlived its trace
};

/// The field's short name of a kind: "data-dependent value".
std::string_view name(BreakKind kind);

/// Thrown at the operator that cannot be traced. It passes through libtorch; when it leaves into CPython it becomes a RuntimeError
/// whose text starts with `kBreakMarker`, and `takeLastBreak()` still has the structured form.
class BreakError : public std::runtime_error {
 public:
  BreakError(BreakKind kind, std::string reason, std::string hint);
  BreakKind kind() const { return kind_; }
  const std::string& reason() const { return reason_; }
  const std::string& hint() const { return hint_; }

 private:
  BreakKind kind_;
  std::string reason_, hint_;
};

inline constexpr std::string_view kBreakMarker = "FUSEBOX_BREAK";

/// Throws a BreakError and remembers it for takeLastBreak().
[[noreturn]] void raiseBreak(BreakKind kind, std::string reason, std::string hint);

/// The last BreakError raised on this thread since the last call, removed. Capture asks for it when a call raised.
std::optional<BreakError> takeLastBreak();
/// Parses the text of a RuntimeError made from a BreakError; nullopt when it is something else.
std::optional<BreakError> parseBreak(std::string_view text);

}  // namespace fusebox::trace
