#pragma once

#include <functional>
#include <string>
#include <vector>

namespace fusebox::cli {

/// What a command asks the window for; main.cpp turns it into the window's own request.
struct WindowWish {
  std::string file;
  std::string compareWith;  ///< a second session to show beside `file`
  std::vector<std::string> runCommand;  ///< words of `fusebox run`
  bool debug = false;                   ///< `runCommand` is to be debugged
  std::string breakpoints;              ///< for the control channel's hello, as JSON
};
using OpenWindow = std::function<int(const WindowWish&)>;

/// Parses and carries out the command line. Returns the process's exit code: 0, 2 for a usage error, 3 for input that cannot
/// be read, or the script's own for `run`. `openWindow` is called only for commands that show the window.
int runCommandLine(int argc, char** argv, const OpenWindow& openWindow);

}  // namespace fusebox::cli
