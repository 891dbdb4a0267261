#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_map>

#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {

class Evaluation;

/// Leaves that existed before the region and whose requires_grad it changes: their stand-ins are changed at once, they themselves after the graph.
/// Where the gradient of one is wanted that required none when the graph began, the segment ends before: its node would lead nowhere.
class SwitchedLeaves {
 public:
  explicit SwitchedLeaves(Evaluation& e) : e_(e) {}
  /// False: it is no such leaf.
  bool change(PyObject* tensor, bool wanted);
  /// After each instruction of the root frame.
  void requireUnused() const;
  /// Before the segment is finished: stand-ins are inputs again as they came.
  void takeBack() const;

 private:
  Evaluation& e_;
  std::unordered_map<PyObject*, PyRef> changed_;  ///< stand-ins
};

}  // namespace fusebox::capture
