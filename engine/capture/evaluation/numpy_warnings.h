#pragma once

#include <optional>

#include "engine/capture/evaluation/evaluation.h"
#include "engine/capture/evaluation/torch_warnings.h"

namespace fusebox::capture {

/// While it lives numpy raises where it would warn of a division by zero, an overflow, an underflow or an invalid value, whatever the program
/// has asked numpy to do then, and what it warns of whatever was asked is kept back. A warning belongs to every call of the program, and
/// np.errstate may be another one in each.
class NumpyWarnings {
 public:
  explicit NumpyWarnings(Evaluation& e) : e_(e) {}
  ~NumpyWarnings() { leave(); }
  NumpyWarnings(const NumpyWarnings&) = delete;
  /// Begins, if what numpy computes of these operands (or of the elements of such a tuple or list) may be said in a warning.
  void watch(PyObject* const* operands, size_t count);
  void enter();
  /// After the operation, which gave `result`: a break if numpy would have warned.
  PyObject* done(PyObject* result);

 private:
  void leave();
  Evaluation& e_;
  PyRef state_;
  std::optional<KeptWarnings> kept_;
  bool said_ = false;
};

}  // namespace fusebox::capture
