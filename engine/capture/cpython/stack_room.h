#pragma once

namespace fusebox::capture {

/// Whether half of this thread's C stack is used. While frames are hooked every call of Python takes some of it, which CPython's own
/// calls of Python functions do not.
bool stackIsShort();

}  // namespace fusebox::capture
