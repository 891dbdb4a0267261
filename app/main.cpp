#include "app/cli/command_line.h"
#include "app/window/window.h"

int main(int argc, char** argv) {
  return fusebox::cli::runCommandLine(argc, argv, [&](const fusebox::cli::WindowWish& wish) {
    return fusebox::window::runWindow(argc, argv, {.file = wish.file, .compareWith = wish.compareWith, .runCommand = wish.runCommand});
  });
}
