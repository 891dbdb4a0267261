#pragma once

#include <cstdint>

/// Scalar functions that libm lacks or does not round well, as generated code's slow paths call them. float versions compute in double.
namespace fusebox::codegen::cpu {

template <class T>
T erfinv(T x);
template <class T>
T erfcPrecise(T x);
/// log |gamma(x)| without libm's global sign variable.
template <class T>
T lgammaThreadSafe(T x);
/// Derivative of lgamma; NaN at negative integers, -inf at +0, +inf at -0 (torch's rules).
template <class T>
T digamma(T x);
template <class T>
T roundHalfToEven(T x);

/// This thread's working memory, at least `bytes` long and 64-byte aligned; valid until the next call on this thread.
void* scratchBlock(int64_t bytes);

}  // namespace fusebox::codegen::cpu
