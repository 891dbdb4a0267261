#pragma once

#include <string>

#include "engine/aot/aot_module.h"
#include "engine/record/recorder.h"

namespace fusebox {

/// The recorded graphs that a compiled region was made from. Empty when nothing is recorded.
struct TracedGraphs {
  record::Recorder* recorder = nullptr;  ///< whose ids these are
  record::GraphSnapshot forward, backward;
};

/// Records the graphs of a traced region under `compile`, tied node by node: captured (what the program did), joint (with the
/// gradients, where they are wanted), forward and backward (what is compiled). `name` is the frame's, for people.
TracedGraphs recordTraced(const aot::AotModule& module, record::Id compile, const std::string& name);

}  // namespace fusebox
