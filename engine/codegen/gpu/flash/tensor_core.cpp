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
