#pragma once

#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>

/// Which line of the loop IR's text an instruction carries out, as the debug information of generated code.
namespace fusebox::codegen::cpu {

/// Gives `function` a table of lines; what is emitted into functions without one has none.
void keepLines(llvm::Function& function, llvm::DICompileUnit::DebugEmissionKind kind);

/// While it lives, what `ir` emits into a function that keepLines() was called for belongs to `line`; 0: to that around it.
class AtLine {
 public:
  AtLine(llvm::IRBuilderBase& ir, int line);
  ~AtLine() { ir_.SetCurrentDebugLocation(outer_); }
  AtLine(const AtLine&) = delete;

 private:
  llvm::IRBuilderBase& ir_;
  llvm::DebugLoc outer_;
};

}  // namespace fusebox::codegen::cpu
