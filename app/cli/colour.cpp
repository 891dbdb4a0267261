#include "app/cli/colour.h"

#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "profiler/query/summary.h"

namespace fusebox::cli {

std::string coloured(const std::string& text, int fd) {
  if (isatty(fd) != 1 || std::getenv("NO_COLOR")) return text;
  std::istringstream lines(text);
  std::string out, line;
  while (std::getline(lines, line)) {
    const bool red = line.find(query::kNotCompiled) == 2;
    out += (red ? "\033[31m" + line + "\033[0m" : line) + "\n";
  }
  return out;
}

std::string printable(std::string text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) text[i] = ' ';
    // U+0080 to U+009F in UTF-8: control characters too.
    if (c == 0xc2 && i + 1 < text.size() && (static_cast<unsigned char>(text[i + 1]) & 0xe0U) == 0x80) text[i] = text[i + 1] = ' ';
  }
  return text;
}

}  // namespace fusebox::cli
