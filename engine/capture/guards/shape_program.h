#pragma once

#include <Python.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "engine/capture/guards/shape_guards.h"

namespace fusebox::capture {

/// The guards on numbers of one entry as a flat program over 64-bit registers: reads give the symbols their values, then relations are
/// compared; a part that several relations have in common is computed once. Nothing is allocated and no Python runs. What overflows, or
/// divides by zero, fails.
class ShapeProgram {
 public:
  /// Where the object of a number lies among those that run() is given, and the guards that fail.
  struct Places {
    std::vector<uint32_t> objects;         ///< by ShapeGuards::numbers
    std::vector<uint32_t> numberGuards;    ///< the same
    std::vector<uint32_t> relationGuards;  ///< by ShapeGuards::relations
  };
  ShapeProgram(const ShapeGuards& shapes, const Places& places);

  /// The guard that fails, -1 if none does. `objects`: tensors whose TENSOR_MATCH holds, and any objects for values.
  int64_t run(PyObject* const* objects);
  /// In the order of ShapeGuards::symbols, after run() was -1; until the next one.
  std::span<const int64_t> symbolValues() const { return {registers_.data(), symbolCount_}; }
  /// After run() failed at `guard`: what was there, for people ("L['x'].size()[0] = 12").
  std::string found(const ShapeGuards& shapes, int64_t guard) const;
  size_t stepCount() const { return reads_.size() + made_.size() + steps_.size(); }

 private:
  enum class Code : uint8_t { Add, Multiply, FloorDiv, Mod, Min, Max, Equal, NotEqual, Less, LessEqual };
  struct Read {
    NumberSource::Kind kind;
    int32_t dim;
    uint32_t object, to, guard;
    int64_t lower, upper;
  };
  struct Step {
    Code code;
    uint32_t a, b, to;  ///< `to`: of a comparison the guard
  };
  /// A symbol that is computed.
  struct Made {
    std::vector<uint32_t> from;
    uint32_t to, guard;
    std::function<std::optional<int64_t>(std::span<const int64_t>)> compute;
  };
  size_t relationOf(int64_t guard) const;
  uint32_t number(int64_t constant);
  uint32_t value(const graph::SymExpr& e);
  uint32_t value(const graph::SymAtom& atom);
  uint32_t compute(Code code, uint32_t a, uint32_t b);

  std::vector<Read> reads_;
  std::vector<Made> made_;
  std::vector<int64_t> given_;      ///< to a computation
  std::vector<Step> steps_;
  std::vector<int64_t> registers_;  ///< symbols, then constants and results
  std::vector<uint32_t> relationGuards_;
  size_t symbolCount_ = 0;
  size_t failedRead_ = SIZE_MAX;    ///< of the last run
  std::unordered_map<uint32_t, uint32_t> ofSymbol_;
  std::map<int64_t, uint32_t> ofConstant_;
  std::map<std::tuple<Code, uint32_t, uint32_t>, uint32_t> computed_;
};

}  // namespace fusebox::capture
