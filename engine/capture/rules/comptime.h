#pragma once

#include "engine/capture/rules/call_rules.h"

namespace fusebox::capture {

/// The Python error that is set, of a function that is called while capturing, is the program's at once: the function is not called again when
/// the frame runs. A break where torch._dynamo.config.suppress_errors is on, which logs it.
[[noreturn]] void raiseNow(Evaluation& e);

/// comptime(fn): fn is called once a capture, with a fusebox._comptime.Context.
PyRef ruleComptime(Evaluation& e, PyObject* callable, const CallArguments& a);
PyRef ruleForceStatic(Evaluation& e, PyObject* callable, const CallArguments& a);
PyRef ruleAssertStatic(Evaluation& e, PyObject* callable, const CallArguments& a);

}  // namespace fusebox::capture
