#pragma once

#include <Python.h>

#include <exception>
#include <string>

#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {

/// Says as a Python warning, once for each text, that something is not compiled: what, why and what to do. The GIL must be held.
void warnOnce(const std::string& text);

/// An exception that reached the program while the engine worked for it (Ctrl-C): capture ends, and the program gets it.
struct ProgramInterrupted : std::exception {
  PyRef exception;
  /// Takes the Python error that is set.
  static ProgramInterrupted take();
  /// Sets it again.
  void restore() const;
  const char* what() const noexcept override { return "the program was interrupted"; }
};

/// The Python error that is set is none that an instruction of the program raises by itself: KeyboardInterrupt.
bool isInterrupt();

/// In a catch clause, with the GIL held: what was caught goes no further. It is written down while `doing` (a loss in the session, an
/// event for fusebox.explain, once a warning), and no Python error is left: the caller goes on without the engine. Only what belongs to
/// the program (ProgramInterrupted, KeyboardInterrupt, SystemExit) is left set as a Python error, and true returned.
bool endException(const char* doing) noexcept;

/// Writes a failure of the engine down as a loss in the session, and warns of it, the first time.
void tellFailure(const char* doing, const std::string& text);

/// The same as endException() where the program cannot go on as if nothing had been done: what was caught becomes the Python error.
void raiseException() noexcept;

/// `work()`, behind which no C++ exception comes: CPython's C frames cannot be unwound. `otherwise(interrupted)` says what happens
/// instead; `interrupted`: a Python error is set that the program must get.
template <class Work, class Otherwise>
auto guarded(const char* doing, Work&& work, Otherwise&& otherwise) -> decltype(work()) {
  try {
    return work();
  } catch (...) {
    return otherwise(endException(doing));
  }
}

}  // namespace fusebox::capture
