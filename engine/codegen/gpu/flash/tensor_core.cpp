#include "engine/codegen/gpu/flash/tensor_core.h"

#include <llvm/IR/InlineAsm.h>

namespace fusebox::codegen::gpu {
using llvm::Value;

Value* TensorCore::assemble(llvm::Type* result, const std::string& text, const std::string& constraints,
                            const std::vector<Value*>& operands, bool hasEffects) {
  std::vector<llvm::Type*> types;
  for (Value* v : operands) types.push_back(v->getType());
  auto* type = llvm::FunctionType::get(result, types, false);
  llvm::CallInst* call = ir_.CreateCall(
      llvm::InlineAsm::get(
          type, text, constraints + (hasEffects ? (constraints.empty() ? "~{memory}" : ",~{memory}") : ""), hasEffects),
      operands);
  call->addFnAttr(llvm::Attribute::NoUnwind);
  call->addFnAttr(llvm::Attribute::WillReturn);
  call->addFnAttr(llvm::Attribute::Convergent);
  return call;
}

std::array<Value*, 4> TensorCore::loadMatrices(Value* address, bool transposed) {
  auto* i32 = ir_.getInt32Ty();
  Value* all = assemble(llvm::StructType::get(i32, i32, i32, i32),
                        std::string("ldmatrix.sync.aligned.m8n8.x4") + (transposed ? ".trans" : "") +
                            ".shared.b16 {$0, $1, $2, $3}, [$4];",
                        "=r,=r,=r,=r,r", {address}, true);
  std::array<Value*, 4> out{};
  for (unsigned i = 0; i < 4; ++i) out[i] = ir_.CreateExtractValue(all, i);
  return out;
}

std::array<Value*, 4> TensorCore::multiply(const std::array<Value*, 4>& a, Value* b0, Value* b1,
                                           const std::array<Value*, 4>& c) {
  auto* f32 = ir_.getFloatTy();
  const std::string type = isBf16_ ? "bf16" : "f16";
  Value* all =
      assemble(llvm::StructType::get(f32, f32, f32, f32),
               "mma.sync.aligned.m16n8k16.row.col.f32." + type + "." + type +
                   ".f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};",
               "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f", {a[0], a[1], a[2], a[3], b0, b1, c[0], c[1], c[2], c[3]}, false);
  std::array<Value*, 4> out{};
  for (unsigned i = 0; i < 4; ++i) out[i] = ir_.CreateExtractValue(all, i);
  return out;
}

Value* TensorCore::descriptor(Value* address, int block) {
  // Bits 0-13: address / 16; 16-29: from block to block; 32-45: from eight rows to the next eight; 62-63: swizzled by 128 bytes.
  constexpr uint64_t kEightRows = 1024 / 16, kSwizzled = uint64_t{1} << 62;
  const uint64_t layout = (static_cast<uint64_t>(block / 16) << 16) | (kEightRows << 32) | kSwizzled;
  Value* start = ir_.CreateAnd(ir_.CreateLShr(address, 4), ir_.getInt32(0x3FFF));
  return ir_.CreateOr(ir_.CreateZExt(start, ir_.getInt64Ty()), ir_.getInt64(layout));
}

std::vector<Value*> TensorCore::multiplyInGroup(const std::vector<Value*>& a, Value* b, bool transposed, const std::vector<Value*>& c,
                                                int columns) {
  const auto count = static_cast<size_t>(columns) / 2;
  const std::string type = isBf16_ ? "bf16" : "f16";
  const bool inRegisters = a.size() > 1;
  std::string constraints, sums;
  std::vector<llvm::Type*> types(count, ir_.getFloatTy());
  for (size_t i = 0; i < count; ++i) {
    constraints += i ? ",=f" : "=f";
    sums += (i ? ", $" : "$") + std::to_string(i);
  }
  std::vector<Value*> operands = c;
  for (size_t i = 0; i < c.size(); ++i) constraints += "," + std::to_string(i);
  std::string first;
  for (Value* v : a) {
    first += (first.empty() ? "$" : ", $") + std::to_string(count + operands.size());
    constraints += inRegisters ? ",r" : ",l";
    operands.push_back(v);
  }
  if (inRegisters) first = "{" + first + "}";
  const std::string second = "$" + std::to_string(count + operands.size());
  constraints += ",l";
  operands.push_back(b);
  const std::string text = "{ .reg .pred p; setp.ne.b32 p, " + std::string(c.empty() ? "0" : "1") + ", 0; wgmma.mma_async.sync.aligned.m64n" +
                           std::to_string(columns) + "k16.f32." + type + "." + type + " {" + sums + "}, " + first + ", " + second + ", p, 1, 1" +
                           (inRegisters ? "" : ", 0") + (transposed ? ", 1" : ", 0") + "; }";
  Value* all = assemble(llvm::StructType::get(ir_.getContext(), types), text, constraints, operands, true);
  std::vector<Value*> made;
  for (unsigned i = 0; i < count; ++i) made.push_back(ir_.CreateExtractValue(all, i));
  return made;
}

void TensorCore::beginGroup() { assemble(ir_.getVoidTy(), "wgmma.fence.sync.aligned;", "", {}, true); }
void TensorCore::commitGroup() { assemble(ir_.getVoidTy(), "wgmma.commit_group.sync.aligned;", "", {}, true); }

void TensorCore::finishGroup(std::vector<Value*>& values) {
  std::string constraints;
  std::vector<llvm::Type*> types;
  for (Value* v : values) {
    constraints += types.empty() ? "=f" : ",=f";
    types.push_back(v->getType());
  }
  for (size_t i = 0; i < values.size(); ++i) constraints += "," + std::to_string(i);
  Value* all = assemble(llvm::StructType::get(ir_.getContext(), types), "wgmma.wait_group.sync.aligned 0;", constraints, values, true);
  for (unsigned i = 0; i < values.size(); ++i) values[i] = ir_.CreateExtractValue(all, i);
}

void TensorCore::showToGroups() { assemble(ir_.getVoidTy(), "fence.proxy.async.shared::cta;", "", {}, true); }

Value* TensorCore::pack(Value* low, Value* high) {
  return assemble(ir_.getInt32Ty(), std::string("cvt.rn.") + (isBf16_ ? "bf16x2" : "f16x2") + ".f32 $0, $1, $2;",
                  "=r,f,f", {high, low}, false);
}

Value* TensorCore::exp2(Value* x) {
  return assemble(ir_.getFloatTy(), "ex2.approx.ftz.f32 $0, $1;", "=f,f", {x}, false);
}

Value* TensorCore::log2(Value* x) { return assemble(ir_.getFloatTy(), "lg2.approx.f32 $0, $1;", "=f,f", {x}, false); }

Value* TensorCore::fromLane(Value* v, int offset) {
  return assemble(v->getType(), "shfl.sync.bfly.b32 $0, $1, " + std::to_string(offset) + ", 31, -1;",
                  v->getType()->isFloatTy() ? "=f,f" : "=r,r", {v}, true);
}

void TensorCore::copy(Value* to, Value* source, Value* bytes) {
  assemble(ir_.getVoidTy(), "cp.async.cg.shared.global [$0], [$1], 16, $2;", "r,l,r", {to, source, bytes}, true);
}

void TensorCore::commit() { assemble(ir_.getVoidTy(), "cp.async.commit_group;", "", {}, true); }
void TensorCore::waitFor(int left) {
  assemble(ir_.getVoidTy(), "cp.async.wait_group " + std::to_string(left) + ";", "", {}, true);
}
void TensorCore::barrier() { assemble(ir_.getVoidTy(), "bar.sync 0;", "", {}, true); }

void TensorCore::store(Value* to, const std::array<Value*, 4>& words) {
  assemble(ir_.getVoidTy(), "st.shared.v4.b32 [$0], {$1, $2, $3, $4};", "r,r,r,r,r",
           {to, words[0], words[1], words[2], words[3]}, true);
}

}  // namespace fusebox::codegen::gpu
