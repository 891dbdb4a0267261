#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Target/TargetMachine.h>

#include <functional>
#include <string>

#include "engine/support/result.h"

namespace fusebox::codegen::cpu {

/// Runs `work`, turning LLVM's fatal errors on this thread into an Internal error instead of ending the process, and an exception
/// (an operation without code) into an Unsupported error.
Result<void> guardAgainstFatalErrors(const std::function<void()>& work);

/// Runs the passes with the analyses that LLVM's own pipelines use.
void runPasses(llvm::Module& module, llvm::TargetMachine& machine, llvm::ModulePassManager passes);

/// The cheap clean-up of the optimised tier: memory to registers, common subexpressions, loop invariants.
void optimiseModule(llvm::Module& module, llvm::TargetMachine& machine);

/// What the target's back end writes for the module: an object file or assembly text.
Result<llvm::SmallVector<char, 0>> emitFile(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type);

/// The module's text, with `plan` as comments above it.
std::string printedModule(const std::string& plan, const llvm::Module& module);

/// An ELF object of the module.
Result<llvm::SmallVector<char, 0>> emitObject(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace fusebox::codegen::cpu
