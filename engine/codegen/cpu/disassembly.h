#pragma once

#include <cstdint>
#include <string>

#include "engine/codegen/cpu/jit.h"

namespace llvm {
class StringRef;
}

namespace fusebox::codegen::cpu {

/// The machine code of an object file as assembly: what runs, not what compiling again would give. Branch targets become labels,
/// and operands that the linker filled in are named behind the instruction.
struct Disassembly {
  std::string text;
  int64_t codeBytes = 0;  ///< of all functions in the object
};
Result<Disassembly> disassembleObject(llvm::StringRef object, const TargetFeatures& target);

}  // namespace fusebox::codegen::cpu
