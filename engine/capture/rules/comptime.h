#pragma once

#include "engine/capture/rules/call_rules.h"

namespace fusebox::capture {

/// comptime(fn): fn is called once a capture, with a fusebox._comptime.Context.
PyRef ruleComptime(Evaluation& e, PyObject* callable, const CallArguments& a);
PyRef ruleForceStatic(Evaluation& e, PyObject* callable, const CallArguments& a);
PyRef ruleAssertStatic(Evaluation& e, PyObject* callable, const CallArguments& a);

}  // namespace fusebox::capture
