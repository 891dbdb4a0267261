#pragma once

#include <string>

#include "engine/aot/aot_module.h"
#include "engine/inductor/ir/archive.h"

namespace fusebox {

/// Why a traced region cannot be written down; empty: it can.
std::string whyNotStored(const aot::AotModule& module);
/// All that running it needs. Views are written as sizes and strides over their base.
void writeModule(inductor::ArchiveWriter& archive, const aot::AotModule& module);
/// Throws inductor::ArchiveError.
aot::AotModule readModule(inductor::ArchiveReader& archive);

}  // namespace fusebox
