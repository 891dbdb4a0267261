#include "engine/codegen/gpu/target_machine.h"

#include <llvm/MC/TargetRegistry.h>

#include <array>
#include <mutex>

extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace fusebox::codegen::gpu {
namespace {

constexpr const char* kTriple = "nvptx64-nvidia-cuda";
constexpr std::array kArchitectures = {70, 72, 75, 80, 86, 87, 89, 90};  // that LLVM 19 and the PTX below know

void initialiseTarget() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
}

}  // namespace

int GpuTarget::sharedMemory() const {
  // CUDA C++ programming guide, table of technical specifications by compute capability.
  constexpr int kKiB = 1024;
  if (capability < 75) return 96 * kKiB;
  if (capability < 80) return 64 * kKiB;
  if (capability == 80 || capability == 87) return 164 * kKiB;
  if (capability < 90 || capability >= 120) return 100 * kKiB;
  return 228 * kKiB;
}

std::string GpuTarget::ptxArchitecture() const {
  int best = kOldestCapability;
  for (int a : kArchitectures)
    if (a <= capability) best = a;
  return "sm_" + std::to_string(best) + (hasWarpGroups() ? "a" : "");
}

Result<std::unique_ptr<llvm::TargetMachine>> makeTargetMachine(const GpuTarget& target) {
  if (target.capability < kOldestCapability)
    return fail(ErrorCode::Unsupported, "GPUs older than compute capability 7.0 have no code",
                std::to_string(target.capability));
  initialiseTarget();
  std::string error;
  const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(kTriple, error);
  if (!backend) return fail(ErrorCode::Unsupported, "this build has no LLVM back end for NVIDIA GPUs: " + error);
  const llvm::TargetOptions options;
  std::unique_ptr<llvm::TargetMachine> machine(backend->createTargetMachine(kTriple, target.ptxArchitecture(), target.hasVectorAtomics() ? "+ptx81" : "+ptx78",
                                                                            options, std::nullopt, std::nullopt,
                                                                            llvm::CodeGenOptLevel::Aggressive));
  if (!machine) return fail(ErrorCode::Unsupported, "LLVM cannot generate code for this GPU", target.ptxArchitecture());
  return machine;
}

}  // namespace fusebox::codegen::gpu
