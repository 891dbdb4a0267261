#pragma once

#include <Python.h>

#include <utility>
#include <vector>

#include "engine/capture/cpython/py_ref.h"

namespace fusebox::capture {

class Evaluation;

/// What lists, dicts, sets, cells and instances that the segment has made so far hold: writes to them are in no journal.
class FreshContents {
 public:
  explicit FreshContents(Evaluation& evaluation);
  /// Whether one of them holds something else now.
  bool changed() const;

 private:
  std::vector<std::pair<PyRef, std::vector<PyRef>>> held_;
};

}  // namespace fusebox::capture
