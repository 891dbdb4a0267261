#include "engine/codegen/cpu/target.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/SubtargetFeature.h>

#include <mutex>

namespace fusebox::codegen::cpu {
namespace {

void initialiseTargets() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
    llvm::InitializeNativeTargetDisassembler();
  });
}

struct NamedTarget {
  const char* name;
  const char* cpu;
  int vectorBits;
};
constexpr NamedTarget kTargets[] = {{"avx512", "skylake-avx512", 512}, {"avx2", "haswell", 256}, {"baseline", "x86-64", 128}};

TargetFeatures hostTarget() {
  TargetFeatures host;
  host.cpu = llvm::sys::getHostCPUName().str();
  llvm::SubtargetFeatures features;
  const auto map = llvm::sys::getHostCPUFeatures();
  for (const auto& entry : map) features.AddFeature(entry.first(), entry.second);
  host.features = features.getString();
  auto has = [&](const char* f) { return map.lookup(f); };
  const bool wide = has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl");
  host.vectorBits = wide ? 512 : has("avx2") && has("fma") ? 256 : 128;
  return host;
}

}  // namespace

Result<TargetFeatures> TargetFeatures::named(const std::string& name) {
  initialiseTargets();
  if (name == "host") return hostTarget();
  for (const NamedTarget& t : kTargets)
    if (name == t.name) return TargetFeatures{t.cpu, "", t.vectorBits};
  return fail(ErrorCode::InvalidArgument, "unknown CPU target, expected host, avx512, avx2 or baseline", name);
}

Result<std::unique_ptr<llvm::TargetMachine>> makeTargetMachine(const TargetFeatures& target, bool optimise) {
  initialiseTargets();
  const std::string triple = llvm::sys::getProcessTriple();
  std::string error;
  const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend) return fail(ErrorCode::Unsupported, "no LLVM back end for this machine: " + error, triple);
  llvm::TargetOptions options;
  std::unique_ptr<llvm::TargetMachine> machine(backend->createTargetMachine(
      triple, target.cpu, target.features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
      optimise ? llvm::CodeGenOptLevel::Default : llvm::CodeGenOptLevel::None, /*JIT=*/true));
  if (!machine) return fail(ErrorCode::Unsupported, "LLVM cannot generate code for this target", target.cpu);
  return machine;
}

TargetTraits traitsOf(const TargetFeatures& target, const llvm::TargetMachine& machine) {
  const llvm::MCSubtargetInfo& sub = *machine.getMCSubtargetInfo();
  TargetTraits traits;
  traits.vectorBits = target.vectorBits;
  traits.avx512 = sub.checkFeatures("+avx512f") && sub.checkFeatures("+avx512bw") && sub.checkFeatures("+avx512dq") &&
                  sub.checkFeatures("+avx512vl") && target.vectorBits == 512;
  traits.maskedMemory = traits.avx512;
  traits.fma = sub.checkFeatures("+fma");
  traits.f16c = sub.checkFeatures("+f16c");
  return traits;
}

}  // namespace fusebox::codegen::cpu
