#include "engine/codegen/cpu/machine_code.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>

#include <csetjmp>
#include <exception>
#include <mutex>

namespace fusebox::codegen::cpu {
namespace {

/// Where this thread's fatal errors go. LLVM's state of the failed compilation is abandoned (leaked), which is safe because every
/// compilation has a context of its own, and a target machine that is never used again.
thread_local std::jmp_buf* fatalTarget = nullptr;
thread_local char fatalMessage[512];

void onFatalError(void*, const char* reason, bool) {
  if (!fatalTarget) return;  // not ours: let LLVM end the process
  std::snprintf(fatalMessage, sizeof fatalMessage, "%s", reason);
  std::longjmp(*fatalTarget, 1);
}

}  // namespace

Result<void> guardAgainstFatalErrors(const std::function<void()>& work) {
  static std::once_flag once;
  std::call_once(once, [] { llvm::install_fatal_error_handler(onFatalError, nullptr); });
  std::jmp_buf target;
  std::jmp_buf* outer = fatalTarget;
  fatalTarget = &target;
  if (setjmp(target) != 0) {
    fatalTarget = outer;
    return fail(ErrorCode::Internal, "LLVM gave up", fatalMessage);
  }
  try {
    work();
  } catch (const std::exception& e) {
    fatalTarget = outer;
    return fail(ErrorCode::Unsupported, "cannot generate code", e.what());
  }
  fatalTarget = outer;
  return {};
}

void runPasses(llvm::Module& module, llvm::TargetMachine& machine, llvm::ModulePassManager passes) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  functions.registerPass([&] { return machine.getTargetIRAnalysis(); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  passes.run(module, modules);
}

void optimiseModule(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::InstCombinePass(llvm::InstCombineOptions().setVerifyFixpoint(false)));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
  passes.addPass(llvm::EarlyCSEPass());
  llvm::ModulePassManager whole;
  whole.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
  runPasses(module, machine, std::move(whole));
}

Result<llvm::SmallVector<char, 0>> emitFile(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> out;
  bool refused = false;
  auto done = guardAgainstFatalErrors([&] {
    llvm::raw_svector_ostream stream(out);
    llvm::legacy::PassManager passes;
    refused = machine.addPassesToEmitFile(passes, stream, nullptr, type);
    if (!refused) passes.run(module);
  });
  if (!done) return tl::unexpected(done.error());
  if (refused) return fail(ErrorCode::Internal, "this target cannot write the kind of file asked for");
  return out;
}

Result<llvm::SmallVector<char, 0>> emitObject(llvm::Module& module, llvm::TargetMachine& machine) {
  return emitFile(module, machine, llvm::CodeGenFileType::ObjectFile);
}

std::string printedModule(const std::string& plan, const llvm::Module& module) {
  std::string text = "; ";
  for (char c : plan) c == '\n' ? text.append("\n; ") : text.append(1, c);
  text += "\n";
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

}  // namespace fusebox::codegen::cpu
