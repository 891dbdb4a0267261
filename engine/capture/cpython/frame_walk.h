#pragma once

#include <Python.h>

namespace fusebox::capture {

/// Shows `visit` the frames of the calling thread, innermost first, until it returns false: the code and the offset in bytes of the
/// instruction that is being run. Needs no GIL, only that the thread itself is where it is (in a C function that Python called):
/// its frames then stand still. `visit` may read the code object and call PyCode_Addr2Line, and nothing that allocates or counts
/// references.
void visitFrames(bool (*visit)(PyCodeObject* code, int offset, void* context), void* context);

}  // namespace fusebox::capture
