#include "engine/inductor/ir/body_builder.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "engine/graph/axis_symbol.h"

namespace fusebox::inductor {
namespace {

size_t mix(size_t seed, size_t v) { return seed ^ (v * 0x9E3779B97F4A7C15ull + (seed << 6) + (seed >> 2) + 0x1234567ull); }

size_t hashOf(const Value& v) {
  size_t h = static_cast<size_t>(v.op) * 64 + static_cast<size_t>(static_cast<int8_t>(v.type)) + 1;
  for (ValueId a : v.args) h = mix(h, static_cast<size_t>(a));
  h = mix(h, static_cast<size_t>(v.imm));
  h = mix(h, static_cast<size_t>(v.buffer));
  h = mix(h, static_cast<size_t>(v.mask));
  return mix(h, v.index.hash());
}

bool same(const Value& a, const Value& b) {
  return a.op == b.op && a.type == b.type && a.args == b.args && a.imm == b.imm && a.buffer == b.buffer &&
         a.mask == b.mask && a.index == b.index;
}

bool isFloat(DType type) { return graph::isFloatingPoint(type); }

/// Wraps an integer as a store of that type would.
int64_t wrap(int64_t v, DType type) {
  switch (type) {
    case DType::UInt8: return static_cast<uint8_t>(v);
    case DType::Int8: return static_cast<int8_t>(v);
    case DType::Int16: return static_cast<int16_t>(v);
    case DType::Int32: return static_cast<int32_t>(v);
    case DType::Bool: return v != 0;
    default: return v;
  }
}

}  // namespace

DType computeType(DType type) {
  return type == DType::BFloat16 || type == DType::Float16 ? DType::Float32 : type;
}

ValueId BodyBuilder::add(Value value) {
  size_t h = hashOf(value);
  auto [it, end] = known_.equal_range(h);
  for (; it != end; ++it) {
    if (same(section_.values[static_cast<size_t>(it->second)], value)) return it->second;
  }
  if (value.origin < 0) value.origin = node_;
  auto id = static_cast<ValueId>(section_.values.size());
  section_.values.push_back(std::move(value));
  known_.emplace(h, id);
  return id;
}

ValueId BodyBuilder::constant(double value, DType type) {
  if (!isFloat(type)) {
    if (type == DType::Bool) return constantInt(value != 0, type);
    return constantInt(static_cast<int64_t>(value), type);
  }
  Value v;
  v.op = Op::Constant;
  v.type = type;
  v.imm = std::bit_cast<int64_t>(value);
  return add(v);
}

ValueId BodyBuilder::constantInt(int64_t value, DType type) {
  if (isFloat(type)) return constant(static_cast<double>(value), type);
  Value v;
  v.op = Op::Constant;
  v.type = type;
  v.imm = wrap(value, type);
  return add(v);
}

ValueId BodyBuilder::index(const SymExpr& expr) {
  if (expr.isConstant()) return constantInt(expr.constant(), DType::Int64);
  Value v;
  v.op = Op::Index;
  v.type = DType::Int64;
  v.index = plain(expr);
  return add(v);
}

ValueId BodyBuilder::load(BufferId buffer, DType bufferType, const SymExpr& index) {
  Value v;
  v.op = Op::Load;
  v.type = bufferType;
  v.buffer = buffer;
  v.index = plain(index);
  v.mask = mask();
  return cast(add(v), computeType(bufferType));
}

ValueId BodyBuilder::reduced(int32_t reduction, int which, DType type) {
  if (const auto known = reduced_.find(reduction); known != reduced_.end()) return cast(known->second, type);
  Value v;
  v.op = Op::Reduced;
  v.type = type;
  v.args[0] = reduction;
  v.imm = which;
  return add(v);
}

ValueId BodyBuilder::scan(ReduceKind kind, int which, DType type, ValueId v) {
  Value made;
  made.op = Op::Scan;
  made.type = type;
  made.args[0] = v;
  made.imm = scanImm(kind, which);
  return add(made);
}

ValueId BodyBuilder::cast(ValueId id, DType type) {
  const Value& from = value(id);
  if (from.type == type) return id;
  if (from.op == Op::Constant && (type == DType::Float64 || type == DType::Float32 || !isFloat(type))) {
    if (!isFloat(from.type)) return constantInt(from.imm, type);
    double d = std::bit_cast<double>(from.imm);
    if (from.type == DType::Float32) d = static_cast<float>(d);
    bool fits = isFloat(type) || type == DType::Bool || (std::isfinite(d) && std::fabs(d) < 1e15);
    if (fits) return type == DType::Bool ? constantInt(d != 0, type) : constant(d, type);
  }
  // There and back through a 16-bit type: integers up to 2^8 are exact in either.
  if (from.op == Op::Cast && computeType(from.type) != from.type && computeType(type) == type && isFloat(type)) {
    const Value& origin = value(from.args[0]);
    if (origin.op == Op::Constant && isFloat(origin.type)) {
      const double d = std::bit_cast<double>(origin.imm);
      if (std::fabs(d) <= 256 && d == std::trunc(d)) return constant(d, type);
    }
  }
  Value v;
  v.op = Op::Cast;
  v.type = type;
  v.args[0] = id;
  return add(v);
}

ValueId BodyBuilder::round(ValueId v, DType type) { return cast(cast(v, type), computeType(type)); }

bool BodyBuilder::isConstant(ValueId id, double expected) const {
  const Value& v = value(id);
  if (v.op != Op::Constant) return false;
  return isFloat(v.type) ? std::bit_cast<double>(v.imm) == expected : static_cast<double>(v.imm) == expected;
}

ValueId BodyBuilder::fold(Op op, DType type, const std::initializer_list<ValueId>& args) {
  auto a = args.begin();
  if (args.size() == 2) {
    ValueId x = a[0], y = a[1];
    if (op == Op::Mul) {
      if (isConstant(y, 1)) return x;
      if (isConstant(x, 1)) return y;
    }
    if (op == Op::Div && isConstant(y, 1)) return x;
    if (!isFloat(type) && (op == Op::Add || op == Op::Sub) && isConstant(y, 0)) return x;
    if (!isFloat(type) && op == Op::Add && isConstant(x, 0)) return y;
    if ((op == Op::BitAnd || op == Op::BitOr) && type == DType::Bool) {
      const bool neutral = op == Op::BitAnd;
      if (isConstant(y, neutral) || isConstant(x, !neutral)) return x;
      if (isConstant(x, neutral) || isConstant(y, !neutral)) return y;
    }
  }
  if (op == Op::LogicalNot && value(a[0]).op == Op::Constant) {
    const Value& x = value(a[0]);
    const int64_t isZero = isFloat(x.type) ? std::bit_cast<double>(x.imm) == 0 : x.imm == 0;
    return constantInt(isZero, DType::Bool);
  }
  if (op == Op::Where) {
    if (a[1] == a[2]) return a[1];
    if (value(a[0]).op == Op::Constant) return value(a[0]).imm ? a[1] : a[2];
  }
  return -1;
}

ValueId BodyBuilder::emit(Op op, DType type, std::initializer_list<ValueId> args) {
  if (ValueId folded = fold(op, type, args); folded >= 0) return folded;
  Value v;
  v.op = op;
  v.type = type;
  std::copy(args.begin(), args.end(), v.args.begin());
  return add(v);
}

ValueId BodyBuilder::rebuild(Value v) {
  const Formula within(*this, v.origin);
  if (v.op == Op::Cast) return cast(v.args[0], v.type);
  ValueId folded = -1;
  if (v.args[2] >= 0) folded = fold(v.op, v.type, {v.args[0], v.args[1], v.args[2]});
  else if (v.args[1] >= 0) folded = fold(v.op, v.type, {v.args[0], v.args[1]});
  else if (v.args[0] >= 0 && v.op != Op::Reduced) folded = fold(v.op, v.type, {v.args[0]});
  return folded >= 0 ? folded : add(std::move(v));
}

ValueId BodyBuilder::where(ValueId condition, ValueId a, ValueId b) {
  return emit(Op::Where, type(a), {condition, a, b});
}

ValueId BodyBuilder::check(ValueId v, ValueId condition, Fault fault) {
  if (isConstant(condition, 1)) return v;
  if (mask() >= 0) condition = emit(Op::BitOr, DType::Bool, {condition, emit(Op::LogicalNot, DType::Bool, {mask()})});
  Value made;
  made.op = Op::Check;
  made.type = type(v);
  made.args = {v, condition, -1};
  made.imm = static_cast<int64_t>(fault);
  return add(made);
}

Symbol BodyBuilder::indirect(ValueId v, const SymExpr& size) {
  auto it = indirect_.find(v);
  if (it != indirect_.end()) return it->second;
  const Symbol symbol = graph::axisSymbol(fmt::format("v{}", v), graph::max(size, SymExpr(2)));
  section_.indirect.emplace(symbol, v);
  indirect_.emplace(v, symbol);
  return symbol;
}

SymExpr BodyBuilder::plain(const SymExpr& e) const {
  if (assumed_.empty() || e.isConstant()) return e;
  return e.substitute([this](Symbol s) {
    const auto known = assumed_.find(s);
    return known == assumed_.end() ? std::nullopt : std::optional<SymExpr>(known->second.meant);
  });
}

SymExpr BodyBuilder::assumed(const SymExpr& e, const SymExpr& size) {
  if (graph::isNeverNegative(e) && graph::isNeverNegative(size - 1 - e)) return e;
  const SymExpr own = plain(e);
  for (const auto& [symbol, known] : assumed_)
    if (known.size == size && known.meant == own) return symbol;
  const Symbol symbol = graph::axisSymbol(fmt::format("a{}", assumed_.size()), size);
  assumed_.emplace(symbol, Assumed{own, size});
  return symbol;
}

void BodyBuilder::pushMask(ValueId condition) {
  masks_.push_back(masks_.empty() ? condition : emit(Op::BitAnd, DType::Bool, {masks_.back(), condition}));
}

void BodyBuilder::store(BufferId buffer, const SymExpr& index, ValueId v, ValueId mask) {
  Statement s;
  s.kind = Statement::Kind::Store;
  s.buffer = buffer;
  s.index = index;
  s.value = v;
  s.mask = mask;
  section_.body.push_back(std::move(s));
}

void BodyBuilder::atomicAdd(BufferId buffer, const SymExpr& index, ValueId v, ValueId mask) {
  store(buffer, index, v);
  section_.body.back().kind = Statement::Kind::AtomicAdd;
  section_.body.back().mask = mask;
}

void BodyBuilder::reduce(ReduceKind kind, int32_t reduction, std::array<ValueId, 3> inputs) {
  Statement s;
  s.kind = Statement::Kind::Reduce;
  s.reduce = kind;
  s.reduction = reduction;
  s.inputs = inputs;
  section_.body.push_back(std::move(s));
}

namespace {
size_t memoHash(const void* key, const std::vector<SymExpr>& index) {
  size_t h = reinterpret_cast<size_t>(key);
  for (const SymExpr& e : index) h = mix(h, e.hash());
  return h;
}
}  // namespace

ValueId BodyBuilder::recall(const void* key, const std::vector<SymExpr>& index) const {
  auto [it, end] = memo_.equal_range(memoHash(key, index));
  for (; it != end; ++it) {
    const Memo& m = it->second;
    if (m.key == key && m.mask == mask() && m.index == index) return m.value;
  }
  return -1;
}

void BodyBuilder::remember(const void* key, const std::vector<SymExpr>& index, ValueId v) {
  memo_.emplace(memoHash(key, index), Memo{key, index, mask(), v});
}

void BodyBuilder::addOrigins(const std::vector<graph::NodeId>& nodes) {
  for (graph::NodeId n : nodes) {
    if (seenOrigins_.insert(n).second) origins.push_back(n);
  }
}

Section BodyBuilder::finish(std::vector<Axis> axes, bool isReduction) {
  const size_t count = section_.values.size();
  std::vector<bool> live(count, false);
  auto mark = [&](ValueId v) {
    if (v >= 0) live[static_cast<size_t>(v)] = true;
  };
  auto markIndex = [&](const SymExpr& e) {
    if (section_.indirect.empty()) return;
    for (Symbol s : e.symbols()) {
      if (auto it = section_.indirect.find(s); it != section_.indirect.end()) mark(it->second);
    }
  };
  for (const Statement& s : section_.body) {
    mark(s.value);
    mark(s.mask);
    for (ValueId v : s.inputs) mark(v);
    markIndex(s.index);
  }
  for (size_t i = count; i-- > 0;) {
    if (!live[i]) continue;
    const Value& v = section_.values[i];
    if (v.op != Op::Reduced) {
      for (ValueId a : v.args) mark(a);
    }
    mark(v.mask);
    markIndex(v.index);
  }
  std::vector<ValueId> moved(count, -1);
  Section out;
  for (size_t i = 0; i < count; i++) {
    if (!live[i]) continue;
    Value v = std::move(section_.values[i]);
    auto move = [&](ValueId& id) {
      if (id >= 0) id = moved[static_cast<size_t>(id)];
    };
    if (v.op != Op::Reduced) {
      for (ValueId& a : v.args) move(a);
    }
    move(v.mask);
    moved[i] = static_cast<ValueId>(out.values.size());
    out.values.push_back(std::move(v));
  }
  for (Statement& s : section_.body) {
    auto move = [&](ValueId& id) {
      if (id >= 0) id = moved[static_cast<size_t>(id)];
    };
    move(s.value);
    move(s.mask);
    for (ValueId& v : s.inputs) move(v);
    out.body.push_back(std::move(s));
  }
  for (auto [symbol, v] : section_.indirect) {
    if (live[static_cast<size_t>(v)]) out.indirect.emplace(symbol, moved[static_cast<size_t>(v)]);
  }
  out.axes = std::move(axes);
  out.isReduction = isReduction;
  *this = BodyBuilder{};
  return out;
}

}  // namespace fusebox::inductor
