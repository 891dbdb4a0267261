#pragma once

#include <string>

#include "profiler/importers/fx_text.h"
#include "profiler/importers/torch_script_code.h"

namespace fusebox::importing {

/// `forward` of `rootClass` as one graph. Methods of submodules and functions are opened out, each node with the path
/// of the module whose code it is; parameters and other attributes are inputs. Both branches of an if are there, joined
/// by a prim::If on the condition and the two values; a loop's body is there once, between a prim::Loop (the values on
/// entry) and a prim::LoopEnd. `unread` counts what was not understood.
FxGraph scriptGraph(const ScriptCode& code, const std::string& rootClass);

}  // namespace fusebox::importing
