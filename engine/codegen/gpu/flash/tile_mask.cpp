#include "engine/codegen/gpu/flash/tile_mask.h"

#include <bit>
#include <limits>

namespace fusebox::codegen::gpu {
using inductor::DType;
using inductor::Op;
using inductor::Symbol;
using inductor::SymExpr;
using inductor::ValueId;
using llvm::Value;

TileMask::TileMask(const cpu::Lanes& lanes, const Scope& scope, const inductor::Section& section, ValueId score,
                   TensorCore& core, Value* lane)
    : l_(lanes), scope_(scope), section_(section), core_(core), lane_(lane) {
  while (at(score).op == Op::Cast) score = at(score).args[0];
  const inductor::Value& v = at(score);
  if (v.op != Op::Where) return;
  if (isMinusInfinity(v.args[2]))
    condition_ = v.args[0];
  else if (isMinusInfinity(v.args[1]))
    condition_ = v.args[0], emptyWhere_ = true;
}

bool TileMask::isMinusInfinity(ValueId id) const {
  while (at(id).op == Op::Cast && graph::isFloatingPoint(at(at(id).args[0]).type)) id = at(id).args[0];
  const inductor::Value& v = at(id);
  return v.op == Op::Constant && graph::isFloatingPoint(v.type) &&
         std::bit_cast<double>(v.imm) == -std::numeric_limits<double>::infinity();
}

void TileMask::prepare(const Ranges& ranges) {
  if (!isKnown()) return;
  ranges_ = &ranges;
  std::vector<ValueId> open{condition_};
  std::vector<bool> seen(section_.values.size());
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    if (id < 0 || seen[static_cast<size_t>(id)]) continue;
    seen[static_cast<size_t>(id)] = true;
    const inductor::Value& v = at(id);
    if (v.op == Op::Load && graph::isIntegral(v.type)) {
      if (const auto side = sideOf(v); side && *side)
        if (auto range = rangeOfLoad(id)) prepared_[id] = *range;
      continue;
    }
    if (v.op != Op::Reduced) open.insert(open.end(), v.args.begin(), v.args.end());
  }
}

Value* TileMask::isEmpty(const Ranges& ranges) {
  if (!isKnown()) return nullptr;
  ranges_ = &ranges;
  const Truth truth = truthOf(condition_);
  Value* some = emptyWhere_ ? truth.canFail : truth.canHold;
  return some ? l_.ir.CreateNot(some) : nullptr;
}

/// Of a sum of multiples of symbols.
std::optional<TileMask::Range> TileMask::rangeOf(const SymExpr& index) {
  auto& ir = l_.ir;
  SymExpr rest = index;
  Range made{ir.getInt64(0), ir.getInt64(0)};
  for (Symbol s : index.symbols()) {
    const auto stride = index.strideOf(s);
    if (!stride) return std::nullopt;
    rest = rest - SymExpr(s) * SymExpr(*stride);
    Range of;
    if (const auto known = ranges_->find(s.id); known != ranges_->end())
      of = {known->second.low, known->second.high};
    else if (const auto fixed = scope_.symbols.find(s.id); fixed != scope_.symbols.end())
      of = {fixed->second, fixed->second};
    else
      return std::nullopt;
    Value* factor = ir.getInt64(static_cast<uint64_t>(*stride));
    if (*stride < 0) std::swap(of.low, of.high);
    made.low = ir.CreateAdd(made.low, ir.CreateMul(of.low, factor));
    made.high = ir.CreateAdd(made.high, ir.CreateMul(of.high, factor));
  }
  if (!rest.isConstant()) return std::nullopt;
  Value* offset = ir.getInt64(static_cast<uint64_t>(rest.constant()));
  return Range{ir.CreateAdd(made.low, offset), ir.CreateAdd(made.high, offset)};
}

/// Of an integer. Wrapping round is left out of account: indices are far from the ends of 64 bits.
std::optional<TileMask::Range> TileMask::rangeOf(ValueId id) {
  auto& ir = l_.ir;
  const inductor::Value& v = at(id);
  if (!graph::isIntegral(v.type)) return std::nullopt;
  const auto operand = [&](int i) { return rangeOf(v.args[static_cast<size_t>(i)]); };
  switch (v.op) {
    case Op::Constant: {
      Value* c = ir.getInt64(static_cast<uint64_t>(v.imm));
      return Range{c, c};
    }
    case Op::Index:
      return v.type == DType::Int64 ? rangeOf(v.index) : std::nullopt;
    case Op::Cast:
      return v.type == DType::Int64 ? operand(0) : std::nullopt;  // to a narrower type it may wrap round
    case Op::Add:
    case Op::Sub: {
      if (v.type != DType::Int64) return std::nullopt;
      const auto a = operand(0), b = operand(1);
      if (!a || !b) return std::nullopt;
      if (v.op == Op::Add) return Range{ir.CreateAdd(a->low, b->low), ir.CreateAdd(a->high, b->high)};
      return Range{ir.CreateSub(a->low, b->high), ir.CreateSub(a->high, b->low)};
    }
    case Op::Load:
      return rangeOfLoad(id);
    default:
      return std::nullopt;
  }
}

std::optional<std::optional<Symbol>> TileMask::sideOf(const inductor::Value& load) const {
  std::optional<Symbol> side;
  if (load.mask >= 0 || load.type != scope_.buffers.at(load.buffer).buffer->dtype) return std::nullopt;
  if (load.index.isConstant()) return side;
  for (Symbol s : load.index.symbols()) {
    if (section_.indirect.count(s)) return std::nullopt;
    if (scope_.symbols.count(s.id)) continue;
    if (side || !ranges_->count(s.id)) return std::nullopt;
    side = s;
  }
  return side;
}

Value* TileMask::extreme(Value* v, llvm::Intrinsic::ID which) {
  auto& ir = l_.ir;
  for (int offset = 16; offset > 0; offset /= 2) {
    Value* low = core_.fromLane(ir.CreateTrunc(v, ir.getInt32Ty()), offset);
    Value* high = core_.fromLane(ir.CreateTrunc(ir.CreateLShr(v, 32), ir.getInt32Ty()), offset);
    Value* other =
        ir.CreateOr(ir.CreateZExt(low, ir.getInt64Ty()), ir.CreateShl(ir.CreateZExt(high, ir.getInt64Ty()), 32));
    v = ir.CreateBinaryIntrinsic(which, v, other);
  }
  return v;
}

std::optional<TileMask::Range> TileMask::rangeOfLoad(ValueId id) {
  auto& ir = l_.ir;
  if (const auto known = prepared_.find(id); known != prepared_.end()) return known->second;
  constexpr int kMost = 8 * kWarp;
  const inductor::Value& v = at(id);
  const auto side = sideOf(v);
  if (!side) return std::nullopt;
  const Range* along = *side ? &ranges_->at((*side)->id) : nullptr;
  if (along && (along->count < 1 || along->count > kMost)) return std::nullopt;
  Range made;
  for (int i = 0; i < (along ? along->count : 1); i += kWarp) {
    Instances one;
    one.symbols.resize(1);
    one.active = {nullptr};
    if (along) {
      Value* mine = ir.CreateAdd(
          along->low, ir.CreateZExt(ir.CreateAdd(lane_, ir.getInt32(static_cast<uint32_t>(i))), ir.getInt64Ty()));
      one.symbols[0][(*side)->id] = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, mine, along->high);
    }
    BodyEmitter body(l_, scope_, section_, one);
    Value* number = ir.CreateIntCast(body.value(id, 0, 0), ir.getInt64Ty(), v.type != DType::UInt8);
    made.low = made.low ? ir.CreateBinaryIntrinsic(llvm::Intrinsic::smin, made.low, number) : number;
    made.high = made.high ? ir.CreateBinaryIntrinsic(llvm::Intrinsic::smax, made.high, number) : number;
  }
  if (along) made = {extreme(made.low, llvm::Intrinsic::smin), extreme(made.high, llvm::Intrinsic::smax)};
  return made;
}

TileMask::Truth TileMask::compare(Op op, const Range& a, const Range& b) {
  auto& ir = l_.ir;
  const auto less = [&](Value* x, Value* y) { return ir.CreateICmpSLT(x, y); };
  const auto atMost = [&](Value* x, Value* y) { return ir.CreateICmpSLE(x, y); };
  switch (op) {
    case Op::Lt:
      return {less(a.low, b.high), atMost(b.low, a.high)};
    case Op::Le:
      return {atMost(a.low, b.high), less(b.low, a.high)};
    case Op::Gt:
      return compare(Op::Lt, b, a);
    case Op::Ge:
      return compare(Op::Le, b, a);
    case Op::Eq:
      return {ir.CreateAnd(atMost(a.low, b.high), atMost(b.low, a.high)), nullptr};
    default:
      return {};
  }
}

TileMask::Truth TileMask::truthOf(ValueId id) {
  auto& ir = l_.ir;
  const inductor::Value& v = at(id);
  if (v.type != DType::Bool) return {};
  switch (v.op) {
    case Op::Constant:
      return {ir.getInt1(v.imm != 0), ir.getInt1(v.imm == 0)};
    case Op::LogicalNot: {
      if (at(v.args[0]).type != DType::Bool) return {};
      const Truth of = truthOf(v.args[0]);
      return {of.canFail, of.canHold};
    }
    case Op::BitAnd: {
      const Truth a = truthOf(v.args[0]), b = truthOf(v.args[1]);
      return {both(a.canHold, b.canHold), either(a.canFail, b.canFail)};
    }
    case Op::BitOr: {
      const Truth a = truthOf(v.args[0]), b = truthOf(v.args[1]);
      return {either(a.canHold, b.canHold), both(a.canFail, b.canFail)};
    }
    case Op::Lt:
    case Op::Le:
    case Op::Gt:
    case Op::Ge:
    case Op::Eq: {
      const auto a = rangeOf(v.args[0]), b = rangeOf(v.args[1]);
      return a && b ? compare(v.op, *a, *b) : Truth{};
    }
    default:
      return {};
  }
}

}  // namespace fusebox::codegen::gpu
