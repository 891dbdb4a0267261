#pragma once

#include "engine/capture/evaluation/evaluation.h"

namespace fusebox::capture {

/// torch's while_loop(condition, body, carried, others) of tensors without gradients, for the engine's own backends: both functions are followed once, and
/// become graphs of one fusebox::while_loop (compile/loop_operator.h). A break where they do more than compute, or carry something else from turn to turn.
/// Null with no exception and `known` false: it is another operator.
PyRef followLoopOperator(Evaluation& e, PyObject* op, const CallArguments& a, bool* known);

}  // namespace fusebox::capture
