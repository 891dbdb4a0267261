#pragma once

namespace fusebox::capture {

/// Clears the Python error that is set, if any: the engine asked for something and can do without it. What a signal's handler raised there
/// (KeyboardInterrupt, a timeout of the program's own) is the program's: the thread gets it at its next instruction in Python.
void clearError();

}  // namespace fusebox::capture
