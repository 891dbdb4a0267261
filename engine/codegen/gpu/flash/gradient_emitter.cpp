#include "engine/codegen/gpu/flash/gradient_emitter.h"

#include <limits>
#include <numbers>

namespace fusebox::codegen::gpu {
using inductor::Op;
using inductor::Symbol;
using inductor::ValueId;

GradientEmitter::GradientEmitter(const inductor::Kernel& kernel, const GradientPlan& plan, llvm::Module& module,
                                 const cpu::TargetTraits& traits, const std::string& name, bool aligned)
    : FlashEmitter(kernel, plan.shape, module, traits), launch_(plan) {
  makeFunction(name);
  bindArguments(aligned);
  query_ = operandOf(section_.body[0].inputs[0], how_.width.symbol, places());
  key_ = operandOf(section_.body[0].inputs[1], how_.width.symbol, withColumn());
  gradient_ = operandOf(section_.body[1].inputs[0], how_.depth.symbol, places());
  value_ = operandOf(section_.body[1].inputs[1], how_.depth.symbol, withColumn());
  for (size_t i = plan.ownsColumns ? 1 : 0; i < (plan.ownsColumns ? 3 : 1); ++i)
    if (how_.stores[i] >= 0) gradients_.push_back({&section_.body[static_cast<size_t>(how_.stores[i])], i < 2});
  // Where scores are causal, the last rows and the first columns have the most to do.
  const int64_t tiles = plan.tiles();
  Value tile = bindPlace(tiles);
  if (!plan.ownsColumns) tile = ir_.CreateSub(number(tiles - 1), tile);
  firstOwn_ = ir_.CreateMul(tile, number(plan.ownOfTile()));
  for (int i = 0; i < 2 * plan.ownTiles; ++i) {
    Row row;
    Value within = ir_.CreateAdd(ir_.CreateMul(warp_, number(16 * plan.ownTiles)), ir_.CreateLShr(lane_, number(2)));
    row.number = ir_.CreateAdd(firstOwn_, ir_.CreateAdd(within, number(8 * i)));
    if (plan.own() % plan.ownOfTile() != 0) {
      row.isInside = ir_.CreateICmpULT(row.number, number(plan.own()));
      row.number = ir_.CreateSelect(row.isInside, row.number, number(plan.own() - 1));
    }
    row.symbols = plan.ownsColumns ? SymbolValues{{column_.id, wide(row.number)}} : rowSymbols(row.number);
    rows_.push_back(std::move(row));
  }
}

void GradientEmitter::copyOwn() {
  const FlashPlan& shape = launch_.shape;
  const bool columns = launch_.ownsColumns;
  copyTile(columns ? key_ : query_, firstOwn_, launch_.own(), launch_.ownOfTile(), shape.width, shape.widthInMemory(),
           shape.widthPitch(), 0, !columns);
  copyTile(columns ? value_ : gradient_, firstOwn_, launch_.own(), launch_.ownOfTile(), shape.depth,
           shape.depthInMemory(), shape.depthPitch(), launch_.ownDepthAt(), !columns);
}

void GradientEmitter::copyOthers(Value first, Value stage) {
  const FlashPlan& shape = launch_.shape;
  const bool columns = launch_.ownsColumns;
  copyTile(columns ? query_ : key_, first, launch_.others(), launch_.othersOfTile, shape.width, shape.widthInMemory(),
           shape.widthPitch(), launch_.othersAt(), columns, stage);
  copyTile(columns ? gradient_ : value_, first, launch_.others(), launch_.othersOfTile, shape.depth,
           shape.depthInMemory(), shape.depthPitch(), launch_.othersDepthAt(), columns, stage);
  core_.commit();
}

GradientEmitter::Tile GradientEmitter::multiply(int ownAt, int othersAt, int pitch, int inMemory, Value stage) {
  const int pairs = launch_.othersOfTile / 16, steps = inMemory / 16;
  Value zero = real(0);
  Tile sums(static_cast<size_t>(launch_.ownTiles),
            std::vector<Words>(static_cast<size_t>(2 * pairs), Words{zero, zero, zero, zero}));
  Value ownRow = ir_.CreateAdd(ir_.CreateMul(warp_, number(16 * launch_.ownTiles)), ir_.CreateAnd(lane_, number(15)));
  Value ownBase =
      ir_.CreateAdd(ir_.CreateMul(ownRow, number(pitch)), ir_.CreateMul(ir_.CreateLShr(lane_, number(4)), number(16)));
  // Eight others, the same eight further along, and the next eight.
  Value row =
      ir_.CreateAdd(ir_.CreateAnd(lane_, number(7)), ir_.CreateMul(ir_.CreateLShr(lane_, number(4)), number(8)));
  Value base = ir_.CreateAdd(ir_.CreateMul(row, number(pitch)),
                             ir_.CreateMul(ir_.CreateAnd(ir_.CreateLShr(lane_, number(3)), number(1)), number(16)));
  base = ir_.CreateAdd(base, stage);
  for (int k = 0; k < steps; ++k) {
    std::vector<Words> own;
    for (int i = 0; i < launch_.ownTiles; ++i)
      own.push_back(core_.loadMatrices(shared(ownAt + i * 16 * pitch + 32 * k, ownBase), false));
    for (int n = 0; n < pairs; ++n) {
      const Words b = core_.loadMatrices(shared(othersAt + n * 16 * pitch + 32 * k, base), false);
      for (size_t i = 0; i < own.size(); ++i)
        for (size_t half = 0; half < 2; ++half) {
          Words& c = sums[i][2 * static_cast<size_t>(n) + half];
          c = core_.multiply(own[i], b[2 * half], b[2 * half + 1], c);
        }
    }
  }
  return sums;
}

void GradientEmitter::accumulate(const Tile& weights, Tile& sums, int othersAt, int pitch, int inMemory, Value stage) {
  const size_t steps = static_cast<size_t>(launch_.othersOfTile) / 16, pairs = static_cast<size_t>(inMemory) / 16;
  std::vector<std::vector<Words>> packed(weights.size());
  for (size_t i = 0; i < weights.size(); ++i)
    for (size_t n = 0; n < 2 * steps; n += 2) {
      const Words &left = weights[i][n], &right = weights[i][n + 1];
      packed[i].push_back({core_.pack(left[0], left[1]), core_.pack(left[2], left[3]), core_.pack(right[0], right[1]),
                           core_.pack(right[2], right[3])});
    }
  Value base = ir_.CreateAdd(ir_.CreateMul(ir_.CreateAnd(lane_, number(15)), number(pitch)),
                             ir_.CreateMul(ir_.CreateLShr(lane_, number(4)), number(16)));
  base = ir_.CreateAdd(base, stage);
  for (size_t k = 0; k < steps; ++k)
    for (size_t n = 0; n < pairs; ++n) {
      const Words b = core_.loadMatrices(
          shared(othersAt + static_cast<int>(k) * 16 * pitch + 32 * static_cast<int>(n), base), true);
      for (size_t i = 0; i < sums.size(); ++i)
        for (size_t half = 0; half < 2; ++half) {
          Words& c = sums[i][2 * n + half];
          c = core_.multiply(packed[i][k], b[2 * half], b[2 * half + 1], c);
        }
    }
}

ValueId GradientEmitter::exponential() const {
  ValueId id = section_.body[0].inputs[2];
  while (id >= 0 && at(id).op == Op::Cast) id = at(id).args[0];
  const bool isOne =
      id >= 0 && at(id).op == Op::Exp && at(id).type == graph::DType::Float32 && at(at(id).args[0]).op == Op::Sub;
  return isOne ? id : -1;
}

/// Whether `id` is 0 wherever `factor` is.
bool GradientEmitter::vanishes(ValueId id, ValueId factor) const {
  if (id == factor) return true;
  const inductor::Value& v = at(id);
  const auto does = [&](int i) { return vanishes(v.args[static_cast<size_t>(i)], factor); };
  switch (v.op) {
    case Op::Constant:
      return v.imm == 0;
    case Op::Cast:
    case Op::Neg:
    case Op::Div:
      return does(0);
    case Op::Mul:
      return does(0) || does(1);
    case Op::Add:
    case Op::Sub:
      return does(0) && does(1);
    case Op::Where:
      return does(1) && does(2);
    default:
      return false;
  }
}

std::vector<GradientEmitter::Tile> GradientEmitter::weigh(const Tile& scores, const Tile& weights, Value first) {
  const int blocks = launch_.othersOfTile / 8;
  const int64_t others = launch_.others();
  const Symbol along = launch_.ownsColumns ? kernel_.outer.back().symbol : column_;
  const int64_t extent = launch_.ownsColumns ? kernel_.outer.back().extent.constant() : others;
  const bool isWhole = others % launch_.othersOfTile == 0, inPairs = extent % 2 == 0;
  Instances set;
  set.vector = inPairs ? 2 : 1;
  set.unroll = static_cast<int>(rows_.size()) * blocks * (inPairs ? 1 : 2);
  set.axis = inPairs ? &along : nullptr;
  set.ownReduced = true;
  std::vector<Value> numbers;  // i32, of each block and neighbour
  Value own = ir_.CreateAdd(first, ir_.CreateMul(ir_.CreateAnd(lane_, number(3)), number(2)));
  for (int n = 0; n < blocks; ++n)
    for (int half = 0; half < 2; ++half) numbers.push_back(ir_.CreateAdd(own, number(8 * n + half)));
  std::vector<SymbolValues> symbolsOf;
  for (size_t i = 0; i < numbers.size(); ++i) {
    Value at = numbers[i];
    if (!isWhole) at = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, at, number(others - (inPairs ? 2 : 1)));
    symbolsOf.push_back(inPairs && i % 2      ? SymbolValues()
                        : launch_.ownsColumns ? rowSymbols(at)
                                              : SymbolValues{{column_.id, wide(at)}});
  }
  for (const Row& row : rows_)
    for (int n = 0; n < blocks; ++n)
      for (int half = 0; half < (inPairs ? 1 : 2); ++half) {
        SymbolValues symbols = row.symbols;
        for (const auto& [id, value] : symbolsOf[static_cast<size_t>(2 * n + half)]) symbols[id] = value;
        set.symbols.push_back(std::move(symbols));
        set.active.push_back(nullptr);
      }
  const auto placeOf = [&](int group, int neighbour) {
    const int each = inPairs ? 1 : 2, half = inPairs ? neighbour : group % 2;
    return std::array<size_t, 3>{static_cast<size_t>(group / each / blocks), static_cast<size_t>(group / each % blocks),
                                 static_cast<size_t>(half)};
  };
  BodyEmitter body(lanes_, scope_, section_, set);
  body.contracts = true;
  body.onReduced = [&](int reduction, int group, int neighbour) {
    const auto [row, n, half] = placeOf(group, neighbour);
    return (reduction == section_.body[0].reduction ? scores : weights)[row / 2][n][2 * (row % 2) + half];
  };
  body.quickValue = exponential();
  if (body.quickValue >= 0) body.quickExp = [&](Value v) { return core_.exp2(ir_.CreateFMul(v, real(std::numbers::log2e))); };
  std::vector<Tile> made(gradients_.size(), scores);
  for (int group = 0; group < set.unroll; ++group)
    for (int neighbour = 0; neighbour < set.vector; ++neighbour) {
      const auto [row, n, half] = placeOf(group, neighbour);
      for (size_t g = 0; g < gradients_.size(); ++g) {
        Value v = body.value(gradients_[g].store->value, group, neighbour);
        if (!isWhole) v = ir_.CreateSelect(ir_.CreateICmpULT(numbers[2 * n + half], number(others)), v, real(0));
        made[g][row / 2][n][2 * (row % 2) + half] = v;
      }
    }
  return made;
}

void GradientEmitter::findOthers() {
  // Where the scores are -inf there is nothing to sum up, if all that is summed is a multiple of their exponentials.
  const ValueId power = exponential();
  if (power < 0) return;
  for (const Gradient& gradient : gradients_)
    if (!vanishes(gradient.store->value, power)) return;
  findMask(at(at(power).args[0]).args[0], launch_.ownsColumns ? columnRanges(firstOwn_, launch_.ownOfTile())
                                                              : rowRanges(firstOwn_, launch_.ownOfTile()));
}

FlashEmitter::Value GradientEmitter::nextOthers(Value first) {
  const int count = launch_.othersOfTile;
  return nextTile(first, count, launch_.others(),
                  [&](Value at) { return launch_.ownsColumns ? rowRanges(at, count) : columnRanges(at, count); });
}

void GradientEmitter::store(const Gradient& gradient, const Tile& sums) {
  const inductor::Statement& to = *gradient.store;
  const BufferSlot& slot = scope_.buffers.at(to.buffer);
  const inductor::Axis& axis = gradient.isOfWidth ? how_.width : how_.depth;
  const int64_t fast = to.index.strideOf(axis.symbol).value();
  const bool isWide = slot.buffer->dtype == graph::DType::Float32;
  llvm::Type* type = isWide ? ir_.getFloatTy() : static_cast<llvm::Type*>(ir_.getInt16Ty());
  Value quad = ir_.CreateMul(ir_.CreateAnd(lane_, number(3)), number(2));
  for (size_t r = 0; r < rows_.size(); ++r) {
    Value offset = addressOf(to.index, rows_[r].symbols);
    when(rows_[r].isInside, [&] {
      for (int64_t n = 0; n < axis.extent.constant() / 8; ++n) {
        const Words& words = sums[r / 2][static_cast<size_t>(n)];
        Value elements[2] = {words[2 * (r % 2)], words[2 * (r % 2) + 1]};
        if (!isWide) {
          Value pair = core_.pack(elements[0], elements[1]);
          elements[0] = ir_.CreateTrunc(pair, type);
          elements[1] = ir_.CreateTrunc(ir_.CreateLShr(pair, number(16)), type);
        }
        for (int half = 0; half < 2; ++half) {
          Value at =
              ir_.CreateMul(wide(ir_.CreateAdd(quad, number(8 * n + half))), ir_.getInt64(static_cast<uint64_t>(fast)));
          Value address = ir_.CreateGEP(type, slot.base, ir_.CreateAdd(offset, at));
          ir_.CreateAlignedStore(elements[half], address, llvm::Align(isWide ? 4 : 2));
        }
      }
    });
  }
}

void GradientEmitter::emit() {
  const FlashPlan& shape = launch_.shape;
  copyOwn();
  findOthers();
  Value start = nextOthers(number(0));
  Value isNone = ir_.CreateICmpUGE(start, number(launch_.others()));
  copyOthers(ir_.CreateSelect(isNone, number(0), start), number(0));

  // The loop's values: where it is, where the tile lies in shared memory, and the sums.
  auto& context = ir_.getContext();
  llvm::BasicBlock* before = ir_.GetInsertBlock();
  auto* loop = llvm::BasicBlock::Create(context, "others", function_);
  auto* more = llvm::BasicBlock::Create(context, "more", function_);
  auto* work = llvm::BasicBlock::Create(context, "work", function_);
  auto* after = llvm::BasicBlock::Create(context, "after", function_);
  ir_.CreateCondBr(isNone, after, loop);
  ir_.SetInsertPoint(loop);
  std::vector<llvm::PHINode*> phis;
  const auto carried = [&](Value start) {
    llvm::PHINode* phi = ir_.CreatePHI(start->getType(), 2);
    phi->addIncoming(start, before);
    phis.push_back(phi);
    return phi;
  };
  Value zero = real(0);
  Value first = carried(start), stage = carried(number(0));
  std::vector<Tile> sums;
  for (const Gradient& gradient : gradients_) {
    const auto deep = static_cast<size_t>(gradient.isOfWidth ? shape.widthInMemory() : shape.depthInMemory()) / 8;
    sums.emplace_back(static_cast<size_t>(launch_.ownTiles), std::vector<Words>(deep));
    for (auto& row : sums.back())
      for (Words& words : row)
        for (Value& v : words) v = carried(zero);
  }
  Value next = nextOthers(ir_.CreateAdd(first, number(launch_.othersOfTile)));
  Value isLast = ir_.CreateICmpUGE(next, number(launch_.others()));
  Value otherStage = ir_.CreateSub(number(launch_.stageBytes()), stage);
  core_.waitFor(0);
  core_.barrier();  // the tile is there, and everybody is done with the one before, whose place the next one takes
  ir_.CreateCondBr(isLast, work, more);
  ir_.SetInsertPoint(more);
  copyOthers(next, otherStage);
  ir_.CreateBr(work);
  ir_.SetInsertPoint(work);
  const Tile scores = multiply(0, launch_.othersAt(), shape.widthPitch(), shape.widthInMemory(), stage);
  const Tile weights =
      multiply(launch_.ownDepthAt(), launch_.othersDepthAt(), shape.depthPitch(), shape.depthInMemory(), stage);
  const std::vector<Tile> factors = weigh(scores, weights, first);
  for (size_t g = 0; g < gradients_.size(); ++g) {
    if (gradients_[g].isOfWidth)
      accumulate(factors[g], sums[g], launch_.othersAt(), shape.widthPitch(), shape.widthInMemory(), stage);
    else
      accumulate(factors[g], sums[g], launch_.othersDepthAt(), shape.depthPitch(), shape.depthInMemory(), stage);
  }
  std::vector<Value> results{next, otherStage};
  for (Tile& tile : sums)
    for (auto& row : tile)
      for (Words& words : row) results.insert(results.end(), words.begin(), words.end());
  llvm::BasicBlock* end = ir_.GetInsertBlock();
  for (size_t i = 0; i < phis.size(); ++i) phis[i]->addIncoming(results[i], end);
  ir_.CreateCondBr(isLast, after, loop);
  ir_.SetInsertPoint(after);
  for (Tile& tile : sums)
    for (auto& row : tile)
      for (Words& words : row)
        for (Value& v : words) {
          llvm::PHINode* phi = ir_.CreatePHI(ir_.getFloatTy(), 2);
          phi->addIncoming(zero, before);
          phi->addIncoming(v, end);
          v = phi;
        }
  core_.waitFor(0);  // a block does not end while something is on its way
  for (size_t g = 0; g < gradients_.size(); ++g) store(gradients_[g], sums[g]);
  ir_.CreateRetVoid();
}

}  // namespace fusebox::codegen::gpu
