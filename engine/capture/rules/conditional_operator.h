#pragma once

#include "engine/capture/evaluation/evaluation.h"

namespace fusebox::capture {

/// torch's operator of a condition and two functions, for the engine's own backends: what either gives is computed, and chosen by the condition.
/// Null with no exception and `known` false: it is another operator. A break where computing both is not the same.
PyRef followConditionalOperator(Evaluation& e, PyObject* op, const CallArguments& a, bool* known);

}  // namespace fusebox::capture
