#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/aot/aot_function.h"
#include "engine/record/records.h"

namespace fusebox {

/// Makes one part of a forward graph executable; the values of `symbols` are given to it in that order. `part` counts from 1.
using CompilePart = std::function<aot::Executor(const graph::Graph& graph, const std::vector<graph::Symbol>& symbols, size_t part, size_t parts)>;

/// A forward graph that learns sizes from data while it runs: computes what it can, asks the operators whose results nobody can predict, checks what was
/// assumed of the answers, and goes on. `constants` of the parts are the module's. `recorded`: its compilation in the active recording.
aot::ForwardExecutor stagedExecutor(std::shared_ptr<const aot::AotModule> module, const CompilePart& compile, record::Id recorded = 0);

}  // namespace fusebox
