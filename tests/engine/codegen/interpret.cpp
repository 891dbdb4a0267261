#include "tests/engine/codegen/interpret.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <unordered_map>

#include "tests/engine/codegen/scalar_math.h"

namespace fusebox::codegen::testing {
using namespace inductor;

namespace {

template <class T>
T readAs(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

/// Rounds to a binary format with `digits` bits of significand and `minimum` exponent of the smallest normal number; overflow
/// gives infinity. Ties to even.
long double roundToFormat(long double v, int digits, int minimum, int maximum) {
  if (v == 0 || !std::isfinite(v)) return v;
  const int exponent = std::max(std::ilogb(v), minimum);
  const long double unit = std::ldexp(1.0L, exponent - digits + 1);
  const long double r = std::nearbyint(v / unit) * unit;
  return std::fabs(r) >= std::ldexp(1.0L, maximum + 1) ? std::copysign(INFINITY, v) : r == 0 ? std::copysign(0.0L, v) : r;
}

uint16_t narrowBits(long double v, DType type) {
  const float f = static_cast<float>(v);
  if (type == DType::BFloat16) return std::isnan(f) ? 0x7fc0 : static_cast<uint16_t>(std::bit_cast<uint32_t>(f) >> 16);
  if (std::isnan(f)) return 0x7e00;
  const uint16_t sign = std::signbit(f) ? 0x8000 : 0;
  const float a = std::fabs(f);
  if (std::isinf(a)) return static_cast<uint16_t>(sign | 0x7c00);
  if (a < 0x1p-14f) return static_cast<uint16_t>(sign | static_cast<int>(a * 0x1p24f));
  int exponent;
  const float m = std::frexp(a, &exponent);
  return static_cast<uint16_t>(sign | (((exponent + 14) << 10) + static_cast<int>((m * 2 - 1) * 1024)));
}

long double widenBits(uint16_t bits, DType type) {
  if (type == DType::BFloat16) return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  long double v = exponent == 31 ? (fraction ? NAN : INFINITY)
                  : exponent == 0 ? std::ldexp(static_cast<long double>(fraction), -24)
                                  : std::ldexp(1024.0L + fraction, exponent - 25);
  return bits & 0x8000 ? -v : v;
}

}  // namespace

Number rounded(Number v, DType type) {
  switch (type) {
    case DType::Float32: return {static_cast<float>(v.real), 0};
    case DType::Float64: return {static_cast<double>(v.real), 0};
    // Through float, as torch computes in it.
    case DType::BFloat16: return {roundToFormat(static_cast<float>(v.real), 8, -126, 127), 0};
    case DType::Float16: return {roundToFormat(static_cast<float>(v.real), 11, -14, 15), 0};
    case DType::Bool: return {0, v.integer & 1};
    case DType::UInt8: return {0, static_cast<uint8_t>(v.integer)};
    case DType::Int8: return {0, static_cast<int8_t>(v.integer)};
    case DType::Int16: return {0, static_cast<int16_t>(v.integer)};
    case DType::Int32: return {0, static_cast<int32_t>(v.integer)};
    default: return {0, v.integer};
  }
}

Number loadNumber(const void* p, DType type) {
  switch (type) {
    case DType::Float32: return {readAs<float>(p), 0};
    case DType::Float64: return {readAs<double>(p), 0};
    case DType::BFloat16:
    case DType::Float16: return {widenBits(readAs<uint16_t>(p), type), 0};
    case DType::Bool: return {0, readAs<uint8_t>(p) != 0};
    case DType::UInt8: return {0, readAs<uint8_t>(p)};
    case DType::Int8: return {0, readAs<int8_t>(p)};
    case DType::Int16: return {0, readAs<int16_t>(p)};
    case DType::Int32: return {0, readAs<int32_t>(p)};
    default: return {0, readAs<int64_t>(p)};
  }
}

void storeNumber(void* p, DType type, Number v) {
  auto put = [p](auto x) { std::memcpy(p, &x, sizeof x); };
  switch (type) {
    case DType::Float32: return put(static_cast<float>(v.real));
    case DType::Float64: return put(static_cast<double>(v.real));
    case DType::BFloat16:
    case DType::Float16: return put(narrowBits(v.real, type));
    case DType::Bool: return put(static_cast<uint8_t>(v.integer & 1));
    case DType::UInt8:
    case DType::Int8: return put(static_cast<uint8_t>(v.integer));
    case DType::Int16: return put(static_cast<int16_t>(v.integer));
    case DType::Int32: return put(static_cast<int32_t>(v.integer));
    default: return put(v.integer);
  }
}

namespace {

struct Accumulator {
  bool empty = true;
  long double a = 0, b = 0, c = 0;
  int64_t i = 0, at = 0;
};

class Interpreter {
 public:
  Interpreter(const Kernel& k, const std::vector<void*>& buffers, const std::vector<int64_t>& sizes) : kernel_(k) {
    size_t next = 0;
    for (const KernelBuffer& b : k.buffers)
      if (b.role != BufferRole::Scratch) memory_[b.id] = {static_cast<char*>(buffers[next++]), b.dtype};
    for (size_t i = 0; i < k.sizeSymbols.size(); ++i) symbols_[k.sizeSymbols[i].id] = sizes[i];
    for (const KernelBuffer& b : k.buffers)
      if (b.role == BufferRole::Scratch) {
        scratch_[b.id].resize(static_cast<size_t>(eval(b.numel) * graph::elementSize(b.dtype)) + 8);
        memory_[b.id] = {scratch_[b.id].data(), b.dtype};
      }
  }

  void run() {
    over(kernel_.outer, 0, [&] {
      reductions_.clear();
      for (const Section& s : kernel_.sections) section(s);
    });
    for (auto& [place, sum] : across_) {
      const Memory& m = memory_.at(place.first);
      const bool real = graph::isFloatingPoint(sum.type);
      storeNumber(m.base + place.second * graph::elementSize(m.type), m.type, cast(rounded({sum.value.a, real ? 0 : sum.value.i}, sum.type), sum.type, m.type));
    }
  }

 private:
  struct Memory {
    char* base;
    DType type;
  };

  int64_t eval(const SymExpr& e) {
    return e.evaluate([this](Symbol s) -> std::optional<int64_t> {
      auto it = symbols_.find(s.id);
      return it == symbols_.end() ? std::nullopt : std::optional(it->second);
    }).value();
  }

  void over(const std::vector<Axis>& axes, size_t depth, const std::function<void()>& fn) {
    if (depth == axes.size()) return fn();
    const int64_t n = eval(axes[depth].extent);
    for (int64_t i = 0; i < n; ++i) {
      symbols_[axes[depth].symbol.id] = i;
      over(axes, depth + 1, fn);
    }
  }

  void section(const Section& s) {
    for (const Statement& st : s.body)
      if (st.kind == Statement::Kind::Reduce) {
        reductions_[st.reduction] = {};
        kinds_[st.reduction] = {st.reduce, s.values[static_cast<size_t>(st.inputs[0])].type};
      }
    int64_t position = 0;
    scans_.clear();
    over(s.axes, 0, [&] {
      position_ = position;
      values_.assign(s.values.size(), {});
      for (size_t i = 0; i < s.values.size(); ++i) {
        values_[i] = value(s, s.values[i]);
        for (const auto& [symbol, id] : s.indirect)
          if (id == static_cast<ValueId>(i)) symbols_[symbol.id] = values_[i].integer;
      }
      for (const Statement& st : s.body) statement(s, st, position);
      ++position;
    });
  }

  Number immediate(DType type, int64_t imm) {
    if (!graph::isFloatingPoint(type)) return rounded({0, imm}, type);
    return rounded({std::bit_cast<double>(imm), 0}, type);
  }

  Number value(const Section& s, const Value& v) {
    auto arg = [&](int i) { return v.args[static_cast<size_t>(i)] >= 0 ? values_[static_cast<size_t>(v.args[static_cast<size_t>(i)])] : Number{}; };
    switch (v.op) {
      case Op::Constant: return immediate(v.type, v.imm);
      case Op::Index: return {0, eval(v.index)};
      case Op::Load: {
        if (v.mask >= 0 && !values_[static_cast<size_t>(v.mask)].integer) return immediate(v.type, v.imm);
        const Memory& m = memory_.at(v.buffer);
        return loadNumber(m.base + eval(v.index) * graph::elementSize(m.type), m.type);
      }
      case Op::Reduced: return result(v.args[0], v.imm);
      default: return operation(s, v, arg(0), arg(1), arg(2));
    }
  }

  Number operation(const Section& s, const Value& v, Number a, Number b, Number c) {
    const DType type = s.values[static_cast<size_t>(v.args[0])].type;
    const bool real = graph::isFloatingPoint(type);
    switch (v.op) {
      case Op::Scan: return scan(v, type, a);
      case Op::Cast: return cast(a, type, v.type);
      case Op::Bitcast: {
        int64_t bits = 0;
        storeNumber(&bits, type, a);
        return loadNumber(&bits, v.type);
      }
      case Op::Where: return a.integer ? b : c;
      case Op::Check: return a;
      case Op::LogicalNot: return {0, real ? a.real == 0 : a.integer == 0};
      case Op::IsNan: return {0, real && std::isnan(a.real)};
      case Op::IsInf: return {0, real && std::isinf(a.real)};
      case Op::SignBit: return {0, real ? std::signbit(a.real) : a.integer < 0};
      default: break;
    }
    if (v.op >= Op::Eq && v.op <= Op::Ge) {
      if (real) return {0, comparison(v.op, a.real < b.real, a.real == b.real, std::isnan(a.real) || std::isnan(b.real))};
      return {0, comparison(v.op, a.integer < b.integer, a.integer == b.integer, false)};
    }
    if (graph::isFloatingPoint(v.type)) return rounded({realOperation(v.op, v.type, a.real, b.real, c.real), 0}, v.type);
    return rounded({0, integerOperation(v.op, v.type, a.integer, b.integer, c.integer)}, v.type);
  }

  /// Of equal extremes the last one.
  Number scan(const Value& v, DType type, Number x) {
    Accumulator& acc = scans_[&v];
    const ReduceKind kind = scanKind(v.imm);
    const bool equal = graph::isFloatingPoint(type) ? x.real == acc.a || (std::isnan(x.real) && std::isnan(acc.a)) : x.integer == acc.i;
    const bool isArg = kind == ReduceKind::ArgMax || kind == ReduceKind::ArgMin;
    accumulate(acc, kind, type, x, {}, {}, position_);
    if (isArg && equal) acc.at = position_;
    const int number = scanResult(v.imm);
    if (isArg) return number == 0 ? Number{0, acc.at} : Number{acc.a, acc.i};
    return rounded({number == 0 ? acc.a : acc.b, acc.i}, v.type);
  }

  static Number cast(Number a, DType from, DType to) {
    const bool real = graph::isFloatingPoint(from);
    if (to == DType::Bool) return {0, real ? a.real != 0 : a.integer != 0};
    if (graph::isFloatingPoint(to)) {
      if (from == DType::Float64 && to != DType::Float64) a.real = static_cast<float>(a.real);
      return rounded({real ? a.real : static_cast<long double>(a.integer), 0}, to);
    }
    return rounded({0, real ? static_cast<int64_t>(a.real) : a.integer}, to);
  }

  void statement(const Section& s, const Statement& st, int64_t position) {
    if (st.kind == Statement::Kind::Reduce) {
      auto in = [&](int i) { return st.inputs[static_cast<size_t>(i)] >= 0 ? values_[static_cast<size_t>(st.inputs[static_cast<size_t>(i)])] : Number{}; };
      return accumulate(reductions_[st.reduction], st.reduce, s.values[static_cast<size_t>(st.inputs[0])].type, in(0), in(1), in(2), position);
    }
    if (st.kind == Statement::Kind::Accumulate) {
      Across& sum = across_[{st.buffer, eval(st.index)}];
      sum.type = s.values[static_cast<size_t>(st.value)].type;
      return accumulate(sum.value, st.reduce, sum.type, values_[static_cast<size_t>(st.value)], {}, {}, 0);
    }
    if (st.mask >= 0 && !values_[static_cast<size_t>(st.mask)].integer) return;
    const Memory& m = memory_.at(st.buffer);
    void* address = m.base + eval(st.index) * graph::elementSize(m.type);
    Number v = values_[static_cast<size_t>(st.value)];
    if (st.kind == Statement::Kind::AtomicAdd) {
      const Number old = loadNumber(address, m.type);
      v = m.type == DType::Bool ? Number{0, old.integer | v.integer}
                                : rounded({old.real + v.real, static_cast<int64_t>(static_cast<uint64_t>(old.integer) + static_cast<uint64_t>(v.integer))}, m.type);
    }
    storeNumber(address, m.type, v);
  }

  static bool better(bool largest, bool real, const Accumulator& acc, Number x) {
    if (acc.empty) return true;
    if (!real) return largest ? x.integer > acc.i : x.integer < acc.i;
    if (std::isnan(acc.a)) return false;
    if (std::isnan(x.real)) return true;
    return largest ? x.real > acc.a : x.real < acc.a;
  }

  static void welford(Accumulator& acc, long double mean, long double m2, long double n) {
    if (n == 0) return;
    const long double count = acc.c + n, delta = mean - acc.a;
    if (acc.c == 0) acc.a = mean, acc.b = m2 + 0 * mean;  // an infinite mean has no deviations
    else acc.b += m2 + delta * delta * acc.c * (n / count), acc.a += delta * (n / count);
    if (!std::isfinite(delta)) acc.b = NAN;
    acc.c = count;
  }

  static void accumulate(Accumulator& acc, ReduceKind kind, DType type, Number x, Number y, Number z, int64_t position) {
    const bool real = graph::isFloatingPoint(type);
    const bool truth = real ? x.real != 0 : x.integer != 0;
    switch (kind) {
      case ReduceKind::Sum: acc.a += x.real, acc.i = static_cast<int64_t>(static_cast<uint64_t>(acc.i) + static_cast<uint64_t>(x.integer)); break;
      case ReduceKind::Prod:
        if (acc.empty) acc.a = acc.i = 1;
        acc.a *= x.real, acc.i = static_cast<int64_t>(static_cast<uint64_t>(acc.i) * static_cast<uint64_t>(x.integer));
        break;
      case ReduceKind::Any: acc.i |= truth; break;
      case ReduceKind::All: acc.i = (acc.empty || acc.i) && truth; break;
      case ReduceKind::Max:
      case ReduceKind::ArgMax:
        if (better(true, real, acc, x)) acc.a = x.real, acc.i = x.integer, acc.at = position;
        break;
      case ReduceKind::Min:
      case ReduceKind::ArgMin:
        if (better(false, real, acc, x)) acc.a = x.real, acc.i = x.integer, acc.at = position;
        break;
      case ReduceKind::Welford: welford(acc, x.real, 0, 1); break;
      case ReduceKind::OnlineSoftmax: {
        const long double m = acc.empty || std::isnan(x.real) ? x.real : std::isnan(acc.a) ? acc.a : std::max(acc.a, x.real);
        auto factor = [m](long double v) { return v == m ? 1.0L : std::exp(v - m); };
        acc.b = (acc.empty ? 0 : acc.b * factor(acc.a)) + factor(x.real);
        acc.a = m;
        break;
      }
    }
    acc.empty = false;
  }

  Number result(int reduction, int64_t number) {
    const Accumulator& acc = reductions_.at(reduction);
    const auto [kind, type] = kinds_.at(reduction);
    switch (kind) {
      case ReduceKind::ArgMax:
      case ReduceKind::ArgMin: return {0, acc.at};
      case ReduceKind::Any: return {0, acc.i};
      case ReduceKind::All: return {0, acc.empty || acc.i};
      case ReduceKind::Prod: return acc.empty ? Number{1, 1} : rounded({acc.a, acc.i}, type);
      case ReduceKind::Welford:
        if (number == 0 && std::isnan(acc.b)) return rounded({acc.b, 0}, type);
        [[fallthrough]];
      default: return rounded({number == 0 ? acc.a : number == 1 ? acc.b : acc.c, acc.i}, type);
    }
  }

  struct Across {
    Accumulator value;
    DType type = DType::Undefined;
  };

  const Kernel& kernel_;
  std::unordered_map<BufferId, Memory> memory_;
  std::map<std::pair<BufferId, int64_t>, Across> across_;  ///< what Accumulate statements have added up, by element
  std::unordered_map<BufferId, std::vector<char>> scratch_;
  std::unordered_map<uint32_t, int64_t> symbols_;
  std::unordered_map<int, Accumulator> reductions_;
  std::unordered_map<int, std::pair<ReduceKind, DType>> kinds_;
  std::vector<Number> values_;
  std::unordered_map<const Value*, Accumulator> scans_;  ///< of the section
  int64_t position_ = 0;                                 ///< in the section
};

}  // namespace

void interpret(const Kernel& kernel, const std::vector<void*>& buffers, const std::vector<int64_t>& sizes) {
  Interpreter(kernel, buffers, sizes).run();
}

}  // namespace fusebox::codegen::testing
