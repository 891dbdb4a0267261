#include <algorithm>

#include "engine/codegen/cpu/kernel_emitter.h"
#include "engine/graph/axis_symbol.h"

/// A unit's points: along the tile axis and the vector axis. What lies along the tile axis in memory is turned in registers; so is what lies
/// along the innermost loop of a section whose lanes are outer points.
namespace fusebox::codegen::cpu {
using inductor::Axis;
using inductor::BufferRole;
using inductor::Op;
using inductor::Section;
using inductor::Statement;
using inductor::SymExpr;
using llvm::Value;

namespace {

constexpr int kBlock = 16;      // rows and columns that are turned at a time, at most: as many registers as there are for it
constexpr int kLeastBlock = 4;  // gathers are no worse below
constexpr size_t kMostTurned = 8;

/// The transpose of a square: rows[i][j] becomes result[j][i]. Each step interleaves the rows of one half with those of the other.
std::vector<Value*> transposed(llvm::IRBuilder<>& ir, std::vector<Value*> rows) {
  const size_t n = rows.size();
  llvm::SmallVector<int, 64> low, high;
  for (size_t i = 0; i < n; ++i) {
    low.push_back(static_cast<int>(i / 2 + i % 2 * n));
    high.push_back(static_cast<int>(n / 2 + i / 2 + i % 2 * n));
  }
  for (size_t step = 1; step < n; step *= 2) {
    std::vector<Value*> next(n);
    for (size_t i = 0; i < n / 2; ++i) {
      next[2 * i] = ir.CreateShuffleVector(rows[i], rows[i + n / 2], low);
      next[2 * i + 1] = ir.CreateShuffleVector(rows[i], rows[i + n / 2], high);
    }
    rows = std::move(next);
  }
  return rows;
}

}  // namespace

std::vector<KernelEmitter::Turned> KernelEmitter::turnedOf(const Section& s, const Axis& along, int64_t tileSize) const {
  std::vector<Turned> list;
  if (const auto extent = along.extent.maybeConstant(); extent && *extent < tileSize) return list;
  const inductor::Symbol vector = plan_.kernel.outer[static_cast<size_t>(plan_.outerVector)].symbol;
  const auto add = [&](const void* access, inductor::BufferId id, const SymExpr& index, bool isStore) {
    const BufferSlot& slot = scope_.buffers.at(id);
    const int size = static_cast<int>(std::min<int64_t>({kBlock, tileSize, plan_.lanes}));
    const auto stride = graph::symbolicStride(index, vector);
    const bool isLoaded = std::any_of(s.indirect.begin(), s.indirect.end(), [&](const auto& entry) { return index.contains(entry.first); });
    if (list.size() < kMostTurned && size >= kLeastBlock && stride && !(*stride == SymExpr(0)) && !(*stride == SymExpr(1)) &&
        index.strideOf(along.symbol) == 1 && !isLoaded && slot.buffer->role != BufferRole::Scratch)
      list.push_back({access, &slot, index, *stride, tileSize, isStore, size, nullptr});
  };
  for (const inductor::Value& v : s.values)
    if (v.op == Op::Load && v.mask < 0 && !scope_.stored.contains(v.buffer)) add(&v, v.buffer, v.index, false);
  for (const Statement& st : s.body) {
    if (st.kind != Statement::Kind::Store || st.mask >= 0) continue;
    const auto isTaken = [&](const inductor::Value& v) { return v.op == Op::Load && v.buffer == st.buffer; };
    const auto isOther = [&](const Statement& other) { return &other != &st && other.kind == Statement::Kind::Store && other.buffer == st.buffer; };
    if (scope_.buffers.at(st.buffer).buffer->overwrites < 0 && std::none_of(s.values.begin(), s.values.end(), isTaken) &&
        std::none_of(s.body.begin(), s.body.end(), isOther))
      add(&st, st.buffer, st.index, true);
  }
  return list;
}

void KernelEmitter::turn(const Turned& t, bool isFilling) {
  llvm::Type* element = lanes_.storage(t.slot->buffer->dtype);
  auto* row = llvm::FixedVectorType::get(element, static_cast<unsigned>(t.block));
  const llvm::Align aligned(static_cast<uint64_t>(graph::elementSize(t.slot->buffer->dtype)));
  Value* memory = ir_.CreateGEP(element, t.slot->base, scalar(t.index));
  Value* stride = scalar(t.stride);
  for (int lane = 0; lane < plan_.lanes; lane += t.block)
    for (int64_t point = 0; point < t.points; point += t.block) {
      const auto outside = [&](int i) {
        Value* offset = ir_.CreateMul(stride, ir_.getInt64(static_cast<uint64_t>(lane + i)));
        return ir_.CreateGEP(element, memory, ir_.CreateAdd(offset, ir_.getInt64(static_cast<uint64_t>(point))));
      };
      const auto inside = [&](int i) {
        return ir_.CreateConstGEP1_64(element, t.turned, static_cast<uint64_t>((point + i) * plan_.lanes + lane));
      };
      std::vector<Value*> rows;
      for (int i = 0; i < t.block; ++i) rows.push_back(ir_.CreateAlignedLoad(row, isFilling ? outside(i) : inside(i), aligned));
      rows = transposed(ir_, std::move(rows));
      for (int i = 0; i < t.block; ++i) ir_.CreateAlignedStore(rows[static_cast<size_t>(i)], isFilling ? inside(i) : outside(i), aligned);
    }
}

void KernelEmitter::emitLanes(const std::function<void(const LaneSet& set)>& points, bool isTurning) {
  const Axis& axis = plan_.kernel.outer[static_cast<size_t>(plan_.outerVector)];
  Value* chunk = ir_.getInt64(static_cast<uint64_t>(plan_.outerChunk));
  Value* lo = ir_.CreateMul(vectorChunk_, chunk);
  Value* hi = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.CreateAdd(lo, chunk), scalar(axis.extent));
  // A segment's own length says how its vectors end. Only whole vectors are turned.
  const bool isCut = plan_.segments && plan_.segments->axis == plan_.outerVector;
  const auto extent = isCut || isTurning ? std::nullopt : axis.extent.maybeConstant();
  inSegments(plan_.outerVector, lo, hi, [&](Value* from, Value* to) {
    laneLoop(axis.symbol, from, to, extent, {}, [&](const LaneSet& set, const Values&) {
      points(set);
      return Values{};
    });
  });
}

void KernelEmitter::emitTile(const Phase& phase) {
  if (plan_.outerVector < 0) return emitSections(phase, LaneSet{});
  const auto at = [&](const LaneSet& set) { emitSections(phase, set); };
  if (plan_.tileAxis < 0) return emitLanes(at, turnsInSections());
  const Axis& axis = plan_.kernel.outer[static_cast<size_t>(plan_.tileAxis)];
  Value* size = ir_.getInt64(static_cast<uint64_t>(plan_.tileSize));
  Value* const number = scope_.symbols[axis.symbol.id];
  Value* lo = ir_.CreateMul(number, size);
  Value* hi = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, ir_.CreateAdd(lo, size), scalar(axis.extent));
  inSegments(plan_.tileAxis, lo, hi, [&](Value* from, Value* to) {
    const auto along = [&](const std::function<void()>& body) {
      loop(&axis.symbol, from, to, 1, {}, [&](Value*, const Values&) {
        body();
        return Values{};
      });
    };
    const auto turns = [&](const Section& s) { return !turnedOf(s, axis, plan_.tileSize).empty(); };
    const bool isTurning = plan_.segments ? std::ranges::any_of(plan_.segments->bodies, turns) : turns(plan_.kernel.sections[0]);
    if (!isTurning) return along([&] { emitLanes(at, false); });
    Value* isWhole = ir_.CreateICmpEQ(ir_.CreateSub(to, from), size);
    emitLanes([&](const LaneSet& set) {
      const auto plainly = [&] { along([&] { at(set); }); };
      std::vector<Turned> turned = turnedOf(segment_ ? *segment_ : plan_.kernel.sections[0], axis, plan_.tileSize);
      if (set.mask || set.lanes < plan_.lanes || turned.empty()) return plainly();
      branch(isWhole, [&] {
        emitTurned(axis, from, turned, [&] {
          plainly();
          return Values{};
        });
      }, plainly);
    }, true);
  });
  scope_.symbols[axis.symbol.id] = number;
}

Value* KernelEmitter::turnedMemory(size_t position, int64_t points) {
  int64_t widest = 1;
  for (const auto& b : plan_.kernel.buffers) widest = std::max<int64_t>(widest, graph::elementSize(b.dtype));
  Value*& memory = turnedMemory_[{position, points}];
  if (!memory) memory = lanes_.slot(llvm::ArrayType::get(ir_.getInt8Ty(), static_cast<uint64_t>(points * plan_.lanes * widest)), "turned");
  return memory;
}

KernelEmitter::Values KernelEmitter::emitTurned(const Axis& tile, Value* from, std::vector<Turned>& turned, const std::function<Values()>& points) {
  scope_.symbols[tile.symbol.id] = from;
  for (size_t i = 0; i < turned.size(); ++i) {
    Turned& t = turned[i];
    t.turned = turnedMemory(i, t.points);
    if (!t.isStore) turn(t, true);
    scope_.turned.emplace(t.access, TurnedSlot{t.turned, tile.symbol, from});
  }
  Values made = points();
  scope_.turned.clear();
  scope_.symbols[tile.symbol.id] = from;
  for (const Turned& t : turned)
    if (t.isStore) turn(t, false);
  return made;
}

const Axis* KernelEmitter::turnedAxis(int section) const {
  const SectionPlan& p = plan_.sections[static_cast<size_t>(section)];
  const Section& s = plan_.kernel.sections[static_cast<size_t>(section)];
  if (plan_.outerVector < 0 || p.order.empty()) return nullptr;
  const Axis& axis = s.axes[static_cast<size_t>(p.order.back())];
  return turnedOf(s, axis, kTurnedPoints).empty() ? nullptr : &axis;
}

bool KernelEmitter::turnsInSections() const {
  for (size_t s = 0; s < plan_.sections.size(); ++s)
    if (turnedAxis(static_cast<int>(s))) return true;
  return false;
}

KernelEmitter::Values KernelEmitter::turnedLoop(int section, const Axis& axis, Value* lo, Value* hi, const Values& init, const LoopBody& body) {
  Value* tile = ir_.getInt64(static_cast<uint64_t>(kTurnedPoints));
  Value* whole = ir_.CreateAdd(lo, ir_.CreateAnd(ir_.CreateSub(hi, lo), ir_.getInt64(static_cast<uint64_t>(-kTurnedPoints))));
  const Values tiled = loop(nullptr, lo, whole, kTurnedPoints, init, [&](Value* from, const Values& carried) {
    std::vector<Turned> turned = turnedOf(plan_.kernel.sections[static_cast<size_t>(section)], axis, kTurnedPoints);
    return emitTurned(axis, from, turned, [&] { return loop(&axis.symbol, from, ir_.CreateAdd(from, tile), 1, carried, body); });
  });
  return loop(&axis.symbol, whole, hi, 1, tiled, body);
}

}  // namespace fusebox::codegen::cpu
