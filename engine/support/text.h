#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace fusebox {

/// An English text that people read, and the context under which translators find it.
struct Text {
  const char* context;
  const char* text;
};
/// A Text of two literals; lupdate collects them (CONTRIBUTING.md has the command).
#define FUSEBOX_TEXT(context, text) \
  ::fusebox::Text { context, text }

/// Gives a text in the reader's language; called from any thread.
using Translator = std::string (*)(const Text&);
/// The window sets one before anything is said. Without one texts stay English, as on the command line and in JSON.
void setTranslator(Translator translator);

/// The text in the reader's language, as it stands: braces are only braces.
std::string say(const Text& text);
/// The text in the reader's language with its arguments in it, as fmt formats them. A translation that does not fit them gives way to
/// the English text.
std::string sayFormatted(const Text& text, fmt::format_args arguments);
template <class... Arguments>
std::string say(const Text& text, const Arguments&... arguments) {
  return sayFormatted(text, fmt::make_format_args(arguments...));
}
/// `one` where n is 1, else `many`; n is the first argument of both: {"{} kernel", "{} kernels"}.
template <class... Arguments>
std::string sayCount(const Text& one, const Text& many, int64_t n, const Arguments&... arguments) {
  return sayFormatted(n == 1 ? one : many, fmt::make_format_args(n, arguments...));
}

}  // namespace fusebox
