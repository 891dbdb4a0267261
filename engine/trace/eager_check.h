#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <span>
#include <string>

#include "engine/trace/operator_facts.h"

namespace fusebox::trace {

/// Which operators, by name, the compiler has code of its own for: set once, when it is loaded. The others are not asked.
void setGenerated(bool (*isGenerated)(const std::string& op));
bool hasGeneratedCode(const std::string& op);

/// Raises what eager's kernel raises for types that it does not have ("gcd_cpu" not implemented for 'Float'), and for numbers that it does not
/// take (1e200 beside float32): the kernel itself is asked, once for every combination of types and numbers, on zeros. Shape functions know
/// nothing of it, and generated code would compute something.
/// `args` are traced or real tensors and numbers, as the program gave them; `results` have the sizes of what the call gives.
void checkTypesAndNumbers(const c10::OperatorHandle& op, const OperatorFacts& facts, std::span<const c10::IValue> args,
                          c10::ArrayRef<c10::IValue> results);

/// Raises what eager's kernel raises where an operator writes to memory whose elements overlap, or that it reads through another argument, or
/// where its result does not fit the type of what it writes to.
/// What eager carries out on an expanded tensor is a break.
/// `args` are functional tensors, as above functionalisation.
void checkWrites(const c10::OperatorHandle& op, const OperatorFacts& facts, std::span<const c10::IValue> args);

/// Raises what eager raises for a call that the tracer refused, if it raises: functions that compute shapes, and compositions of operators over symbols, have
/// texts of their own. The operator is carried out on zeros of the CPU's, unless its tensors are large. `args` are functional or real tensors.
void raiseAsEager(const c10::OperatorHandle& op, std::span<const c10::IValue> args);

/// A break where an operator writes to two tensors that may share memory: eager's kernel goes over both element by element, or one after
/// the other, where a graph computes both from what was there before.
void refuseWritesThatMeet(const c10::OperatorHandle& op, const OperatorFacts& facts, std::span<const c10::IValue> args);

}  // namespace fusebox::trace
