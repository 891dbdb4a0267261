#include "engine/codegen/cpu/kernel_emitter.h"

/// Partial results of divided reductions in the launch's working memory.
namespace fusebox::codegen::cpu {
using inductor::SymExpr;
using llvm::Type;
using llvm::Value;

namespace {

/// Bytes of one component in memory: i1 is kept in a byte.
int64_t componentBytes(Type* type) { return std::max<int64_t>(1, static_cast<int64_t>(type->getScalarSizeInBits()) / 8); }

SymExpr aligned(const SymExpr& bytes) { return graph::floorDiv(bytes + SymExpr(63), SymExpr(64)) * SymExpr(64); }

int64_t componentBytes(inductor::ReduceKind kind, inductor::DType type, size_t number) {
  using inductor::ReduceKind;
  if (kind == ReduceKind::Any || kind == ReduceKind::All) return 1;
  if ((kind == ReduceKind::ArgMax || kind == ReduceKind::ArgMin) && number == 1) return 8;
  return std::max(graph::isFloatingPoint(type) ? 4 : 1, graph::elementSize(type));
}

}  // namespace

ScratchLayout layoutScratch(const Plan& plan) {
  ScratchLayout layout;
  if (!plan.isPhased()) return layout;
  const SymExpr points = plan.outerPoints();
  auto place = [&](const SymExpr& bytes) {
    const SymExpr at = layout.bytes;
    layout.bytes += aligned(bytes);
    return at;
  };
  for (size_t s = 0; s < plan.kernel.sections.size(); ++s) {
    const inductor::Section& section = plan.kernel.sections[s];
    auto& reductions = layout.reductions.emplace_back();
    for (const inductor::Statement& st : section.body) {
      if (st.kind != inductor::Statement::Kind::Reduce) continue;
      auto& components = reductions.emplace_back();
      const auto type = section.values[static_cast<size_t>(st.inputs[0])].type;
      for (size_t c = 0; c < inductor::componentCount(st.reduce); ++c) {
        const SymExpr bytes = points * SymExpr(componentBytes(st.reduce, type, c));
        const SymExpr partial = place(bytes * plan.chunksOf(static_cast<int>(s)));
        components.push_back({partial, place(bytes)});
      }
    }
  }
  for (const inductor::KernelBuffer& b : plan.kernel.buffers)
    layout.buffers.push_back(b.role == inductor::BufferRole::Scratch
                                 ? place(points * b.numel * SymExpr(graph::elementSize(b.dtype)))
                                 : SymExpr(0));
  return layout;
}

/// Number of the current outer point, the vector axis counted last so that lanes are neighbours.
Value* KernelEmitter::outerPoint() {
  Value* point = ir_.getInt64(0);
  auto take = [&](size_t i) {
    const inductor::Axis& axis = plan_.kernel.outer[i];
    point = ir_.CreateAdd(ir_.CreateMul(point, scalar(axis.extent)), scope_.symbols.at(axis.symbol.id));
  };
  for (size_t i = 0; i < plan_.kernel.outer.size(); ++i)
    if (static_cast<int>(i) != plan_.outerVector) take(i);
  if (plan_.outerVector >= 0) take(static_cast<size_t>(plan_.outerVector));
  return point;
}

Value* KernelEmitter::stateAddress(const SymExpr& offset, Type* element, Value* chunk) {
  Value* base = ir_.CreateGEP(ir_.getInt8Ty(), working_, scalar(offset));
  Value* index = outerPoint();
  if (chunk) index = ir_.CreateAdd(index, ir_.CreateMul(chunk, scalar(plan_.outerPoints())));
  return ir_.CreateGEP(element, base, index);
}

void KernelEmitter::storeStates(int section, const std::vector<ReductionState>& states, const LaneSet& set, Value* chunk) {
  const auto reductions = reductionsOf(section, false);
  for (size_t r = 0; r < states.size(); ++r) {
    for (size_t c = 0; c < states[r].size(); ++c) {
      const auto& place = layout_.reductions[static_cast<size_t>(section)][r][c];
      Value* v = states[r][c];
      const bool position = reductions[r].emitter.needsPosition() && c == 1;
      Type* element = position ? ir_.getInt64Ty() : v->getType()->getScalarType();
      if (element->isIntegerTy(1)) element = ir_.getInt8Ty();
      if (v->getType()->getScalarType() != element)
        v = ir_.CreateIntCast(v, lanes_.sameLanes(element, v), position);
      Value* pointer = stateAddress(chunk ? place.partial : place.final, element, chunk);
      const llvm::Align align(static_cast<uint64_t>(componentBytes(element)));
      if (set.mask) ir_.CreateMaskedStore(v, pointer, align, set.mask);
      else ir_.CreateAlignedStore(v, pointer, align);
    }
  }
}

std::vector<ReductionState> KernelEmitter::loadStates(int section, const LaneSet& set, Value* chunk) {
  const auto reductions = reductionsOf(section, false);
  std::vector<ReductionState> states;
  for (size_t r = 0; r < reductions.size(); ++r) {
    const std::vector<Type*> types = reductions[r].emitter.componentTypes();
    ReductionState state;
    for (size_t c = 0; c < types.size(); ++c) {
      const auto& place = layout_.reductions[static_cast<size_t>(section)][r][c];
      const bool position = reductions[r].emitter.needsPosition() && c == 1;
      Type* element = position ? ir_.getInt64Ty() : types[c]->isIntegerTy(1) ? ir_.getInt8Ty() : types[c];
      Value* pointer = stateAddress(chunk ? place.partial : place.final, element, chunk);
      const llvm::Align align(static_cast<uint64_t>(componentBytes(element)));
      Type* wide = Lanes::widened(element, set.lanes);
      Value* v = set.mask ? static_cast<Value*>(ir_.CreateMaskedLoad(wide, pointer, align, set.mask, llvm::Constant::getNullValue(wide)))
                          : ir_.CreateAlignedLoad(wide, pointer, align);
      if (element != types[c]) v = ir_.CreateTrunc(v, lanes_.sameLanes(types[c], v));
      state.push_back(v);
    }
    states.push_back(state);
  }
  return states;
}

/// In the order of the chunks, so that results do not depend on who computed what.
std::vector<ReductionState> KernelEmitter::combinePartials(int section, const LaneSet& set) {
  const auto reductions = reductionsOf(section, false);
  Values init;
  for (const SectionReduction& r : reductions)
    for (Value* v : r.emitter.identity(set.lanes)) init.push_back(v);
  auto split = [&](const Values& carried) {
    std::vector<ReductionState> states;
    size_t at = 0;
    for (const SectionReduction& r : reductions) {
      const size_t n = r.emitter.componentTypes().size();
      states.emplace_back(carried.begin() + static_cast<std::ptrdiff_t>(at), carried.begin() + static_cast<std::ptrdiff_t>(at + n));
      at += n;
    }
    return states;
  };
  const SymExpr chunks = plan_.chunksOf(section);
  const std::vector<int64_t> runs = runSizes(static_cast<double>(chunks.bounds().second));
  const Values total = inRuns(runs, ir_.getInt64(0), scalar(chunks), init, reductions, [&](Value* lo, Value* hi, const Values& start) {
    return loop(nullptr, lo, hi, 1, start, [&](Value* chunk, const Values& c) {
      const std::vector<ReductionState> old = split(c), more = loadStates(section, set, chunk);
      Values next;
      for (size_t r = 0; r < reductions.size(); ++r)
        for (Value* v : reductions[r].emitter.combine(old[r], more[r])) next.push_back(v);
      return next;
    });
  });
  return split(total);
}

}  // namespace fusebox::codegen::cpu
