#include "app/cli/checked_output.h"
#include "app/cli/command_line.h"
#include "app/cli/graph_drawing.h"
#include "app/window/draw_graph.h"
#include "app/window/window.h"

int main(int argc, char** argv) {
  fusebox::cli::graphDrawing() = fusebox::window::drawGraph;
  return fusebox::cli::withCheckedOutput([&] {
    return fusebox::cli::runCommandLine(argc, argv, [&](const fusebox::cli::WindowWish& wish) {
      return fusebox::window::runWindow(argc, argv, {.file = wish.file, .compareWith = wish.compareWith, .runCommand = wish.runCommand,
                                                 .debug = wish.debug, .breakpoints = wish.breakpoints});
    });
  });
}
