#pragma once

#include <string>

#include "engine/aot/aot_module.h"
#include "engine/inductor/ir/archive.h"

namespace fusebox {

/// Why a traced region cannot be written down; empty: it can.
std::string whyNotStored(const aot::AotModule& module);
/// A tensor with its data, and back. Plain strided ones only; reading throws inductor::ArchiveError.
void writeTensor(inductor::ArchiveWriter& archive, const at::Tensor& tensor);
at::Tensor readTensor(inductor::ArchiveReader& archive);
bool isPlain(const at::Tensor& tensor);

/// All that running it needs. Views are written as sizes and strides over their base.
void writeModule(inductor::ArchiveWriter& archive, const aot::AotModule& module);
/// Throws inductor::ArchiveError.
aot::AotModule readModule(inductor::ArchiveReader& archive);

}  // namespace fusebox
