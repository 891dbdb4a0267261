#pragma once

#include <Python.h>

namespace fusebox::capture {

/// CPython's numbers of binary operators (NB_ADD and those after it), the operand of BINARY_OP.
enum BinaryOperator : int {
  kAdd = 0, kAnd = 1, kFloorDivide = 2, kLeftShift = 3, kMatrixMultiply = 4, kMultiply = 5, kRemainder = 6, kOr = 7, kPower = 8,
  kRightShift = 9, kSubtract = 10, kTrueDivide = 11, kXor = 12,
  kFirstInPlace = 13  ///< and the same once more, in place
};

/// What `b OP a` is where `a OP b` is asked, by Py_LT to Py_GE.
inline constexpr int kSwapped[] = {Py_GT, Py_GE, Py_EQ, Py_NE, Py_LT, Py_LE};

}  // namespace fusebox::capture
