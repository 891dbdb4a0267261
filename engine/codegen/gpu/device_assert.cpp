#include "engine/codegen/gpu/device_assert.h"

#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

namespace fusebox::codegen::gpu {
using llvm::Value;

namespace {

const char* messageOf(inductor::Fault fault) {
  switch (fault) {
    case inductor::Fault::Index:
      return "index is out of bounds for the dimension it indexes";
    case inductor::Fault::Lookup:
      return "index out of range in self";
    case inductor::Fault::Gather:
      return "index is out of bounds for the dimension that is gathered from";
    default:
      return "invalid data";
  }
}

Value* text(llvm::IRBuilder<>& ir, const char* content) {
  llvm::Module& module = *ir.GetInsertBlock()->getModule();
  llvm::Constant* bytes = llvm::ConstantDataArray::getString(ir.getContext(), content);
  auto* global = new llvm::GlobalVariable(module, bytes->getType(), true, llvm::GlobalValue::PrivateLinkage, bytes,
                                          "text", nullptr, llvm::GlobalValue::NotThreadLocal, 1);
  return ir.CreateAddrSpaceCast(global, ir.getPtrTy());
}

}  // namespace

void emitAssertion(llvm::IRBuilder<>& ir, Value* bad, inductor::Fault fault) {
  llvm::Function* function = ir.GetInsertBlock()->getParent();
  auto* failed = llvm::BasicBlock::Create(ir.getContext(), "assert", function);
  auto* fine = llvm::BasicBlock::Create(ir.getContext(), "checked", function);
  ir.CreateCondBr(bad, failed, fine, llvm::MDBuilder(ir.getContext()).createBranchWeights(1, 1 << 20));
  ir.SetInsertPoint(failed);
  auto* pointer = ir.getPtrTy();
  // void __assertfail(message, file, line, function, size of a character)
  auto* type =
      llvm::FunctionType::get(ir.getVoidTy(), {pointer, pointer, ir.getInt32Ty(), pointer, ir.getInt64Ty()}, false);
  const auto callee = function->getParent()->getOrInsertFunction("__assertfail", type);
  ir.CreateCall(callee, {text(ir, messageOf(fault)), text(ir, "compiled by fusebox"), ir.getInt32(0),
                         text(ir, function->getName().str().c_str()), ir.getInt64(1)});
  // Execution does not come back, but a branch keeps the threads of a warp together for those that go on.
  ir.CreateBr(fine);
  ir.SetInsertPoint(fine);
}

}  // namespace fusebox::codegen::gpu
