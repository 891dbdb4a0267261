#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace fusebox {

/// What kind of failure an Error is; callers branch on it, people read the message.
enum class ErrorCode {
  InvalidArgument,  ///< the caller asked for something that has no meaning
  Unsupported,      ///< legal, but this engine cannot do it; the caller falls back
  NotFound,         ///< a named thing does not exist
  Io,               ///< the operating system refused a file, socket or process
  Corrupt,          ///< a file from outside is damaged or not what it claims to be
  Cancelled,        ///< somebody asked for it to end
  TooNew,           ///< a file was written by a newer Fusebox
  Internal,         ///< a bug of ours, caught at the pipeline's edge
};

/// A failure that crosses a layer edge: what happened, and where or with what (`context`).
struct Error {
  ErrorCode code = ErrorCode::Internal;
  std::string message;
  std::string context;

  /// "message (context)", the form shown to people.
  std::string text() const { return context.empty() ? message : message + " (" + context + ")"; }
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message, std::string context = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::move(context)});
}

}  // namespace fusebox
