#pragma once

#include "engine/inductor/ir/loop_ir.h"

namespace fusebox::codegen::testing {

/// The reference for floating-point operations, in long double. `type` is the operands' type (NextAfter needs it).
long double realOperation(inductor::Op op, inductor::DType type, long double a, long double b, long double c);
/// The reference for integer operations, in int64; the caller wraps to the type.
int64_t integerOperation(inductor::Op op, inductor::DType type, int64_t a, int64_t b, int64_t c);
bool comparison(inductor::Op op, bool less, bool equal, bool unordered);

}  // namespace fusebox::codegen::testing
