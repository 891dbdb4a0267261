#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>

namespace fusebox::trace {

/// What aten::unbind.int gave along `dim` is written back as selections are: libtorch's own way asks for the plain sizes of what it is a view of, which makes
/// constants of symbols.
void viewBySelection(const c10::IValue& unbound, int64_t dim);

}  // namespace fusebox::trace
