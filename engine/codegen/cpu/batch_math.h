#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/inductor/ir/loop_ir.h"

/// Compiled functions that generated code calls for many lanes at once: `void f(T* out, const T* a, const T* b, int64_t n)`.
/// They stand in where no inline code exists, and finish the lanes that inline code leaves out.
namespace fusebox::codegen::cpu {

bool hasBatchMath(inductor::Op op);
/// "fusebox_math_lgamma_f32".
std::string batchMathSymbol(inductor::Op op, bool isDouble);

/// Every symbol that generated code may refer to, with its address: batch functions, libm, memory functions.
std::vector<std::pair<std::string, void*>> runtimeSymbols();

}  // namespace fusebox::codegen::cpu
