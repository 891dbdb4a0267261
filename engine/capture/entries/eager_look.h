#pragma once

#include "engine/capture/entries/entry_cache.h"

namespace fusebox::capture {

/// A call that runs eagerly before the first capture of its place: sizes and ints among the frame's locals, and in the tuples, lists and
/// dicts that these are, are noted, so that what differs at the next call becomes symbolic at once.
void noteNumbers(EntryPoint& point, const FrameState& state, PyObject* globals);

}  // namespace fusebox::capture
