#pragma once

#include <string>
#include <string_view>

#include "profiler/importers/import_context.h"
#include "profiler/importers/session_builder.h"

namespace fusebox::importing {

/// Whether a file is what torch.jit.save writes, or another archive of PyTorch's that holds no graph (which importing
/// then says).
bool isTorchScript(const std::string& path, std::string_view head);

/// A TorchScript program: its code, read as text, as one graph in which calls of methods are opened out
/// (torch_script_graph.h). Of the pickled part only the name of the outermost class is looked at; weights are not read,
/// so shapes are not known.
Result<void> importTorchScript(const std::string& path, SessionBuilder& session, ImportProgress* progress);

}  // namespace fusebox::importing
