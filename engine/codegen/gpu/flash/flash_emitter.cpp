#include "engine/codegen/gpu/flash/flash_emitter.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace fusebox::codegen::gpu {
using inductor::Axis;
using inductor::Symbol;
using inductor::SymExpr;

namespace {

constexpr int kPiece = 8;  // elements of 16 bytes
constexpr int kPiecesOfBlock = FlashPlan::kBlock / kPiece;

/// Of a block of so many rows, in groups.
constexpr int blockBytes(int rows) { return rows * 2 * FlashPlan::kBlock; }

}  // namespace

FlashEmitter::FlashEmitter(const inductor::Kernel& kernel, const FlashPlan& plan, llvm::Module& module,
                           const cpu::TargetTraits& traits, const std::string& name, bool aligned)
    : kernel_(kernel),
      how_(*kernel.attention),
      section_(kernel.sections[0]),
      plan_(plan),
      module_(module),
      ir_(module.getContext()),
      traits_(traits),
      lanes_(ir_, traits_),
      core_(ir_, plan.isBf16),
      column_(section_.axes[0].symbol) {
  makeFunction(name);
  bindArguments(aligned);
  query_ = operandOf(section_.body[0].inputs[0], how_.width.symbol, places());
  key_ = operandOf(section_.body[0].inputs[1], how_.width.symbol, withColumn());
  value_ = operandOf(section_.body[1].inputs[1], how_.depth.symbol, withColumn());
  bindBlock();
}

FlashEmitter::FlashEmitter(const inductor::Kernel& kernel, const FlashPlan& plan, llvm::Module& module,
                           const cpu::TargetTraits& traits)
    : kernel_(kernel),
      how_(*kernel.attention),
      section_(kernel.sections[0]),
      plan_(plan),
      module_(module),
      ir_(module.getContext()),
      traits_(traits),
      lanes_(ir_, traits_),
      core_(ir_, plan.isBf16),
      column_(section_.axes[0].symbol) {}

void FlashEmitter::makeFunction(const std::string& name) {
  std::vector<llvm::Type*> types(kernel_.buffers.size(), ir_.getPtrTy(kGlobal));
  function_ = llvm::Function::Create(llvm::FunctionType::get(ir_.getVoidTy(), types, false),
                                     llvm::Function::ExternalLinkage, name, module_);
  function_->setCallingConv(llvm::CallingConv::PTX_Kernel);
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  auto* annotations = module_.getOrInsertNamedMetadata("nvvm.annotations");
  const auto annotate = [&](const char* key, int n) {
    annotations->addOperand(llvm::MDNode::get(
        ir_.getContext(), {llvm::ValueAsMetadata::get(function_), llvm::MDString::get(ir_.getContext(), key),
                           llvm::ConstantAsMetadata::get(ir_.getInt32(static_cast<uint32_t>(n)))}));
  };
  annotate("kernel", 1);
  annotate("maxntidx", FlashPlan::kThreads);
  ir_.SetInsertPoint(llvm::BasicBlock::Create(ir_.getContext(), "entry", function_));
  memory_ = module_.getNamedGlobal("tiles");  // all launches of a kernel share the name
  if (memory_) return;
  memory_ = new llvm::GlobalVariable(module_, llvm::ArrayType::get(ir_.getInt8Ty(), 0), false,
                                     llvm::GlobalValue::ExternalLinkage, nullptr, "tiles", nullptr,
                                     llvm::GlobalValue::NotThreadLocal, kShared);
  memory_->setAlignment(llvm::Align(plan_.inGroups ? 1024 : 16));
}

void FlashEmitter::bindArguments(bool aligned) {
  for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
    const inductor::KernelBuffer& b = kernel_.buffers[i];
    BufferSlot slot;
    slot.buffer = &b;
    slot.alignment = alignmentOf(b, aligned);
    slot.isInvariant = b.role == inductor::BufferRole::Input;
    slot.base = function_->getArg(static_cast<unsigned>(i));
    scope_.buffers[b.id] = slot;
  }
}

std::vector<Symbol> FlashEmitter::places() const {
  std::vector<Symbol> made;
  for (const Axis& a : kernel_.outer) made.push_back(a.symbol);
  return made;
}

std::vector<Symbol> FlashEmitter::withColumn() const {
  std::vector<Symbol> made = places();
  made.push_back(column_);
  return made;
}

FlashEmitter::Operand FlashEmitter::operandOf(inductor::ValueId id, Symbol fast, std::vector<Symbol> slow) const {
  const inductor::Value& load = loadBehind(section_, id);
  Operand made;
  made.slot = &scope_.buffers.at(load.buffer);
  made.index = load.index;
  made.fast = load.index.strideOf(fast).value();
  bool inPieces = made.fast == 1 && made.slot->alignment % 16 == 0;
  SymExpr rest = load.index - SymExpr(fast) * SymExpr(made.fast);
  for (Symbol s : slow) {
    const int64_t stride = load.index.strideOf(s).value();
    inPieces &= stride % kPiece == 0;
    rest = rest - SymExpr(s) * SymExpr(stride);
  }
  made.inPieces = inPieces && rest.constant() % kPiece == 0;
  return made;
}

SymbolValues FlashEmitter::rowSymbols(Value row) {
  SymbolValues made;
  const Axis& last = kernel_.outer.back();
  if (how_.sharing == 0) {
    made[last.symbol.id] = wide(row);
    return made;
  }
  const Axis& group = kernel_.outer[kernel_.outer.size() - 2];
  Value extent = number(last.extent.constant());
  made[group.symbol.id] = wide(ir_.CreateUDiv(row, extent));
  made[last.symbol.id] = wide(ir_.CreateURem(row, extent));
  return made;
}

FlashEmitter::Value FlashEmitter::bindPlace(int64_t tiles) {
  thread_ = ir_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {}, {});
  lane_ = ir_.CreateAnd(thread_, number(31));
  warp_ = ir_.CreateLShr(thread_, number(5));
  sharedBase_ = ir_.CreatePtrToInt(memory_, ir_.getInt32Ty());
  Value block = ir_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {}, {});
  Value place = ir_.CreateUDiv(block, number(tiles));
  const size_t inner = static_cast<size_t>(how_.sharing) + 1;
  for (size_t i = kernel_.outer.size() - inner; i-- > 0;) {
    const Axis& axis = kernel_.outer[i];
    Value extent = number(axis.extent.constant());
    scope_.symbols[axis.symbol.id] = wide(i > 0 ? ir_.CreateURem(place, extent) : place);
    place = ir_.CreateUDiv(place, extent);
  }
  return ir_.CreateURem(block, number(tiles));
}

void FlashEmitter::bindBlock() {
  // The last rows first: where scores are causal they have the most to do.
  const int64_t tiles = plan_.tiles();
  Value tile = ir_.CreateSub(number(tiles - 1), bindPlace(tiles));
  firstRow_ = ir_.CreateMul(tile, number(plan_.rowsOfTile()));
  for (int i = 0; i < 2 * plan_.rowTiles; ++i) {
    Row row;
    const int ofWarp = plan_.inGroups ? 16 : 16 * plan_.rowTiles, ofTile = plan_.inGroups ? 16 * FlashPlan::kWarps : 16;
    Value within = ir_.CreateAdd(ir_.CreateMul(warp_, number(ofWarp)), ir_.CreateLShr(lane_, number(2)));
    row.number = ir_.CreateAdd(firstRow_, ir_.CreateAdd(within, number(ofTile * (i / 2) + 8 * (i % 2))));
    if (plan_.rows % plan_.rowsOfTile() != 0) {
      row.isInside = ir_.CreateICmpULT(row.number, number(plan_.rows));
      row.number = ir_.CreateSelect(row.isInside, row.number, number(plan_.rows - 1));
    }
    row.symbols = rowSymbols(row.number);
    rows_.push_back(std::move(row));
  }
}

FlashEmitter::Value FlashEmitter::addressOf(const SymExpr& index, const SymbolValues& symbols) {
  return cpu::IndexEmitter(lanes_,
                           [&](Symbol s) -> Value {
                             if (const auto own = symbols.find(s.id); own != symbols.end()) return own->second;
                             const auto known = scope_.symbols.find(s.id);
                             return known != scope_.symbols.end() ? known->second : ir_.getInt64(0);
                           })
      .scalar(index);
}

FlashEmitter::Value FlashEmitter::shared(int place, Value offset) {
  return ir_.CreateAdd(sharedBase_, ir_.CreateAdd(offset, number(place)));
}

void FlashEmitter::copyTile(const Operand& operand, Value first, int64_t limit, int count, int extent, int inMemory,
                            int pitch, int place, bool isQuery, Value shift) {
  const int perRow = inMemory / kPiece, total = count * perRow;
  for (int at = 0; at < total; at += FlashPlan::kThreads) {
    Value piece = ir_.CreateAdd(thread_, number(at));
    llvm::BasicBlock* rest = nullptr;
    if (total - at < FlashPlan::kThreads) {
      auto* some = llvm::BasicBlock::Create(ir_.getContext(), "some", function_);
      rest = llvm::BasicBlock::Create(ir_.getContext(), "rest", function_);
      ir_.CreateCondBr(ir_.CreateICmpULT(piece, number(total)), some, rest);
      ir_.SetInsertPoint(some);
    }
    copyPiece(operand, first, limit, count, extent, perRow, pitch, place, isQuery, shift, piece);
    if (!rest) continue;
    ir_.CreateBr(rest);
    ir_.SetInsertPoint(rest);
  }
}

void FlashEmitter::copyPiece(const Operand& operand, Value first, int64_t limit, int count, int extent, int perRow,
                             int pitch, int place, bool isQuery, Value shift, Value piece) {
  Value row = ir_.CreateUDiv(piece, number(perRow)), part = ir_.CreateURem(piece, number(perRow));
  Value source = ir_.CreateAdd(first, row);
  Value isInside = nullptr;
  const auto require = [&](Value condition) { isInside = isInside ? ir_.CreateAnd(isInside, condition) : condition; };
  if (limit % count != 0) {
    Value within = ir_.CreateICmpULT(source, number(limit));
    require(within);
    source = ir_.CreateSelect(within, source, number(limit - 1));
  }
  if (perRow * kPiece != extent) {
    Value within = ir_.CreateICmpULT(part, number(extent / kPiece));
    require(within);
    part = ir_.CreateSelect(within, part, number(0));
  }
  SymbolValues symbols = isQuery ? rowSymbols(source) : SymbolValues{{column_.id, wide(source)}};
  Value offset = addressOf(operand.index, symbols);
  offset = ir_.CreateAdd(offset, ir_.CreateMul(wide(part), ir_.getInt64(static_cast<uint64_t>(kPiece * operand.fast))));
  Value address = ir_.CreateGEP(ir_.getInt16Ty(), operand.slot->base, offset);
  Value column = ir_.CreateURem(piece, number(perRow)), at = ir_.CreateMul(row, number(pitch));
  if (plan_.inGroups) {
    Value block = ir_.CreateUDiv(column, number(kPiecesOfBlock));
    at = ir_.CreateAdd(ir_.CreateMul(block, number(blockBytes(count))), ir_.CreateMul(row, number(2 * FlashPlan::kBlock)));
    column = ir_.CreateXor(ir_.CreateURem(column, number(kPiecesOfBlock)), ir_.CreateAnd(row, number(kPiecesOfBlock - 1)));
  }
  Value to = shared(place, ir_.CreateAdd(at, ir_.CreateMul(column, number(2 * kPiece))));
  if (shift) to = ir_.CreateAdd(to, shift);
  if (operand.inPieces) {
    core_.copy(to, ir_.CreatePtrToInt(address, ir_.getInt64Ty()),
               isInside ? ir_.CreateSelect(isInside, number(16), number(0)) : number(16));
    return;
  }
  Words words{};
  Value zero = ir_.getInt16(0);
  for (int w = 0; w < 4; ++w) {
    Value halves[2];
    for (int h = 0; h < 2; ++h) {
      Value element =
          ir_.CreateConstGEP1_64(ir_.getInt16Ty(), address, static_cast<uint64_t>((2 * w + h) * operand.fast));
      llvm::LoadInst* load = ir_.CreateAlignedLoad(ir_.getInt16Ty(), element, llvm::Align(2));
      load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(ir_.getContext(), {}));
      halves[h] = ir_.CreateZExt(isInside ? ir_.CreateSelect(isInside, load, zero) : load, ir_.getInt32Ty());
    }
    words[static_cast<size_t>(w)] = ir_.CreateOr(halves[0], ir_.CreateShl(halves[1], number(16)));
  }
  core_.store(to, words);
}

/// The query's part of one step of 16 along the width, for each tile of rows.
std::vector<std::vector<FlashEmitter::Words>> FlashEmitter::loadQuery(int step, int steps) {
  std::vector<std::vector<Words>> made(static_cast<size_t>(plan_.rowTiles));
  Value row = ir_.CreateAdd(ir_.CreateMul(warp_, number(16 * plan_.rowTiles)), ir_.CreateAnd(lane_, number(15)));
  Value base = ir_.CreateAdd(ir_.CreateMul(row, number(plan_.widthPitch())),
                             ir_.CreateMul(ir_.CreateLShr(lane_, number(4)), number(16)));
  for (int i = 0; i < plan_.rowTiles; ++i)
    for (int k = step; k < step + steps; ++k)
      made[static_cast<size_t>(i)].push_back(
          core_.loadMatrices(shared(i * 16 * plan_.widthPitch() + 32 * k, base), false));
  return made;
}

std::vector<FlashEmitter::Value> FlashEmitter::asValues(const std::vector<Words>& words) {
  std::vector<Value> made;
  for (const Words& w : words) made.insert(made.end(), w.begin(), w.end());
  return made;
}

std::vector<FlashEmitter::Words> FlashEmitter::asWords(const std::vector<Value>& values) {
  std::vector<Words> made(values.size() / 4);
  for (size_t i = 0; i < values.size(); ++i) made[i / 4][i % 4] = values[i];
  return made;
}

void FlashEmitter::finishGroup(std::vector<std::vector<Words>>& sums) {
  std::vector<Value> all;
  for (const auto& row : sums) {
    const std::vector<Value> own = asValues(row);
    all.insert(all.end(), own.begin(), own.end());
  }
  core_.finishGroup(all);
  const auto each = static_cast<std::ptrdiff_t>(all.size() / sums.size());
  for (size_t i = 0; i < sums.size(); ++i) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(i) * each;
    sums[i] = asWords({begin, begin + each});
  }
}

std::vector<std::vector<FlashEmitter::Words>> FlashEmitter::productsInGroup(Value stage) {
  constexpr int kSteps = FlashPlan::kBlock / 16;  // of a block
  std::vector<std::vector<Words>> made;
  core_.beginGroup();
  for (int i = 0; i < plan_.rowTiles; ++i) {
    std::vector<Value> sums;
    for (int k = 0; k < plan_.width / 16; ++k) {
      const auto place = [&](int first, int rows) {
        return first + k / kSteps * blockBytes(rows) + k % kSteps * 2 * 16;
      };
      Value query = core_.descriptor(shared(place(i * blockBytes(16 * FlashPlan::kWarps), plan_.rowsOfTile()), number(0)), 16);
      Value key = core_.descriptor(shared(place(plan_.keysAt(), plan_.columnsOfTile), stage), 16);
      sums = core_.multiplyInGroup({query}, key, false, sums, plan_.columnsOfTile);
    }
    made.push_back(asWords(sums));
  }
  core_.commitGroup();
  finishGroup(made);
  return made;
}

/// query @ key of a tile: [tile of rows][8 columns].
std::vector<std::vector<FlashEmitter::Words>> FlashEmitter::products(const std::vector<std::vector<Words>>& query, Value stage) {
  if (plan_.inGroups) return productsInGroup(stage);
  const int pairs = plan_.columnsOfTile / 16, steps = plan_.widthInMemory() / 16;
  Value zero = real(0);
  std::vector<std::vector<Words>> sums(
      static_cast<size_t>(plan_.rowTiles),
      std::vector<Words>(static_cast<size_t>(2 * pairs), Words{zero, zero, zero, zero}));
  // Rows of the matrices are columns of the scores: eight, the same eight further along the width, and the next eight.
  Value row =
      ir_.CreateAdd(ir_.CreateAnd(lane_, number(7)), ir_.CreateMul(ir_.CreateLShr(lane_, number(4)), number(8)));
  Value base = ir_.CreateAdd(ir_.CreateMul(row, number(plan_.widthPitch())),
                             ir_.CreateMul(ir_.CreateAnd(ir_.CreateLShr(lane_, number(3)), number(1)), number(16)));
  base = ir_.CreateAdd(base, stage);
  for (int k = 0; k < steps; ++k) {
    const auto here = plan_.queryInRegisters ? std::vector<std::vector<Words>>() : loadQuery(k, 1);
    for (int n = 0; n < pairs; ++n) {
      const Words b = core_.loadMatrices(shared(plan_.keysAt() + n * 16 * plan_.widthPitch() + 32 * k, base), false);
      for (int i = 0; i < plan_.rowTiles; ++i) {
        const auto row = static_cast<size_t>(i);
        const Words& a = plan_.queryInRegisters ? query[row][static_cast<size_t>(k)] : here[row][0];
        for (int half = 0; half < 2; ++half) {
          Words& c = sums[row][static_cast<size_t>(2 * n + half)];
          c = core_.multiply(a, b[static_cast<size_t>(2 * half)], b[static_cast<size_t>(2 * half + 1)], c);
        }
      }
    }
  }
  return sums;
}

void FlashEmitter::accumulate(int step, const std::vector<Words>& weights, std::vector<std::vector<Words>>& sums,
                              Value stage) {
  if (plan_.inGroups) {
    const int block = blockBytes(plan_.columnsOfTile);
    Value values = core_.descriptor(shared(plan_.valuesAt() + step * blockBytes(16), stage), block);
    core_.beginGroup();
    for (size_t i = 0; i < sums.size(); ++i) {
      const std::vector<Value> a(weights[i].begin(), weights[i].end());
      sums[i] = asWords(core_.multiplyInGroup(a, values, true, asValues(sums[i]), plan_.depth));
    }
    core_.commitGroup();
    return;
  }
  Value base = ir_.CreateAdd(ir_.CreateMul(ir_.CreateAnd(lane_, number(15)), number(plan_.depthPitch())),
                             ir_.CreateMul(ir_.CreateLShr(lane_, number(4)), number(16)));
  base = ir_.CreateAdd(base, stage);
  for (int n = 0; n < plan_.depthInMemory() / 16; ++n) {
    const Words b = core_.loadMatrices(shared(plan_.valuesAt() + step * 16 * plan_.depthPitch() + 32 * n, base), true);
    for (size_t i = 0; i < sums.size(); ++i)
      for (size_t half = 0; half < 2; ++half) {
        Words& c = sums[i][2 * static_cast<size_t>(n) + half];
        c = core_.multiply(weights[i], b[2 * half], b[2 * half + 1], c);
      }
  }
}

void FlashEmitter::score(std::vector<std::vector<Words>>& products, Value first) {
  const int blocks = plan_.columnsOfTile / 8;
  const bool isWhole = plan_.columns % plan_.columnsOfTile == 0, inPairs = plan_.columns % 2 == 0;
  Instances set;
  set.vector = inPairs ? 2 : 1;
  set.unroll = static_cast<int>(rows_.size()) * blocks * (inPairs ? 1 : 2);
  set.axis = inPairs ? &column_ : nullptr;
  set.ownReduced = true;
  std::vector<Value> columns;  // i32, of each block and neighbour
  Value own = ir_.CreateAdd(first, ir_.CreateMul(ir_.CreateAnd(lane_, number(3)), number(2)));
  for (int n = 0; n < blocks; ++n)
    for (int half = 0; half < 2; ++half) columns.push_back(ir_.CreateAdd(own, number(8 * n + half)));
  const auto inside = [&](Value column, int64_t step) {
    return isWhole ? column : ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, column, number(plan_.columns - step));
  };
  for (const Row& row : rows_)
    for (int n = 0; n < blocks; ++n)
      for (int half = 0; half < (inPairs ? 1 : 2); ++half) {
        SymbolValues symbols = row.symbols;
        symbols[column_.id] = wide(inside(columns[static_cast<size_t>(2 * n + half)], inPairs ? 2 : 1));
        set.symbols.push_back(std::move(symbols));
        set.active.push_back(nullptr);
      }
  const auto elementOf = [&](size_t row, int n, int half) -> Value& {
    return products[row / 2][static_cast<size_t>(n)][2 * (row % 2) + static_cast<size_t>(half)];
  };
  const std::vector<std::vector<Words>> made = products;
  BodyEmitter body(lanes_, scope_, section_, set);
  body.contracts = true;
  const auto placeOf = [&](int group, int neighbour) {
    const int each = inPairs ? 1 : 2, half = inPairs ? neighbour : group % 2;
    return std::array<int, 3>{group / each / blocks, group / each % blocks, half};
  };
  body.onReduced = [&](int, int group, int neighbour) {
    const auto [row, n, half] = placeOf(group, neighbour);
    return made[static_cast<size_t>(row / 2)][static_cast<size_t>(n)][static_cast<size_t>(2 * (row % 2) + half)];
  };
  const inductor::ValueId id = section_.body[1].inputs[0];
  for (int group = 0; group < set.unroll; ++group)
    for (int neighbour = 0; neighbour < set.vector; ++neighbour) {
      const auto [row, n, half] = placeOf(group, neighbour);
      Value s = body.value(id, group, neighbour);
      if (!isWhole) {
        Value within = ir_.CreateICmpULT(columns[static_cast<size_t>(2 * n + half)], number(plan_.columns));
        s = ir_.CreateSelect(within, s, real(-std::numeric_limits<double>::infinity()));
      }
      elementOf(static_cast<size_t>(row), n, half) = s;
    }
}

}  // namespace fusebox::codegen::gpu
