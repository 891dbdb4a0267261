#include <array>

#include "engine/graph/graph.h"

namespace fusebox::graph {
namespace {

enum class Class : uint8_t { None, Bool, Integer, Floating, Complex };  // None: stored, not computed with
struct TypeFacts {
  std::string_view name;
  int size;
  Class kind;
};

/// Indexed by c10::ScalarType's number; gaps are types of parts of bytes and quantised ones.
constexpr std::array<TypeFacts, kDTypes> kTypes = [] {
  std::array<TypeFacts, kDTypes> types{};
  types.fill({"undefined", 0, Class::None});
  auto set = [&](int number, TypeFacts facts) { types[static_cast<size_t>(number)] = facts; };
  set(0, {"uint8", 1, Class::Integer});
  set(1, {"int8", 1, Class::Integer});
  set(2, {"int16", 2, Class::Integer});
  set(3, {"int32", 4, Class::Integer});
  set(4, {"int64", 8, Class::Integer});
  set(5, {"float16", 2, Class::Floating});
  set(6, {"float32", 4, Class::Floating});
  set(7, {"float64", 8, Class::Floating});
  set(8, {"complex32", 4, Class::Complex});
  set(9, {"complex64", 8, Class::Complex});
  set(10, {"complex128", 16, Class::Complex});
  set(11, {"bool", 1, Class::Bool});
  set(12, {"qint8", 1, Class::None});
  set(13, {"quint8", 1, Class::None});
  set(14, {"qint32", 4, Class::None});
  set(15, {"bfloat16", 2, Class::Floating});
  set(23, {"float8_e5m2", 1, Class::None});
  set(24, {"float8_e4m3fn", 1, Class::None});
  set(25, {"float8_e5m2fnuz", 1, Class::None});
  set(26, {"float8_e4m3fnuz", 1, Class::None});
  set(27, {"uint16", 2, Class::None});
  set(28, {"uint32", 4, Class::None});
  set(29, {"uint64", 8, Class::None});
  set(44, {"float8_e8m0fnu", 1, Class::None});
  return types;
}();

TypeFacts facts(DType type) {
  auto i = static_cast<size_t>(static_cast<int8_t>(type));
  return i < kTypes.size() ? kTypes[i] : TypeFacts{"undefined", 0, Class::None};
}

}  // namespace

int elementSize(DType type) { return facts(type).size; }
bool hasArithmetic(DType type) { return facts(type).kind != Class::None && !isComplex(type); }
bool isFloatingPoint(DType type) { return facts(type).kind == Class::Floating; }
bool isIntegral(DType type) { return facts(type).kind == Class::Integer; }
bool isComplex(DType type) { return facts(type).kind == Class::Complex; }
std::string_view name(DType type) { return facts(type).name; }

}  // namespace fusebox::graph
