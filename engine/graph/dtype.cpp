#include <array>

#include "engine/graph/graph.h"

namespace fusebox::graph {
namespace {

enum class Class : uint8_t { None, Bool, Integer, Floating, Complex };
struct TypeFacts {
  std::string_view name;
  int size;
  Class kind;
};

/// Indexed by c10::ScalarType's number; gaps are quantised types that the engine does not compute with.
constexpr std::array<TypeFacts, 16> kTypes{{
    {"uint8", 1, Class::Integer},     {"int8", 1, Class::Integer},     {"int16", 2, Class::Integer},
    {"int32", 4, Class::Integer},     {"int64", 8, Class::Integer},    {"float16", 2, Class::Floating},
    {"float32", 4, Class::Floating},  {"float64", 8, Class::Floating}, {"complex32", 4, Class::Complex},
    {"complex64", 8, Class::Complex}, {"complex128", 16, Class::Complex}, {"bool", 1, Class::Bool},
    {"qint8", 1, Class::None},        {"quint8", 1, Class::None},      {"qint32", 4, Class::None},
    {"bfloat16", 2, Class::Floating},
}};

TypeFacts facts(DType type) {
  auto i = static_cast<size_t>(static_cast<int8_t>(type));
  return i < kTypes.size() ? kTypes[i] : TypeFacts{"undefined", 0, Class::None};
}

}  // namespace

int elementSize(DType type) { return facts(type).size; }
bool isFloatingPoint(DType type) { return facts(type).kind == Class::Floating; }
bool isIntegral(DType type) { return facts(type).kind == Class::Integer; }
bool isComplex(DType type) { return facts(type).kind == Class::Complex; }
std::string_view name(DType type) { return facts(type).name; }

}  // namespace fusebox::graph
