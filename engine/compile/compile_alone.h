#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "engine/compile/compile.h"
#include "engine/compile/compiled_region.h"

namespace fusebox {

/// Compiles one traced graph without the program that it came from, by the same stages. `direction`: inference, forward
/// or backward (must outlive the call only). Unlike compileModule() a stage that fails is the caller's error.
Result<std::shared_ptr<CompiledRegion>> compileAlone(const graph::Graph& traced,
                                                     const std::vector<at::Tensor>& constants, const char* direction,
                                                     const CompileOptions& options,
                                                     const record::GraphSnapshot& source = {});

/// The same of an inference graph without constants, which is found in the cache and runs operator by operator where it cannot be compiled, as those of
/// compileModule(). Calls bring the values of `symbols`.
aot::Executor executorAlone(graph::Graph traced, const std::vector<graph::Symbol>& symbols, const CompileOptions& options);

}  // namespace fusebox
