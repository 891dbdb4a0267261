#pragma once

#include "engine/capture/entries/entry_cache.h"

namespace fusebox::capture {

/// Captures from `state` on, compiles the graph and adds the entry to `point`; says why the entries that are there did not fit.
/// Null when the frame has to go on without: `failed` then tells whether a Python error is set (fullgraph, limits that raise).
/// `stored`: collects the compiled graphs.
/// After success the guards have been checked against `state`, so the entry's outputs are filled.
std::shared_ptr<Entry> makeEntry(CodeState& code, EntryPoint& point, const FrameState& state, const GlobalState& now,
                                 const RegionOptions* options, PyObject* globals, bool* failed,
                                 std::shared_ptr<StoredGraphs> stored = nullptr);
/// Calls that fit no entry are CPython's here, because so many were made: that has been told, and still holds.
bool isKnownToBeAtLimit(const CodeState& code, const EntryPoint& point, const RegionOptions* options, PyObject* globals);
/// What these options ask of the compiler.
CompileOptions compileOptions(const RegionOptions& options);
/// Takes over guards and recipes of a segment whose graph has been compiled.
void finishEntry(Entry& entry, Segment segment);

/// The frame is CPython's because of `why` (GlobalState::refusal): told once, an error under fullgraph. False with a Python error set then.
bool leaveToPython(CodeState& code, EntryPoint& point, const RegionOptions* options, const char* why);

}  // namespace fusebox::capture
