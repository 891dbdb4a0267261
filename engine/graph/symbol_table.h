#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <string>

#include "engine/graph/sym_expr.h"

namespace fusebox::graph {

/// What is known of an interned symbol. Records never move or change once published.
struct SymbolRecord {
  std::string name;
  int64_t lower = 0;
  int64_t upper = 0;
};

/// Lock-free look-up of a published symbol.
const SymbolRecord& symbolRecord(Symbol symbol);

/// The hint of a symbol (symbol_values.h); kNoHint until one is set.
constexpr int64_t kNoHint = std::numeric_limits<int64_t>::min();
std::atomic<int64_t>& symbolHint(Symbol symbol);
/// The extent of an axis symbol (axis_symbol.h) where it is no constant; else null.
std::atomic<const SymExpr*>& symbolExtent(Symbol symbol);

}  // namespace fusebox::graph
