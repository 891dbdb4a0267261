#pragma once

#include <vector>

#include "engine/debug/checkpoint.h"
#include "engine/runtime/runtime_plan.h"

namespace fusebox::runtime {

/// A debugger's stop before a kernel or an operator runs. `addresses`: of each buffer's first element, null where
/// unknown.
void stopAtLaunch(const RuntimePlan& plan, const RuntimePlan::StepPlan& step, const std::vector<void*>& addresses);

}  // namespace fusebox::runtime
