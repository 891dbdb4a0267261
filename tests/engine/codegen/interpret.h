#pragma once

#include <map>
#include <vector>

#include "engine/inductor/ir/loop_ir.h"

/// An independent, slow reading of the loop IR: one point after another, every operation in long double or int64 and then
/// rounded to its type.
namespace fusebox::codegen::testing {

struct Number {
  long double real = 0;
  int64_t integer = 0;
};

Number loadNumber(const void* address, inductor::DType type);
void storeNumber(void* address, inductor::DType type, Number value);
/// Rounds to what `type` can hold (wraps integers).
Number rounded(Number value, inductor::DType type);

/// `buffers` in the kernel's order without Scratch ones; `sizes` in the order of sizeSymbols.
void interpret(const inductor::Kernel& kernel, const std::vector<void*>& buffers, const std::vector<int64_t>& sizes);

}  // namespace fusebox::codegen::testing
