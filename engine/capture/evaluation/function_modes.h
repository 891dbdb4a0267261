#pragma once

#include <Python.h>

#include <memory>
#include <vector>

#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {

class Evaluation;

/// The program's modes are off torch's stack while it lives, those of a default device below them stay. What runs then is a graph, in which the
/// modes have had their say, or who makes one.
class ProgramModesAside {
 public:
  ProgramModesAside();
  ~ProgramModesAside();
  ProgramModesAside(const ProgramModesAside&) = delete;

 private:
  std::vector<std::shared_ptr<void>> modes_;
};

/// Torch function modes of the program while a segment is evaluated (`with` a subclass of TorchFunctionMode). Torch's own stack holds one mode of
/// the evaluator's in their place: C code that asks it is answered by nothing but a marker, and what it asked is then asked of the program's mode,
/// whose method is interpreted. So no mode can be passed by: what C code makes of the marker itself is a break. The mode of a default device stays
/// where it is while no other is below it, since torch's own code, which capture runs, does what it says.
class FunctionModes {
 public:
  explicit FunctionModes(Evaluation& evaluation) : e_(evaluation) {}
  FunctionModes(const FunctionModes&) = delete;

  /// Takes over the modes that are active where the segment begins; who evaluates puts torch's stack back as it was.
  void begin();
  /// Before the segment ends: throws CaptureBreak where it would leave other modes than it found, unless the frame ends too (`returns`): then
  /// they are left and entered after the graph. None is asked from here on.
  void end(bool returns);
  bool isActive() const { return !modes_.empty(); }
  /// Whether there are modes, or were when the segment began.
  bool takesPart() const { return isActive() || !entry_.empty(); }
  Py_ssize_t count() const;
  void push(PyObject* mode);
  PyRef pop();
  PyRef at(Py_ssize_t index);

  /// How often a mode of the program has been asked, or taken off its stack, so far.
  size_t answers() const { return answers_; }
  /// C code has asked since this was asked last.
  bool wasAsked() const { return asked_ > 0; }
  /// What the program's mode says, where C code gave `result` for it; a break where it is not the mode's answer that it gives.
  PyRef answer(PyRef result);
  /// The same of C code that drops the answer: an item or attribute is set.
  bool settle(bool done);
  /// The break for C code that uses the answer itself.
  [[noreturn]] void refuse();

 private:
  friend PyObject* noteAsked(PyObject*, PyObject*);
  void placeSentinel();
  void removeSentinel();
  PyRef ask();

  Evaluation& e_;
  std::vector<PyRef> modes_;    ///< innermost last, above those that torch's stack has
  std::vector<PyObject*> entry_;
  Py_ssize_t below_ = 0;        ///< modes of a default device on torch's stack where the segment began
  int64_t changedAt_ = 0;       ///< root instruction that entered or left one last
  bool isPlaced_ = false;
  int asked_ = 0;
  size_t answers_ = 0;
  PyRef arguments_;             ///< function, types, args and, where there are any, kwargs
};

}  // namespace fusebox::capture
