#include "engine/codegen/gpu/ptx.h"

#include <algorithm>

#include <fmt/format.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include "engine/codegen/cpu/kernel_check.h"
#include "engine/codegen/cpu/machine_code.h"
#include "engine/codegen/gpu/device_math.h"
#include "engine/codegen/gpu/flash/gradient_emitter.h"
#include "engine/codegen/gpu/kernel_emitter.h"
#include "engine/codegen/gpu/narrow.h"
#include "engine/codegen/gpu/target_machine.h"
#include "engine/support/clock.h"

namespace fusebox::codegen::gpu {
namespace {

/// Letters, digits and underscores only, as PTX wants names.
std::string entryName(const inductor::Kernel& kernel, size_t phase) {
  std::string name = fmt::format("{}_{:08x}", kernel.name, static_cast<uint32_t>(kernel.structuralHash()));
  if (phase > 0) name += fmt::format("_{}", phase);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return std::isdigit(static_cast<unsigned char>(name[0])) ? "k_" + name : name;
}

Result<std::string> writePtx(llvm::Module& module, llvm::TargetMachine& machine) {
  auto optimised = cpu::guardAgainstFatalErrors([&] {
    llvm::FunctionPassManager passes;
    passes.addPass(llvm::EarlyCSEPass(true));
    passes.addPass(llvm::InstCombinePass(llvm::InstCombineOptions().setVerifyFixpoint(false)));
    passes.addPass(llvm::SimplifyCFGPass());
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
    passes.addPass(llvm::EarlyCSEPass(true));
    llvm::ModulePassManager whole;
    whole.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
    whole.addPass(llvm::GlobalDCEPass());
    cpu::runPasses(module, machine, std::move(whole));
  });
  if (!optimised) return tl::unexpected(optimised.error());
  auto text = cpu::emitFile(module, machine, llvm::CodeGenFileType::AssemblyFile);
  if (!text) return tl::unexpected(text.error());
  return std::string(text->data(), text->size());
}

/// Says how many blocks make up a cluster: a directive of PTX that LLVM 19 does not write.
void requireCluster(std::string& text, const std::string& entry, int blocks) {
  const size_t at = text.find(".maxntid", text.find(".entry " + entry + "("));
  text.insert(at, fmt::format(".reqnctapercluster {}, 1, 1\n", blocks));
}

Result<void> checkOperations(const inductor::Kernel& kernel) {
  for (const auto& s : kernel.sections)
    for (const auto& v : s.values)
      if (!hasDeviceCode(v.op, v.type))
        return fail(ErrorCode::Unsupported, fmt::format("no GPU code for {} on {}", name(v.op), graph::name(v.type)),
                    kernel.name);
  return {};
}

/// Emits an attention kernel's launches, whose tiles lie in shared memory that the launch asks for; a text of their plans.
Result<std::string> emitAttention(const inductor::Kernel& kernel, const GpuTarget& target, bool aligned, llvm::Module& module,
                                  std::vector<PtxLaunch>& launches) {
  const cpu::TargetTraits traits = deviceTraits();
  std::string text;
  const auto add = [&](const auto& plan, int64_t blocks) {
    text += plan.str();
    launches.push_back({entryName(kernel, launches.size()), FlashPlan::kThreads, SizeFunction{inductor::SymExpr(blocks), {}}, plan.sharedBytes()});
    return launches.back().entry;
  };
  if (!kernel.attention->isGradient()) {
    auto plan = makeFlashPlan(kernel, target);
    if (!plan) return tl::unexpected(plan.error());
    FlashEmitter(kernel, *plan, module, traits, add(*plan, plan->places * plan->tiles()), aligned).emit();
  }
  const auto& stores = kernel.attention->stores;
  for (const bool ownsColumns : {false, true}) {
    if (ownsColumns ? stores[1] < 0 && stores[2] < 0 : stores[0] < 0) continue;
    auto plan = makeGradientPlan(kernel, target, ownsColumns);
    if (!plan) return tl::unexpected(plan.error());
    GradientEmitter(kernel, *plan, module, traits, add(*plan, plan->shape.places * plan->tiles()), aligned).emit();
  }
  defineDeviceMath(module, traits);
  return text;
}

Result<PtxKernel> compileAttention(const inductor::Kernel& kernel, const GpuTarget& target, bool aligned, bool keepIr, llvm::TargetMachine& machine) {
  llvm::LLVMContext context;
  llvm::Module module(kernel.name, context);
  module.setDataLayout(machine.createDataLayout());
  module.setTargetTriple(machine.getTargetTriple().str());
  PtxKernel made;
  Result<std::string> plans;
  auto emitted = cpu::guardAgainstFatalErrors([&] { plans = emitAttention(kernel, target, aligned, module, made.launches); });
  if (!emitted) return tl::unexpected(emitted.error());
  if (!plans) return tl::unexpected(plans.error());
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(module, &stream)) return fail(ErrorCode::Internal, "generated LLVM IR for the GPU is invalid: " + problem, kernel.name);
  if (keepIr) made.llvmIr = cpu::printedModule(*plans, module);
  auto text = writePtx(module, machine);
  if (!text) return tl::unexpected(text.error());
  made.text = std::move(*text);
  made.architecture = target.ptxArchitecture();
  for (const auto& buffer : kernel.buffers) made.bytesMoved += buffer.numel.constant() * graph::elementSize(buffer.dtype);
  return made;
}

}  // namespace

int64_t SizeFunction::operator()(const int64_t* sizes) const {
  if (expression->isConstant()) return expression->constant();
  return expression
      ->evaluate([&](inductor::Symbol s) -> std::optional<int64_t> {
        const auto place = std::find(symbols.begin(), symbols.end(), s);
        return place == symbols.end() ? std::nullopt : std::optional(sizes[place - symbols.begin()]);
      })
      .value_or(0);
}

Result<PtxKernel> compilePtx(inductor::Kernel kernel, const GpuTarget& target, bool aligned, bool keepIr, const LaunchShape& shape, bool isWide) {
  const int64_t start = nowNs();
  inductor::numberLines(kernel);
  if (auto ok = cpu::checkKernel(kernel); !ok) return tl::unexpected(ok.error());
  if (auto ok = checkOperations(kernel); !ok) return tl::unexpected(ok.error());
  auto machine = makeTargetMachine(target);
  if (!machine) return tl::unexpected(machine.error());
  if (kernel.attention) {
    auto made = compileAttention(kernel, target, aligned, keepIr, **machine);
    if (made) made->compileNs = nowNs() - start;
    return made;
  }
  PtxKernel made;
  if (auto narrow = aligned && !isWide ? narrowed(kernel) : std::nullopt) {
    kernel = std::move(narrow->kernel);
    made.least = std::move(narrow->least);
    made.most = std::move(narrow->most);
  }
  const Plan plan = makePlan(kernel, target, aligned, shape);
  const bool simple = plan.phases.size() == 1 && plan.after.empty() && !plan.phases[0].walks && plan.phases[0].map.cluster == 1 && plan.workBytes == inductor::SymExpr(0);
  if (kernel.isBatch && !simple) return fail(ErrorCode::Internal, "a batched kernel of several launches", kernel.name);
  const cpu::TargetTraits traits = deviceTraits();
  llvm::LLVMContext context;
  llvm::Module module(kernel.name, context);
  module.setDataLayout((*machine)->createDataLayout());
  module.setTargetTriple((*machine)->getTargetTriple().str());
  made.isBatch = kernel.isBatch;
  std::vector<std::pair<std::string, int>> clusters;  // entries whose blocks belong together, how many
  auto emitted = cpu::guardAgainstFatalErrors([&] {
    const auto emitPlan = [&](const Plan& part) {
      for (const Phase& phase : part.phases) {
        PtxLaunch launch;
        launch.entry = entryName(kernel, made.launches.size());
        launch.threads = phase.map.threads();
        if (phase.map.cluster > 1) clusters.emplace_back(launch.entry, phase.map.cluster);
        launch.blocks = {phase.blocks, part.kernel.sizeSymbols};
        KernelEmitter emitter(part, phase, module, traits, launch.entry, aligned);
        if (keepIr) emitter.keepLines();
        emitter.emit();
        made.launches.push_back(std::move(launch));
      }
    };
    emitPlan(plan);
    for (const Plan& behind : plan.after) emitPlan(behind);
    defineDeviceMath(module, traits);
  });
  if (!emitted) return tl::unexpected(emitted.error());
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(module, &stream))
    return fail(ErrorCode::Internal, "generated LLVM IR for the GPU is invalid: " + problem, kernel.name);
  if (keepIr) made.llvmIr = cpu::printedModule(plan.str(), module);
  auto text = writePtx(module, **machine);
  if (!text) return tl::unexpected(text.error());
  made.text = std::move(*text);
  for (const auto& [entry, blocks] : clusters) requireCluster(made.text, entry, blocks);
  made.architecture = target.ptxArchitecture();
  if (!(plan.workBytes == inductor::SymExpr(0)))
    made.workBytes = {plan.workBytes, plan.kernel.sizeSymbols};
  made.bytesMoved = plan.bytesMoved;
  made.compileNs = nowNs() - start;
  return made;
}

}  // namespace fusebox::codegen::gpu
