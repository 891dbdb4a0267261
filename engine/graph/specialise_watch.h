#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "engine/graph/sym_expr.h"

namespace fusebox::graph {

class ShapeEnv;

/// Told each decision of an environment that leaves one value for an expression, on the thread that decides. It must not throw.
using SpecialiseWatch = std::function<void(const SymExpr& expression, int64_t value, std::string_view reason)>;
/// From now on `watch` is told what `env` decides on this thread; an empty one ends that. `env` is only compared.
void watchSpecialise(const ShapeEnv* env, SpecialiseWatch watch);
void tellSpecialised(const ShapeEnv* env, const SymExpr& expression, int64_t value, std::string_view reason);

}  // namespace fusebox::graph
