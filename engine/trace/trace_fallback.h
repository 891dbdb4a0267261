#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>

namespace fusebox::trace {

/// Boxed fallback of the tracing key: records the operator instead of running it.
void traceFallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

/// Traces break at this operator from now on, for the reason given. Any thread.
void refuseFromNowOn(const std::string& op, const std::string& why);

/// What is asked first where no trace is active: true if it put results in place of the arguments.
void answerOutsideTraces(bool (*answer)(const c10::OperatorHandle& op, torch::jit::Stack* stack));

/// Boxed fallback above autograd: swaps real tensors for stand-ins and rewrites what must be seen before autograd decomposes it.
void frontHook(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

/// Boxed fallback above the levels of transforms, whose rules take composite operators apart by sizes that are numbers: those that
/// decomposeBeforeLevels knows are taken apart here, and a level sees the parts.
void levelsHook(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

/// Registers all with the dispatcher, once in the process.
void registerTraceKernels();

}  // namespace fusebox::trace
