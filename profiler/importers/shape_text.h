#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fusebox::importing {

/// `left op right`, with op one of ==, !=, <, <=: others are turned around.
struct RelationText {
  std::string left, op, right;
  bool operator==(const RelationText&) const = default;
};

/// Whether both say the same, sides of == and != and factors of a product in any order.
bool sameRelation(const RelationText& a, const RelationText& b);

/// A relation as sympy ("Eq(Mod(s0, 2), 0)", "s0 > 64") or Python ("(L['n'] % 2) == 0") prints it. What is none (an And) comes out
/// as `text == True`.
RelationText parseRelation(std::string_view text);

/// An expression of sympy's in Python's words: Mod(a, b) is (a % b), Max is max.
std::string pythonExpression(std::string_view text);

/// The bounds of "[2, int_oo]"; none where there is no bound.
struct RangeText {
  std::optional<int64_t> lower, upper;
};
RangeText parseRange(std::string_view text);

/// "2 <= L['x'].size()[0] <= 64", "L['x'].size()[0] <= 64": what is between whole numbers; empty if it is no such range.
struct BoundText {
  std::string_view of;
  RangeText range;
};
BoundText parseBound(std::string_view code);

/// size, stride, offset, float or int, by where the value is read and how the symbol is called.
std::string_view symbolKind(std::string_view name, std::string_view source);

/// The symbols of PyTorch's in an expression (s77, u0, zf3, zuf1), each once.
std::vector<std::string> symbolsIn(std::string_view expression);

/// The tensor or number that a source reads a geometry of: L['x'] of L['x'].size()[0]; itself otherwise.
std::string_view ownerOf(std::string_view source);

/// `code` with names instead of the variables of scopes: x.size()[0] of L['x'].size()[0], as failures are printed.
std::string withoutScopes(std::string_view code);

}  // namespace fusebox::importing
