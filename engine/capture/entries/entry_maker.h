#pragma once

#include "engine/capture/entries/entry_cache.h"

namespace fusebox::capture {

/// Captures from `state` on, compiles the graph and adds the entry to `point`; says why the entries that are there did not fit.
/// Null when the frame has to go on without: `failed` then tells whether a Python error is set (fullgraph, limits that raise).
/// After success the guards have been checked against `state`, so the entry's outputs are filled.
std::shared_ptr<Entry> makeEntry(CodeState& code, EntryPoint& point, const FrameState& state, const GlobalState& now,
                                 const RegionOptions* options, PyObject* globals, bool* failed);

/// The frame is CPython's because of `why` (GlobalState::refusal): told once, an error under fullgraph. False with a Python error set then.
bool leaveToPython(CodeState& code, EntryPoint& point, const RegionOptions* options, const char* why);

}  // namespace fusebox::capture
