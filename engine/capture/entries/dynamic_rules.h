#pragma once

#include <string>

#include "engine/capture/entries/entry_cache.h"
#include "engine/capture/guards/symbolic_inputs.h"

namespace fusebox::capture {

/// A setting of one of PyTorch's configuration modules, if that module has been imported; null otherwise.
PyRef torchSetting(const char* module, const char* name);

/// A switch of torch._dynamo.config, or of the environment where nobody has imported that.
bool dynamoSwitch(const char* name, const char* environment, bool standard);

/// What an option of torch.compile, fusebox.config and PyTorch's own settings (torch._dynamo.config where it has been imported,
/// torch.compiler.config) say about symbolic sizes now. A setting that differs from its default in either counts. Runs Python.
DynamicRules dynamicRules(const RegionOptions& options);
/// The same of floats that change: whether they stay constants.
bool specialisesFloats(const RegionOptions& options);

/// The limits and what happens at them, by the same rule.
CaptureConfig recompileRules();

/// Sets stock's ConstraintViolationError if a number was marked as one that must not become a constant, and is one. True: it was set.
bool raiseViolation(const ShapeGuards& shapes);
void raiseViolation(const std::string& text);

/// Symbols, relations and specialisations of an entry as rows.
void recordShapes(record::Recorder* recorder, record::Id compile, record::Id firstGuard, const GuardSet& guards, const std::string& refused);

}  // namespace fusebox::capture
