#include "app/cli/command_line.h"

namespace fusebox::cli {

int runCommandLine(int argc, char** argv, const OpenWindow& openWindow) {
  return openWindow({.file = argc > 2 ? argv[2] : "", .runCommand = {}});
}

}  // namespace fusebox::cli
