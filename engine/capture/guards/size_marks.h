#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace fusebox::capture {

/// What torch._dynamo.mark_dynamic and its relatives (or fusebox's) have noted on a tensor for one of its dimensions.
struct SizeMark {
  bool dynamic = false;        ///< mark_dynamic: an error where it becomes a constant
  bool weak = false;           ///< maybe_mark_dynamic
  bool fixed = false;          ///< mark_static
  bool unbacked = false;       ///< mark_unbacked: 0 and 1 are sizes like others
  bool strictUnbacked = false;
  std::optional<int64_t> least, most;
};

/// By dimension; empty: nothing is marked. No Python code of the program runs.
std::vector<SizeMark> sizeMarks(PyObject* tensor, size_t dimensions);

}  // namespace fusebox::capture
