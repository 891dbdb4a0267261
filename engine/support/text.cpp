#include "engine/support/text.h"

#include <atomic>

namespace fusebox {
namespace {

std::atomic<Translator> translator{nullptr};

}  // namespace

void setTranslator(Translator made) { translator = made; }

std::string say(const Text& text) {
  const Translator translate = translator;
  return translate ? translate(text) : text.text;
}

std::string sayFormatted(const Text& text, fmt::format_args arguments) {
  const std::string said = say(text);
  for (const std::string_view format : {std::string_view(said), std::string_view(text.text)}) {
    try {
      return fmt::vformat(format, arguments);
    } catch (const fmt::format_error&) {
      continue;  // a translation with other places than the arguments have
    }
  }
  return text.text;
}

}  // namespace fusebox
