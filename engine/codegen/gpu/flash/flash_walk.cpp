#include <limits>
#include <numbers>

#include "engine/codegen/gpu/flash/flash_emitter.h"

/// The walk of a block over the columns: scores to weights, what is left out, and what comes of it.
namespace fusebox::codegen::gpu {
using inductor::Axis;
using inductor::SymExpr;

/// Of the four lanes that share a row.
FlashEmitter::Value FlashEmitter::overQuad(Value v, bool isMaximum) {
  for (int offset : {1, 2}) {
    Value other = core_.fromLane(v, offset);
    v = isMaximum ? ir_.CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, v, other) : ir_.CreateFAdd(v, other);
  }
  return v;
}

TileMask::Range FlashEmitter::rangeFrom(Value begin, int count, int64_t limit) {
  Value end =
      ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, ir_.CreateAdd(begin, number(count - 1)), number(limit - 1));
  return {wide(begin), wide(end), count};
}

TileMask::Ranges FlashEmitter::columnRanges(Value firstColumn, int columns) {
  return {{column_.id, rangeFrom(firstColumn, columns, section_.axes[0].extent.constant())}};
}

TileMask::Ranges FlashEmitter::rowRanges(Value firstRow, int rows) {
  TileMask::Ranges ranges;
  const Axis& last = kernel_.outer.back();
  const int64_t extent = last.extent.constant();
  if (how_.sharing == 0) return {{last.symbol.id, rangeFrom(firstRow, rows, extent)}};
  const Axis& group = kernel_.outer[kernel_.outer.size() - 2];
  const auto all = [&](const Axis& axis) {
    return TileMask::Range{ir_.getInt64(0), wide(number(axis.extent.constant() - 1))};
  };
  const bool isOfOne = extent % rows == 0;  // a tile lies in one row of the group
  Value row = ir_.CreateURem(firstRow, number(extent));
  ranges[last.symbol.id] = isOfOne ? rangeFrom(row, rows, extent) : all(last);
  ranges[group.symbol.id] = all(group);
  return ranges;
}

void FlashEmitter::findMask(inductor::ValueId score, TileMask::Ranges own) {
  mask_.emplace(lanes_, scope_, section_, score, core_, lane_);
  ownRanges_ = std::move(own);
  mask_->prepare(ownRanges_);
  if (!mask_->isKnown()) mask_.reset();
}

FlashEmitter::Value FlashEmitter::nextTile(Value first, int count, int64_t limit,
                                           const std::function<TileMask::Ranges(Value)>& rangesAt) {
  if (!mask_) return first;
  auto& context = ir_.getContext();
  llvm::BasicBlock* before = ir_.GetInsertBlock();
  auto* test = llvm::BasicBlock::Create(context, "tile", function_);
  auto* look = llvm::BasicBlock::Create(context, "look", function_);
  auto* found = llvm::BasicBlock::Create(context, "found", function_);
  ir_.CreateBr(test);
  ir_.SetInsertPoint(test);
  llvm::PHINode* at = ir_.CreatePHI(ir_.getInt32Ty(), 2);
  at->addIncoming(first, before);
  ir_.CreateCondBr(ir_.CreateICmpUGE(at, number(limit)), found, look);
  ir_.SetInsertPoint(look);
  TileMask::Ranges ranges = rangesAt(at);
  ranges.insert(ownRanges_.begin(), ownRanges_.end());
  Value isEmpty = mask_->isEmpty(ranges);
  Value next = ir_.CreateAdd(at, number(count));
  at->addIncoming(next, ir_.GetInsertBlock());
  ir_.CreateCondBr(isEmpty ? isEmpty : ir_.getFalse(), test, found);
  ir_.SetInsertPoint(found);
  return at;
}

FlashEmitter::Value FlashEmitter::isAbove(const std::vector<Value>& tops, const std::vector<Value>& references) {
  constexpr double kRoom = 8 / std::numbers::log2e;  // weights up to 2^8: far from the end of 16-bit numbers too
  Value above = nullptr;
  for (size_t r = 0; r < tops.size(); ++r) {
    Value own = ir_.CreateFCmpOGT(tops[r], ir_.CreateFAdd(references[r], real(kRoom)));
    above = above ? ir_.CreateOr(above, own) : own;
  }
  return ir_.CreateIntrinsic(llvm::Intrinsic::nvvm_vote_any_sync, {}, {number(-1), above});
}

void FlashEmitter::walk() {
  const auto rowTiles = static_cast<size_t>(plan_.rowTiles);
  const size_t blocks = static_cast<size_t>(plan_.columnsOfTile) / 8,
               deep = static_cast<size_t>(plan_.depthInMemory()) / 8;
  const auto copyColumns = [&](Value first, Value stage) {
    copyTile(key_, first, plan_.columns, plan_.columnsOfTile, plan_.width, plan_.widthInMemory(), plan_.widthPitch(),
             plan_.keysAt(), false, stage);
    copyTile(value_, first, plan_.columns, plan_.columnsOfTile, plan_.depth, plan_.depthInMemory(), plan_.depthPitch(),
             plan_.valuesAt(), false, stage);
    core_.commit();
  };
  copyTile(query_, firstRow_, plan_.rows, plan_.rowsOfTile(), plan_.width, plan_.widthInMemory(), plan_.widthPitch(), 0,
           true);
  findMask(section_.body[1].inputs[0], rowRanges(firstRow_, plan_.rowsOfTile()));
  Value start = nextTile(number(0));
  Value isNone = ir_.CreateICmpUGE(start, number(plan_.columns));
  copyColumns(ir_.CreateSelect(isNone, number(0), start), number(0));
  std::vector<std::vector<Words>> query;
  if (plan_.queryInRegisters) {
    core_.waitFor(0);
    core_.barrier();
    query = loadQuery(0, plan_.widthInMemory() / 16);
  }

  // The loop's values: where it is, where the tile lies in shared memory, and of each row what its scores are compared
  // with, its sum of weights (of this lane's columns) and the weighted values.
  auto& context = ir_.getContext();
  llvm::BasicBlock* before = ir_.GetInsertBlock();
  const auto block = [&](const char* name) { return llvm::BasicBlock::Create(context, name, function_); };
  auto *loop = block("columns"), *more = block("more"), *work = block("work"), *fade = block("fade"),
       *weigh = block("weigh"), *after = block("after");
  ir_.CreateCondBr(isNone, after, loop);
  ir_.SetInsertPoint(loop);
  std::vector<llvm::PHINode*> phis;
  const auto carried = [&](Value start) {
    llvm::PHINode* phi = ir_.CreatePHI(start->getType(), 2);
    phi->addIncoming(start, before);
    phis.push_back(phi);
    return phi;
  };
  Value infinity = real(-std::numeric_limits<double>::infinity()), zero = real(0);
  Value first = carried(start), stage = carried(number(0));
  std::vector<Value> references, totals;
  for (size_t r = 0; r < rows_.size(); ++r) references.push_back(carried(infinity));
  for (size_t r = 0; r < rows_.size(); ++r) totals.push_back(carried(zero));
  std::vector<std::vector<Words>> sums(rowTiles, std::vector<Words>(deep));
  for (auto& row : sums)
    for (Words& words : row)
      for (Value& v : words) v = carried(zero);

  Value next = nextTile(ir_.CreateAdd(first, number(plan_.columnsOfTile)));
  Value isLast = ir_.CreateICmpUGE(next, number(plan_.columns));
  Value otherStage = ir_.CreateSub(number(plan_.stageBytes()), stage);
  core_.waitFor(0);
  if (plan_.inGroups) core_.showToGroups();
  core_.barrier();  // the tile is there, and everybody is done with the one before, whose place the next one takes
  ir_.CreateCondBr(isLast, work, more);
  ir_.SetInsertPoint(more);
  copyColumns(next, otherStage);
  ir_.CreateBr(work);
  ir_.SetInsertPoint(work);
  std::vector<std::vector<Words>> scores = products(query, stage);
  score(scores, first);
  const auto element = [&](size_t r, size_t n, size_t half) -> Value& { return scores[r / 2][n][2 * (r % 2) + half]; };
  std::vector<Value> tops;
  for (size_t r = 0; r < rows_.size(); ++r) {
    Value top = element(r, 0, 0);
    for (size_t n = 0; n < blocks; ++n)
      for (size_t half = 0; half < 2; ++half)
        if (n + half > 0) top = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, top, element(r, n, half));
    tops.push_back(ir_.CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, references[r], overQuad(top, true)));
  }
  // Of a row that has seen nothing but -inf, anything finite will do.
  const auto shiftOf = [&](Value reference) {
    Value isEmpty = ir_.CreateFCmpOEQ(reference, infinity);
    return ir_.CreateFNeg(ir_.CreateFMul(ir_.CreateSelect(isEmpty, zero, reference), real(std::numbers::log2e)));
  };
  const auto power = [&](Value v, Value shift) { return core_.exp2(lanes_.fma(v, real(std::numbers::log2e), shift)); };

  // Scores are compared with an older maximum as long as weights stay small: few tiles fade what there is.
  llvm::BasicBlock* scored = ir_.GetInsertBlock();
  ir_.CreateCondBr(isAbove(tops, references), fade, weigh);
  ir_.SetInsertPoint(fade);
  std::vector<Value> faded;
  for (size_t r = 0; r < rows_.size(); ++r) faded.push_back(power(references[r], shiftOf(tops[r])));
  std::vector<std::pair<Value*, Value>> renewed;  // what changes, and to what
  for (size_t r = 0; r < rows_.size(); ++r) {
    renewed.emplace_back(&references[r], tops[r]);
    renewed.emplace_back(&totals[r], ir_.CreateFMul(totals[r], faded[r]));
    for (size_t n = 0; n < deep; ++n)
      for (size_t half = 0; half < 2; ++half) {
        Value& v = sums[r / 2][n][2 * (r % 2) + half];
        renewed.emplace_back(&v, ir_.CreateFMul(v, faded[r]));
      }
  }
  ir_.CreateBr(weigh);
  ir_.SetInsertPoint(weigh);
  for (auto& [value, made] : renewed) {
    llvm::PHINode* phi = ir_.CreatePHI(made->getType(), 2);
    phi->addIncoming(*value, scored);
    phi->addIncoming(made, fade);
    *value = phi;
  }
  std::vector<Value> shifts;
  for (Value reference : references) shifts.push_back(shiftOf(reference));
  // Column by column, so that products of the first go on beside exponentials of the next.
  for (size_t n = 0; n < blocks; n += 2) {
    for (size_t r = 0; r < rows_.size(); ++r)
      for (size_t at = n; at < n + 2; ++at)
        for (size_t half = 0; half < 2; ++half) {
          Value& v = element(r, at, half);
          v = power(v, shifts[r]);
          totals[r] = ir_.CreateFAdd(totals[r], v);
        }
    std::vector<Words> weights;
    for (size_t i = 0; i < rowTiles; ++i) {
      const Words &left = scores[i][n], &right = scores[i][n + 1];
      weights.push_back({core_.pack(left[0], left[1]), core_.pack(left[2], left[3]), core_.pack(right[0], right[1]),
                         core_.pack(right[2], right[3])});
    }
    accumulate(static_cast<int>(n) / 2, weights, sums, stage);
  }
  if (plan_.inGroups) finishGroup(sums);
  std::vector<Value> results{next, otherStage};
  results.insert(results.end(), references.begin(), references.end());
  results.insert(results.end(), totals.begin(), totals.end());
  for (auto& row : sums)
    for (Words& words : row) results.insert(results.end(), words.begin(), words.end());
  for (size_t i = 0; i < phis.size(); ++i) phis[i]->addIncoming(results[i], weigh);
  ir_.CreateCondBr(isLast, after, loop);
  ir_.SetInsertPoint(after);
  const auto leave = [&](Value result, Value none) {
    llvm::PHINode* phi = ir_.CreatePHI(ir_.getFloatTy(), 2);
    phi->addIncoming(none, before);
    phi->addIncoming(result, weigh);
    return phi;
  };
  for (auto& row : sums)
    for (Words& words : row)
      for (Value& v : words) v = leave(v, zero);
  for (Value& v : totals) v = leave(v, zero);
  for (Value& v : references) v = leave(v, infinity);
  core_.waitFor(0);  // a block does not end while something is on its way
  storeRows(sums, totals, references);
}

/// Emits `work` for threads for which `condition` holds; null: all.
void FlashEmitter::when(Value condition, const std::function<void()>& work) {
  if (!condition) return work();
  auto* inside = llvm::BasicBlock::Create(ir_.getContext(), "inside", function_);
  auto* done = llvm::BasicBlock::Create(ir_.getContext(), "stored", function_);
  ir_.CreateCondBr(condition, inside, done);
  ir_.SetInsertPoint(inside);
  work();
  ir_.CreateBr(done);
  ir_.SetInsertPoint(done);
}

void FlashEmitter::storeRows(const std::vector<std::vector<Words>>& sums, const std::vector<Value>& totals,
                             const std::vector<Value>& references) {
  const inductor::Statement& store = section_.body[2];
  const BufferSlot& slot = scope_.buffers.at(store.buffer);
  const int64_t fast = store.index.strideOf(how_.depth.symbol).value();
  bool inPairs = fast == 1 && slot.alignment % 4 == 0;
  for (const Axis& a : kernel_.outer) inPairs &= store.index.strideOf(a.symbol).value() % 2 == 0;
  Value quad = ir_.CreateMul(ir_.CreateAnd(lane_, number(3)), number(2));
  for (size_t r = 0; r < rows_.size(); ++r) {
    Value total = overQuad(totals[r], false);
    Value share = ir_.CreateFDiv(real(1), total);
    if (how_.safe) share = ir_.CreateSelect(ir_.CreateFCmpOEQ(total, real(0)), real(0), share);
    Value offset = addressOf(store.index, rows_[r].symbols);
    if (section_.body.size() > 3) {
      const inductor::Statement& sum = section_.body[3];
      Value isFirst = ir_.CreateICmpEQ(quad, number(0));
      when(rows_[r].isInside ? ir_.CreateAnd(isFirst, rows_[r].isInside) : isFirst, [&] {
        Value logarithm = ir_.CreateFMul(core_.log2(total), real(1 / std::numbers::log2e));
        Value address =
            ir_.CreateGEP(ir_.getFloatTy(), scope_.buffers.at(sum.buffer).base, addressOf(sum.index, rows_[r].symbols));
        ir_.CreateAlignedStore(ir_.CreateFAdd(references[r], logarithm), address, llvm::Align(4));
      });
    }
    when(rows_[r].isInside, [&] {
      for (int n = 0; n < plan_.depth / 8; ++n) {
        const Words& words = sums[r / 2][static_cast<size_t>(n)];
        Value pair =
            core_.pack(ir_.CreateFMul(words[2 * (r % 2)], share), ir_.CreateFMul(words[2 * (r % 2) + 1], share));
        Value column =
            ir_.CreateMul(wide(ir_.CreateAdd(quad, number(8 * n))), ir_.getInt64(static_cast<uint64_t>(fast)));
        Value address = ir_.CreateGEP(ir_.getInt16Ty(), slot.base, ir_.CreateAdd(offset, column));
        if (inPairs) {
          ir_.CreateAlignedStore(pair, address, llvm::Align(4));
          continue;
        }
        Value second = ir_.CreateConstGEP1_64(ir_.getInt16Ty(), address, static_cast<uint64_t>(fast));
        ir_.CreateAlignedStore(ir_.CreateTrunc(pair, ir_.getInt16Ty()), address, llvm::Align(2));
        ir_.CreateAlignedStore(ir_.CreateTrunc(ir_.CreateLShr(pair, number(16)), ir_.getInt16Ty()), second,
                               llvm::Align(2));
      }
    });
  }
}

void FlashEmitter::emit() {
  walk();
  ir_.CreateRetVoid();
}

}  // namespace fusebox::codegen::gpu
