#include "engine/codegen/gpu/body_emitter.h"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/MDBuilder.h>

#include <limits>
#include <stdexcept>

#include "engine/codegen/cpu/loop_lines.h"
#include "engine/codegen/cpu/operations.h"
#include "engine/codegen/cpu/philox.h"
#include "engine/codegen/gpu/access_patterns.h"
#include "engine/codegen/gpu/device_assert.h"

namespace fusebox::codegen::gpu {
using inductor::DType;
using inductor::Op;
using inductor::Symbol;
using inductor::SymExpr;
using inductor::ValueId;
using llvm::Type;
using llvm::Value;

BodyEmitter::BodyEmitter(const cpu::Lanes& lanes, const Scope& scope, const inductor::Section& section,
                         const Instances& instances)
    : l_(lanes),
      scope_(scope),
      section_(section),
      set_(instances),
      varying_(section.values.size()),
      values_(section.values.size()) {
  const auto isScratch = [this](inductor::BufferId id) { return scope_.buffers.at(id).buffer->role == inductor::BufferRole::Scratch; };
  if (set_.axis) alongAxis_ = valuesAlong(section, *set_.axis, isScratch);
  if (set_.groupAxis) alongGroups_ = valuesAlong(section, *set_.groupAxis, isScratch);
  analyse();
}

bool BodyEmitter::varies(Symbol s) const {
  if (const auto loaded = section_.indirect.find(s); loaded != section_.indirect.end())
    return isVarying(loaded->second);
  if (set_.unroll > 1 && set_.symbols[0].count(s.id)) return true;
  return set_.vector > 1 && set_.axis && s == *set_.axis;
}

void BodyEmitter::analyse() {
  const auto varying = [this](Symbol s) { return varies(s); };
  for (size_t i = 0; i < section_.values.size(); ++i) {
    const inductor::Value& v = section_.values[i];
    bool differs = false;
    if (v.op == Op::Reduced) {
      differs = set_.ownReduced || (set_.overPoints && set_.vector > 1);
    } else {
      for (ValueId a : v.args) differs |= a >= 0 && isVarying(a);
      if (v.mask >= 0) differs |= isVarying(v.mask);
      if (v.op == Op::Load || v.op == Op::Index) differs |= cpu::dependsOn(v.index, varying);
      if (v.op == Op::Load)
        differs |= set_.overPoints && set_.vector * set_.unroll > 1 && scope_.buffers.at(v.buffer).pointStride;
      if (v.op == Op::Scan) differs = true;
    }
    varying_[i] = differs;
  }
}

bool BodyEmitter::differsAlong(const Symbol* axis, Symbol s) const {
  const auto loaded = section_.indirect.find(s);
  if (loaded == section_.indirect.end()) return s == *axis;
  return (axis == set_.axis ? alongAxis_ : alongGroups_)[static_cast<size_t>(loaded->second)] != 0;
}

void BodyEmitter::loadAhead() {
  for (size_t i = 0; i < section_.values.size(); ++i) {
    const inductor::Value& v = section_.values[i];
    if (v.op != Op::Load || v.mask >= 0) continue;
    const auto loaded = [this](Symbol s) { return section_.indirect.count(s) > 0; };
    if (!cpu::dependsOn(v.index, loaded)) emit(static_cast<ValueId>(i));
  }
  // What a later statement overwrites is read before the first one.
  for (size_t i = 0; i < section_.values.size(); ++i) {
    const inductor::Value& v = section_.values[i];
    if (v.op == Op::Load && !scope_.buffers.at(v.buffer).isInvariant) emit(static_cast<ValueId>(i));
  }
}

void BodyEmitter::fetch(const std::function<bool(const SymExpr&)>& wanted, std::unordered_set<inductor::BufferId>& done) {
  auto& ir = l_.ir;
  const auto loaded = [this](Symbol s) { return section_.indirect.count(s) > 0; };
  for (const inductor::Value& v : section_.values) {
    if (v.op != Op::Load || v.mask >= 0 || cpu::dependsOn(v.index, loaded) || !wanted(v.index)) continue;
    const BufferSlot& slot = scope_.buffers.at(v.buffer);
    if (!slot.isInvariant || !done.insert(v.buffer).second) continue;
    for (int u = 0; u < set_.unroll; ++u) {
      Value* address = pointer(slot, v.index, u, 0);
      auto* type = llvm::FunctionType::get(ir.getVoidTy(), {address->getType()}, false);
      ir.CreateCall(llvm::InlineAsm::get(type, "prefetch.global.L2 [$0];", "l", /*hasSideEffects=*/true), {address});
    }
  }
}

Value* BodyEmitter::value(ValueId id, int group, int neighbour) {
  emit(id);
  const Copies& copies = values_[static_cast<size_t>(id)];
  return copies[isVarying(id) ? static_cast<size_t>(group * set_.vector + neighbour) : 0];
}

void BodyEmitter::emit(ValueId id) {
  Copies& copies = values_[static_cast<size_t>(id)];
  if (!copies.empty()) return;
  const inductor::Value& v = section_.values[static_cast<size_t>(id)];
  // Operands first: what they emit must not come between the copies of this one.
  if (v.op != Op::Reduced)
    for (ValueId a : v.args)
      if (a >= 0) emit(a);
  if (v.mask >= 0) emit(v.mask);
  if (v.op == Op::Load || v.op == Op::Index)
    for (Symbol s : v.index.symbols())
      if (const auto loaded = section_.indirect.find(s); loaded != section_.indirect.end()) emit(loaded->second);
  const cpu::AtLine at(l_.ir, v.line);
  Copies made;
  if (v.op == Op::Load) {
    emitLoads(v, isVarying(id), made);
  } else if (v.op == Op::Scan) {
    made = onScan(id);
  } else if (isVarying(id) && sharesRandoms(v)) {
    emitRandoms(v, made);
  } else {
    const int groups = isVarying(id) ? set_.unroll : 1, neighbours = isVarying(id) ? set_.vector : 1;
    for (int u = 0; u < groups; ++u)
      for (int n = 0; n < neighbours; ++n) made.push_back(emitOne(v, u, n));
  }
  values_[static_cast<size_t>(id)] = std::move(made);
}

Value* BodyEmitter::emitOne(const inductor::Value& v, int group, int neighbour) {
  switch (v.op) {
    case Op::Constant:
      return l_.immediate(v.type, v.imm, 1);
    case Op::Index:
      return cpu::emitCast(l_, indexValue(v.index, group, neighbour), DType::Int64, v.type);
    case Op::Reduced: {
      if (set_.ownReduced) return onReduced(v.args[0], group, neighbour);
      const auto& results = scope_.reduced.at(v.args[0])[static_cast<size_t>(v.imm)];
      return results[set_.overPoints ? static_cast<size_t>(neighbour) : 0];
    }
    case Op::Exp:
      if (quickExp && &v == &section_.values[static_cast<size_t>(quickValue)]) return quickExp(value(v.args[0], group, neighbour));
      break;
    case Op::Check:
      return emitCheck(v, group, neighbour);
    case Op::Cast: {
      // Conversions of 32 bits take a quarter of the time of those of 64.
      const auto bounds = graph::isFloatingPoint(v.type) ? boundsOf(v.args[0]) : std::nullopt;
      if (!bounds || bounds->first < std::numeric_limits<int32_t>::min() || bounds->second > std::numeric_limits<int32_t>::max()) break;
      Value* small = l_.ir.CreateTrunc(value(v.args[0], group, neighbour), l_.ir.getInt32Ty());
      constexpr int64_t kHalf = int64_t{1} << 22;
      if (v.type == DType::Float64 || bounds->first < -kHalf || bounds->second >= kHalf) return cpu::emitCast(l_, small, DType::Int32, v.type);
      return cpu::emitCast(l_, quickFloat(small), DType::Float32, v.type);
    }
    case Op::Div:
      if (v.type == DType::Float32 && !isVarying(v.args[1])) return emitDivision(v, group, neighbour);
      break;
    default:
      break;
  }
  std::vector<Value*> args;
  for (ValueId a : v.args)
    if (a >= 0) args.push_back(value(a, group, neighbour));
  const DType operand = v.args[0] >= 0 ? section_.values[static_cast<size_t>(v.args[0])].type : v.type;
  const llvm::IRBuilderBase::FastMathFlagGuard guard(l_.ir);
  if (contracts && (v.op == Op::Add || v.op == Op::Sub || v.op == Op::Mul)) {
    llvm::FastMathFlags flags = l_.ir.getFastMathFlags();
    flags.setAllowContract();
    l_.ir.setFastMathFlags(flags);
  }
  Value* result = cpu::emitOperation(l_, v.op, v.type, operand, args);
  if (!result) throw std::runtime_error(std::string(name(v.op)) + " on " + std::string(graph::name(v.type)));
  return result;
}

/// The float of an i32 in [-2^22, 2^22), exactly: floats from 2^23 to 2^24 lie 1 apart, so an integer is added to the bits of 1.5 * 2^23.
/// Two additions, where a conversion shares its slow pipe with the exponentials.
Value* BodyEmitter::quickFloat(Value* small) {
  constexpr uint32_t kBits = 0x4B400000;  // of 1.5 * 2^23
  auto& ir = l_.ir;
  Value* shifted = ir.CreateBitCast(ir.CreateAdd(small, ir.getInt32(kBits)), ir.getFloatTy());
  return ir.CreateFSub(shifted, llvm::ConstantFP::get(ir.getFloatTy(), 0x1.8p23));
}

std::optional<std::pair<int64_t, int64_t>> BodyEmitter::boundsOf(ValueId id) const {
  constexpr int64_t kFar = int64_t{1} << 40;  // sums of a few such numbers are far from the ends of 64 bits
  const inductor::Value& v = section_.values[static_cast<size_t>(id)];
  if (v.type != DType::Int64) return std::nullopt;
  std::pair<int64_t, int64_t> made;
  if (v.op == Op::Constant) {
    made = {v.imm, v.imm};
  } else if (v.op == Op::Index) {
    made = v.index.bounds();
  } else if (v.op == Op::Add || v.op == Op::Sub) {
    const auto a = boundsOf(v.args[0]), b = boundsOf(v.args[1]);
    if (!a || !b) return std::nullopt;
    made = v.op == Op::Add ? std::pair(a->first + b->first, a->second + b->second) : std::pair(a->first - b->second, a->second - b->first);
  } else {
    return std::nullopt;
  }
  if (made.first < -kFar || made.second > kFar) return std::nullopt;
  return made;
}

/// Random numbers of neighbouring elements of which one Philox block serves several.
bool BodyEmitter::sharesRandoms(const inductor::Value& v) const {
  if ((v.op != Op::RandUniform && v.op != Op::RandNormal && v.op != Op::RandInt64) || !set_.axis || set_.ragged.on || isVarying(v.args[0])) return false;
  const int each = cpu::randomsPerBlock(v.op, v.type);
  const inductor::Value& counter = section_.values[static_cast<size_t>(v.args[1])];
  return each > 1 && set_.vector % each == 0 && counter.op == Op::Index &&
         isVectorAccess(counter.index, *set_.axis, each, [this](Symbol s) { return differsAlong(set_.axis, s); });
}

void BodyEmitter::emitRandoms(const inductor::Value& v, Copies& out) {
  const int each = cpu::randomsPerBlock(v.op, v.type);
  for (int u = 0; u < set_.unroll; ++u)
    for (int n = 0; n < set_.vector; n += each)
      for (Value* number : cpu::emitRandomBlock(l_, v.op, v.type, value(v.args[0], u, n), value(v.args[1], u, n)))
        out.push_back(l_.roundTo(number, v.type));
}

Value* BodyEmitter::both(Value* a, Value* b) { return !a ? b : !b ? a : l_.ir.CreateAnd(a, b); }

void BodyEmitter::when(Value* condition, const std::function<void()>& work) {
  if (!condition) return work();
  auto& ir = l_.ir;
  llvm::Function* function = ir.GetInsertBlock()->getParent();
  auto* yes = llvm::BasicBlock::Create(ir.getContext(), "then", function);
  auto* done = llvm::BasicBlock::Create(ir.getContext(), "done", function);
  ir.CreateCondBr(condition, yes, done);
  ir.SetInsertPoint(yes);
  work();
  ir.CreateBr(done);
  ir.SetInsertPoint(done);
}

/// By what is the same for all instances.
Value* BodyEmitter::emitDivision(const inductor::Value& v, int group, int neighbour) {
  const auto found = divisors_.try_emplace(v.args[1], l_, value(v.args[1], group, neighbour)).first;
  return found->second.divide(l_, value(v.args[0], group, neighbour));
}

/// Whether some group may have effects; null: always.
Value* BodyEmitter::activeAnywhere() {
  Value* any = nullptr;
  for (Value* active : set_.active) {
    if (!active) return nullptr;
    any = any ? l_.ir.CreateOr(any, active) : active;
  }
  return any;
}

/// As eager's kernels do: a failed check stops the device with an assertion, which the next synchronisation reports.
/// Division by zero is no error there.
Value* BodyEmitter::emitCheck(const inductor::Value& v, int group, int neighbour) {
  const auto fault = static_cast<inductor::Fault>(v.imm);
  if (fault != inductor::Fault::ZeroDivision && fault != inductor::Fault::None) {
    Value* bad = l_.ir.CreateNot(value(v.args[1], group, neighbour));
    emitAssertion(l_.ir, both(isVarying(v.args[1]) ? activeAt(group, neighbour) : activeAnywhere(), bad), fault);
  }
  return value(v.args[0], group, neighbour);
}

Value* BodyEmitter::symbolValue(Symbol s, int group, int neighbour) {
  if (const auto loaded = section_.indirect.find(s); loaded != section_.indirect.end())
    return l_.ir.CreateSExt(value(loaded->second, group, neighbour), l_.ir.getInt64Ty());
  if (set_.axis && s == *set_.axis) {
    if (along_) return along_;
    if (const Edge* edge = set_.edge(group))
      return clamped(neighbour ? l_.ir.CreateAdd(edge->first, l_.ir.getInt64(static_cast<uint64_t>(neighbour)), "", false, true) : edge->first);
  }
  const SymbolValues& own = set_.symbols[static_cast<size_t>(group)];
  const auto found = own.find(s.id);
  Value* base = found != own.end() ? found->second : scope_.symbols.at(s.id);
  if (neighbour == 0 || !set_.axis || !(s == *set_.axis)) return base;
  return l_.ir.CreateAdd(base, l_.ir.getInt64(static_cast<uint64_t>(neighbour)), "", true, true);
}

/// i64. Computed in 32 bits where everything fits.
Value* BodyEmitter::indexValue(const SymExpr& expr, int group, int neighbour) {
  const bool isBounded = cpu::isNatural(expr) && !cpu::dependsOn(expr, [this](Symbol s) { return section_.indirect.count(s) > 0; });
  cpu::IndexEmitter emitter(l_, [&](Symbol s) { return symbolValue(s, group, neighbour); }, isBounded);
  if (!cpu::fitsInt32(expr)) return emitter.scalar(expr);
  Value* narrow = emitter.vector(expr, 1, true);
  const bool natural = expr.bounds().first >= 0;
  return natural ? l_.ir.CreateZExt(narrow, l_.ir.getInt64Ty()) : l_.ir.CreateSExt(narrow, l_.ir.getInt64Ty());
}

Value* BodyEmitter::position(const SymExpr& expr, Type* type, int group, int neighbour) {
  return l_.ir.CreateTrunc(indexValue(expr, group, neighbour), type);
}

}  // namespace fusebox::codegen::gpu
