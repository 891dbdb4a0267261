#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/codegen/cpu/jit.h"

namespace fusebox::codegen::cpu {

/// The machine code of an object file as assembly: what runs, not what compiling again would give. Branch targets become labels,
/// and operands that the linker filled in are named behind the instruction. `.loc 1 N 0` stands before what carries out line N of the
/// loop IR's text, where the object says that.
struct Disassembly {
  std::string text;
  int64_t codeBytes = 0;  ///< of all functions in the object
};
Result<Disassembly> disassembleObject(std::string_view object, const TargetFeatures& target);
/// Whether two objects consist of the same machine code, whatever they say about it. False where one cannot be read.
bool hasSameCode(std::string_view a, std::string_view b);

}  // namespace fusebox::codegen::cpu
