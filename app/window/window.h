#pragma once

#include <string>
#include <vector>

namespace fusebox::window {

/// What the command line asked the window to show first.
struct WindowRequest {
  std::string file;                     ///< session (or anything else `open` reads); empty: the welcome page
  std::string compareWith;              ///< a second session, compared with `file`; empty: none
  std::vector<std::string> runCommand;  ///< arguments of `fusebox run` to start at once; empty: none
  bool debug = false;                   ///< the run is to be debugged
  std::string breakpoints;              ///< of its start, as JSON
};

/// Constructs the QApplication, shows the window and runs it; returns the process's exit code.
int runWindow(int argc, char** argv, const WindowRequest& request);

}  // namespace fusebox::window
