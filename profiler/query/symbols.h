#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/query/advice.h"
#include "profiler/session/reader.h"

namespace fusebox::query {

/// A symbolic number of a compiled entry.
struct ShapeSymbol {
  int64_t id = 0, compile = 0;
  std::string name, kind, source, policy, reason, before, after;
  std::string hint;                    ///< as text; empty where the value is not known at capture
  std::optional<int64_t> lower, upper; ///< none: unbounded
  std::string file;
  int64_t line = 0;
  std::vector<StackPlace> stack;

  /// "2 … 512", "at least 2", "any".
  std::string range() const;
  /// "s0 = L['x'].size()[0], at least 2, 8 at capture": for legends and tips.
  std::string legend() const;
};

/// The symbols that the graphs and kernels of a compilation name: its own, or those of the one that a backward belongs to.
Result<std::vector<ShapeSymbol>> symbolsOf(const session::Reader& reader, int64_t compile);
/// The symbols (as PyTorch's and this engine call them) that a text names, in order: for legends.
std::vector<const ShapeSymbol*> symbolsNamedIn(const std::vector<ShapeSymbol>& symbols, std::string_view text);

}  // namespace fusebox::query
