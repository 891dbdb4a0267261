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

}  // namespace fusebox::cli
