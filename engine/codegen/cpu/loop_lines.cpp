#include "engine/codegen/cpu/loop_lines.h"

#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/Module.h>

namespace fusebox::codegen::cpu {

void keepLines(llvm::Function& function, llvm::DICompileUnit::DebugEmissionKind kind) {
  llvm::Module& module = *function.getParent();
  const bool isFirst = module.debug_compile_units().empty();
  llvm::DICompileUnit* unit = isFirst ? nullptr : *module.debug_compile_units_begin();
  llvm::DIBuilder debug(module, true, unit);
  if (isFirst) {
    module.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
    unit = debug.createCompileUnit(llvm::dwarf::DW_LANG_C, debug.createFile("loop_ir", ""), "fusebox", /*isOptimized=*/true, "", 0, "", kind);
  }
  auto* type = debug.createSubroutineType(debug.getOrCreateTypeArray({}));
  function.setSubprogram(debug.createFunction(unit->getFile(), function.getName(), function.getName(), unit->getFile(), 1, type, 1, llvm::DINode::FlagZero,
                                              llvm::DISubprogram::SPFlagDefinition));
  debug.finalize();
}

AtLine::AtLine(llvm::IRBuilderBase& ir, int line) : ir_(ir), outer_(ir.getCurrentDebugLocation()) {
  llvm::DISubprogram* of = ir.GetInsertBlock()->getParent()->getSubprogram();
  if (of && line > 0) ir.SetCurrentDebugLocation(llvm::DILocation::get(ir.getContext(), static_cast<unsigned>(line), 0, of));
}

}  // namespace fusebox::codegen::cpu
