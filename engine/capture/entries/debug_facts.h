#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/capture/evaluation/evaluation.h"

/// What a stopped capture tells: bounded, made without running Python code of the program.
namespace fusebox::capture {

/// A value in one short line.
std::string shortValue(PyObject* object);
/// "LOAD_FAST x": an instruction with what its argument names.
std::string instructionText(const Frame& frame, const Instruction& instruction);

nlohmann::json localsOf(Evaluation& e, const Frame& frame);
nlohmann::json stackOf(Evaluation& e, const Frame& frame);
/// The frames under evaluation, innermost first.
nlohmann::json framesOf(const Evaluation& e);
/// Guards so far: {count, guards: [newest last]}.
nlohmann::json guardsOf(const GuardSet& guards);
/// Instructions round the current one.
nlohmann::json codeOf(const Frame& frame);
/// Locals and stack of a frame that has not begun to be traced.
nlohmann::json localsOf(const FrameState& state);
nlohmann::json stackOf(const FrameState& state);

/// What a tensor holds that a local variable leads to: "x", "self.layers.0.weight"; attributes are read where they are kept, no code runs.
Result<nlohmann::json> tensorOf(const FrameState& state, const std::string& path);

/// What an object that a local variable leads to is made of: parameters, buffers and modules of a module, attributes, elements; each with the
/// name by which tensorOf() and this reach it.
Result<nlohmann::json> contentOf(const FrameState& state, const std::string& path);

}  // namespace fusebox::capture
