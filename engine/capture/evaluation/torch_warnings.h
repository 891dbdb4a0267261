#pragma once

#include <vector>

#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {

/// Keeps back what this thread's C code warns of while it lives. Warnings come to Python's filters, where those of other threads pass; nothing is
/// shown or counted. The GIL must be held where it begins and ends.
class KeptWarnings {
 public:
  struct Warning {
    PyRef text;
    PyObject* category;  ///< lives as long as the process
  };
  KeptWarnings();
  ~KeptWarnings();
  KeptWarnings(const KeptWarnings&) = delete;
  std::vector<Warning> take() { return std::move(kept_); }

  /// While it lives warnings go their way: what runs is the program's own, if within a call of torch.
  class Pass {
   public:
    Pass();
    ~Pass();
    Pass(const Pass&) = delete;

   private:
    KeptWarnings* kept_;
  };

 private:
  static PyObject* keep(PyObject* category, PyObject* text);
  static const std::vector<PyObject*>& categories();
  static const std::vector<PyRef>& ownFilters();
  std::vector<Warning> kept_;
  PyRef filters_;  ///< the list that holds our filters meanwhile
  KeptWarnings* outer_;
};

}  // namespace fusebox::capture
