#include "engine/codegen/cpu/loop_lines.h"
#include "engine/codegen/gpu/kernel_emitter.h"
#include "engine/codegen/gpu/ragged.h"

/// The loops of one section, its statements and its reductions.
namespace fusebox::codegen::gpu {
using inductor::Section;
using inductor::Statement;
using inductor::SymExpr;
using llvm::BasicBlock;
using llvm::Value;

std::vector<KernelEmitter::SectionReduction> KernelEmitter::reductionsOf(int section) const {
  const Section& s = plan_.kernel.sections[static_cast<size_t>(section)];
  const bool narrow = cpu::fitsInt32(plan_.sections[static_cast<size_t>(section)].points);
  std::vector<SectionReduction> list;
  for (const Statement& st : s.body)
    if (st.kind == Statement::Kind::Reduce)
      list.push_back(
          {&st, cpu::ReductionEmitter(lanes_, st.reduce, s.values[static_cast<size_t>(st.inputs[0])].type, narrow)});
  return list;
}

/// Groups and neighbours of the section's body, without their symbols.
Instances KernelEmitter::shapeOf(int section) const {
  const Section& s = plan_.kernel.sections[static_cast<size_t>(section)];
  const SectionPlan& p = plan_.sections[static_cast<size_t>(section)];
  Instances set;
  set.unroll = s.axes.empty() ? phase_.map.unroll : p.unroll;
  if (!s.axes.empty() && p.vector > 1) {
    set.vector = p.vector;
    set.axis = &s.axes[static_cast<size_t>(p.order.back())].symbol;
    set.ragged = p.ragged;
  } else {
    set.vector = phase_.map.vector;
    set.overPoints = true;
    if (set.vector > 1) set.axis = &plan_.kernel.outer[static_cast<size_t>(plan_.vectorAxis)].symbol;
    if (plan_.ragged.on) {
      set.ragged = plan_.ragged;
      set.extent = outerExtent_;
      set.edges = outerEdges_;
    }
    if (phase_.map.tileFast) set.groupAxis = &plan_.kernel.outer[static_cast<size_t>(plan_.crossAxis)].symbol;
  }
  return set;
}

KernelEmitter::Grid KernelEmitter::statesOf(int section, const cpu::ReductionEmitter& emitter) const {
  const Instances set = shapeOf(section);
  if (!emitter.takesAll()) return {set.unroll, set.vector};
  return {1, set.overPoints ? set.vector : 1};
}

KernelEmitter::Values KernelEmitter::identities(int section) const {
  Values initial;
  for (const SectionReduction& r : reductionsOf(section))
    for (int i = 0; i < statesOf(section, r.emitter).count(); ++i)
      for (Value* v : r.emitter.identity(1)) initial.push_back(v);
  for (const ScanState& scan : scansOf(section))
    for (const cpu::ReductionState& state : scan.carry) initial.insert(initial.end(), state.begin(), state.end());
  return initial;
}

KernelEmitter::States KernelEmitter::emitSection(int section) {
  const Section& s = plan_.kernel.sections[static_cast<size_t>(section)];
  if (s.axes.empty()) return emitPlainSection(section);
  const SectionPlan& p = plan_.sections[static_cast<size_t>(section)];
  Value* from = ir_.getInt64(0);
  Value* to = scalar(plan_.sectionVectors(section));
  if (phase_.kind == Phase::Kind::Chunk) {
    Value* size = scalar(p.chunk);
    from = ir_.CreateMul(chunk_, size);
    to = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.CreateAdd(from, size), to);
  }
  const auto known = plan_.sectionVectors(section).maybeConstant();
  const int round = phase_.map.inner * p.unroll;
  const auto step = p.chunk.maybeConstant();
  const bool exact =
      !p.ragged.on && known && *known % round == 0 && p.shift == SymExpr(0) && (phase_.kind != Phase::Kind::Chunk || (step && *step % round == 0));
  return emitLoops(section, from, to, exact);
}

/// A section without axes runs once for each point. Every thread of the point computes it, only the first one has
/// effects.
KernelEmitter::States KernelEmitter::emitPlainSection(int section) {
  Instances set = shapeOf(section);
  set.symbols = outer_;
  for (Value* inside : isInside_) set.active.push_back(both(isFirst_, inside));
  const Values initial = identities(section);
  const Values carried =
      accumulate(section, set, std::vector<Value*>(static_cast<size_t>(set.unroll), nullptr), initial);
  States states;
  size_t at = 0;
  for (const SectionReduction& r : reductionsOf(section)) {
    const size_t n = r.emitter.componentTypes().size();
    auto& points = states.emplace_back();
    for (int i = 0; i < statesOf(section, r.emitter).count(); ++i, at += n)
      points.emplace_back(carried.begin() + static_cast<std::ptrdiff_t>(at),
                          carried.begin() + static_cast<std::ptrdiff_t>(at + n));
  }
  return states;
}

KernelEmitter::States KernelEmitter::emitLoops(int section, Value* from, Value* to, bool exact) {
  const SectionPlan& p = plan_.sections[static_cast<size_t>(section)];
  const bool isShifted = !(p.shift == SymExpr(0)) || !(p.ragged.shift == SymExpr(0));
  Values results = identities(section);
  const Instances shape = shapeOf(section);
  if (p.whole || isShifted) results = emitIteration(section, from, to, exact, results);
  if (p.whole) return joinInstances(section, shape, results);
  // After a round that begins before the row, if there is one, whole rounds, which need no conditions, then what is left.
  Value* round = ir_.getInt64(static_cast<uint64_t>(phase_.map.inner * p.unroll));
  Value* start = isShifted ? ir_.CreateAdd(from, round) : from;
  Value* end = isShifted && !p.ragged.on ? ir_.CreateAdd(to, scalar(p.shift)) : to;
  Value* safe = p.ragged.on ? ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, end, scalar(graph::floorDiv(p.points, SymExpr(p.vector)))) : end;
  Value* full = ir_.CreateSub(safe, start);
  if (p.ragged.on) full = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, full, ir_.getInt64(0));
  Value* whole = exact ? end : p.ragged.on ? ir_.CreateAdd(start, ir_.CreateSub(full, ir_.CreateURem(full, round)))
                                           : ir_.CreateSub(end, ir_.CreateURem(ir_.CreateSub(end, from), round));
  auto loop = [&](Value* first, Value* stop, bool isFull) {
    results = carriedLoop(first, stop, round, results, [&](Value* base, const Values& carried) { return emitIteration(section, base, to, isFull, carried); });
  };
  loop(start, whole, true);
  if (!exact) loop(isShifted && !p.ragged.on ? ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, start, whole) : whole, end, false);
  return joinInstances(section, shape, results);
}

KernelEmitter::Values KernelEmitter::carriedLoop(Value* from, Value* to, Value* step, const Values& initial,
                                                 const std::function<Values(Value*, const Values&)>& body) {
  BasicBlock *before = ir_.GetInsertBlock(), *loop = BasicBlock::Create(ir_.getContext(), "loop", function_);
  BasicBlock* after = BasicBlock::Create(ir_.getContext(), "looped", function_);
  ir_.CreateCondBr(ir_.CreateICmpSLT(from, to), loop, after);
  ir_.SetInsertPoint(loop);
  llvm::PHINode* at = ir_.CreatePHI(ir_.getInt64Ty(), 2);
  at->addIncoming(from, before);
  std::vector<llvm::PHINode*> phis;
  for (Value* v : initial) {
    phis.push_back(ir_.CreatePHI(v->getType(), 2));
    phis.back()->addIncoming(v, before);
  }
  const Values next = body(at, Values(phis.begin(), phis.end()));
  Value* following = ir_.CreateAdd(at, step, "", true, true);
  BasicBlock* latch = ir_.GetInsertBlock();
  at->addIncoming(following, latch);
  for (size_t i = 0; i < phis.size(); ++i) phis[i]->addIncoming(next[i], latch);
  ir_.CreateCondBr(ir_.CreateICmpSLT(following, to), loop, after);
  ir_.SetInsertPoint(after);
  Values results;
  for (size_t i = 0; i < initial.size(); ++i) {
    llvm::PHINode* result = ir_.CreatePHI(initial[i]->getType(), 2);
    result->addIncoming(initial[i], before);
    result->addIncoming(next[i], latch);
    results.push_back(result);
  }
  return results;
}

/// `unroll` vectors for each thread.
Instances KernelEmitter::instancesAt(int section, Value* base, Value* to, bool exact, Values& counted) {
  const Section& s = plan_.kernel.sections[static_cast<size_t>(section)];
  const SectionPlan& p = plan_.sections[static_cast<size_t>(section)];
  if (p.ragged.on) return raggedAt(section, base, to, exact, counted);
  Instances set = shapeOf(section);
  const bool narrow = cpu::fitsInt32(plan_.sectionVectors(section) + SymExpr(int64_t{phase_.map.inner} * p.unroll * 2));
  llvm::Type* type = narrow ? ir_.getInt32Ty() : ir_.getInt64Ty();
  Value* first = ir_.CreateAdd(ir_.CreateTrunc(base, type), ir_.CreateZExt(inner_, type));
  const int64_t before = p.shift == SymExpr(0) ? 0 : kLineElements;  // taken off again below: no step is negative but in the first vectors
  if (before) first = ir_.CreateAdd(first, ir_.CreateTrunc(scalar(SymExpr(before) - p.shift), type), "", true, true);
  Value* end = ir_.CreateTrunc(to, type);
  const int vectorAxis = p.vector > 1 ? p.order.back() : -1;
  const auto known = plan_.sectionVectors(section).maybeConstant();
  for (int u = 0; u < set.unroll; ++u) {
    const int64_t offset = int64_t{u} * phase_.map.inner - before;
    const bool isAscending = offset >= 0 || exact;
    Value* number = offset ? ir_.CreateAdd(first, llvm::ConstantInt::get(type, static_cast<uint64_t>(offset), true), "", offset > 0, isAscending) : first;
    Value* within = nullptr;
    const bool full = p.whole && known && offset >= 0 && int64_t{u + 1} * phase_.map.inner <= *known;
    if (!exact && !full) {  // what lies beyond repeats the last vector, and counts for nothing
      within = ir_.CreateICmpULT(number, end);
      number = ir_.CreateSelect(within, number, ir_.CreateSub(end, llvm::ConstantInt::get(type, 1)));
    }
    SymbolValues symbols;
    decompose(number, s.axes, p.order, vectorAxis, p.vector, symbols);
    set.symbols.push_back(std::move(symbols));
    set.active.push_back(both(isInside_[0], within));
    counted.push_back(within);
  }
  return set;
}

/// Vectors that lie as memory does. In an exact iteration, and where the plan says so, all of them are inside the row.
Instances KernelEmitter::raggedAt(int section, Value* base, Value* to, bool exact, Values& counted) {
  const SectionPlan& p = plan_.sections[static_cast<size_t>(section)];
  const int64_t known = p.points.maybeConstant().value_or(0), head = raggedHead(p.vector, p.ragged), inner = phase_.map.inner;
  auto number = [&](int64_t n) { return ir_.getInt64(static_cast<uint64_t>(n)); };
  Instances set = shapeOf(section);
  Value* shift = shiftOf(p.ragged, {});
  set.extent = scalar(p.points);
  Value* first = ir_.CreateAdd(base, ir_.CreateZExt(inner_, ir_.getInt64Ty()));
  for (int u = 0; u < set.unroll; ++u) {
    Value* vector = u ? ir_.CreateAdd(first, number(u * inner)) : first;
    Value* position = ir_.CreateSub(ir_.CreateMul(vector, number(p.vector)), shift);
    const bool isInside = exact || (p.whole && u * inner >= head && (u + 1) * inner <= known / p.vector);
    Value* within = isInside ? nullptr : ir_.CreateICmpSLT(vector, to);
    set.symbols.push_back({{set.axis->id, position}});
    set.edges.emplace_back();
    if (!isInside) set.edges.back() = edgeAt(position, shift, p.points, p.vector, within);
    set.active.push_back(both(isInside_[0], within));
    counted.push_back(within);
  }
  return set;
}

KernelEmitter::Values KernelEmitter::emitIteration(int section, Value* base, Value* to, bool exact,
                                                   const Values& carried) {
  Values counted;
  const Instances set = instancesAt(section, base, to, exact, counted);
  return accumulate(section, set, counted, carried);
}

/// The section's statements on `set`; `counted` says which groups take part in reductions.
KernelEmitter::Values KernelEmitter::accumulate(int section, const Instances& set, const std::vector<Value*>& counted,
                                                const Values& carried) {
  const Section& s = plan_.kernel.sections[static_cast<size_t>(section)];
  const SectionPlan& p = plan_.sections[static_cast<size_t>(section)];
  const std::vector<SectionReduction> reductions = reductionsOf(section);
  BodyEmitter body(lanes_, scope_, s, set);
  Values next = carried;
  std::vector<ScanState> scans = scansOf(section);
  auto eachCarry = [&](const auto& fn) {  // they stand behind the reductions
    auto place = next.end();
    for (const ScanState& scan : scans)
      for (const cpu::ReductionState& state : scan.carry) place -= static_cast<std::ptrdiff_t>(state.size());
    for (ScanState& scan : scans)
      for (cpu::ReductionState& state : scan.carry)
        for (Value*& v : state) fn(v, *place++);
  };
  eachCarry([](Value*& state, Value* old) { state = old; });
  body.onScan = [&](inductor::ValueId id) { return scanned(section, id, body, set, scans); };
  body.loadAhead();
  size_t reduction = 0, at = 0;
  for (const Statement& st : s.body) {
    const cpu::AtLine line(ir_, st.line);
    if (st.kind == Statement::Kind::Accumulate) {
      accumulateAcross(section, st, body, set);
      continue;
    }
    if (st.kind != Statement::Kind::Reduce) {
      body.store(st);
      continue;
    }
    const cpu::ReductionEmitter& emitter = reductions[reduction++].emitter;
    const size_t n = emitter.componentTypes().size();
    if (emitter.takesAll()) {
      takeAll(section, emitter, st, body, set, counted, next, at);
      continue;
    }
    for (int u = 0; u < set.unroll; ++u)
      for (int v = 0; v < set.vector; ++v, at += n) {
        std::vector<Value*> inputs;
        for (inductor::ValueId id : st.inputs)
          if (id >= 0) inputs.push_back(body.value(id, u, v));
        Value* position = emitter.needsPosition() ? body.position(p.position, emitter.positionType(), u, v) : nullptr;
        const auto from = next.begin() + static_cast<std::ptrdiff_t>(at);
        const cpu::ReductionState old(from, from + static_cast<std::ptrdiff_t>(n));
        const Edge* edge = set.edge(u);
        Value* counts = edge ? edge->inside[static_cast<size_t>(v)] : counted[static_cast<size_t>(u)];
        const cpu::ReductionState state = emitter.accumulate(old, inputs, counts, position);
        std::copy(state.begin(), state.end(), next.begin() + static_cast<std::ptrdiff_t>(at));
      }
  }
  eachCarry([](Value* state, Value*& kept) { kept = state; });
  return next;
}

/// One state for each point of the thread takes in all the groups that count.
void KernelEmitter::takeAll(int section, const cpu::ReductionEmitter& emitter, const Statement& st, BodyEmitter& body, const Instances& set,
                            const std::vector<Value*>& counted, Values& states, size_t& at) {
  const size_t n = emitter.componentTypes().size();
  const int points = statesOf(section, emitter).count();
  for (int point = 0; point < points; ++point, at += n) {
    std::vector<Value*> inputs, masks;
    for (int u = 0; u < set.unroll; ++u)
      for (int v = set.overPoints ? point : 0; v < (set.overPoints ? point + 1 : set.vector); ++v) {
        inputs.push_back(body.value(st.inputs[0], u, v));
        masks.push_back(set.edge(u) ? set.edge(u)->inside[static_cast<size_t>(v)] : counted[static_cast<size_t>(u)]);
      }
    const auto from = states.begin() + static_cast<std::ptrdiff_t>(at);
    const cpu::ReductionState state = emitter.accumulateAll({from, from + static_cast<std::ptrdiff_t>(n)}, inputs, masks);
    std::copy(state.begin(), state.end(), from);
  }
}

namespace {

/// Pairs first, then pairs of those: no long chain of dependent steps.
cpu::ReductionState joined(const cpu::ReductionEmitter& emitter, std::vector<cpu::ReductionState> list) {
  while (list.size() > 1) {
    std::vector<cpu::ReductionState> next;
    for (size_t i = 0; i < list.size(); i += 2)
      next.push_back(i + 1 < list.size() ? emitter.combine(list[i], list[i + 1]) : list[i]);
    list = std::move(next);
  }
  return std::move(list.front());
}

}  // namespace

/// One state for each point of the thread, joined over the instances and over the threads that share the point.
KernelEmitter::States KernelEmitter::joinInstances(int section, const Instances& set, const Values& carried) {
  States states;
  size_t at = 0;
  for (const SectionReduction& r : reductionsOf(section)) {
    const size_t n = r.emitter.componentTypes().size();
    std::vector<std::vector<cpu::ReductionState>> instances(static_cast<size_t>(phase_.map.vector));
    const Grid grid = statesOf(section, r.emitter);
    for (int u = 0; u < grid.unroll; ++u)
      for (int v = 0; v < grid.vector; ++v, at += n) {
        const auto from = carried.begin() + static_cast<std::ptrdiff_t>(at);
        instances[set.overPoints ? static_cast<size_t>(v) : 0].emplace_back(from,
                                                                            from + static_cast<std::ptrdiff_t>(n));
      }
    std::vector<cpu::ReductionState> points;
    for (auto& list : instances) points.push_back(joined(r.emitter, std::move(list)));
    states.push_back(combiner_.combine(r.emitter, points));
  }
  return states;
}

void KernelEmitter::bindResults(int section, const States& states) {
  const std::vector<SectionReduction> reductions = reductionsOf(section);
  for (size_t i = 0; i < reductions.size(); ++i) {
    const cpu::ReductionEmitter& emitter = reductions[i].emitter;
    const size_t count = emitter.needsPosition() ? 1 : emitter.componentTypes().size();
    std::vector<std::vector<Value*>> results(count);
    for (size_t number = 0; number < count; ++number)
      for (const cpu::ReductionState& point : states[i])
        results[number].push_back(emitter.result(point, static_cast<int>(number)));
    scope_.reduced[reductions[i].statement->reduction] = std::move(results);
  }
}

}  // namespace fusebox::codegen::gpu
