#pragma once

#include "engine/inductor/ir/body_builder.h"

namespace fusebox::inductor {

/// Sums that one position decides: along an axis, a value is one and the same at every point but where the axis equals something that
/// does not depend on it, as `where(class == target, v, 0)` (a row of a one-hot matrix) in the gradients of losses. Its sum is the
/// value at that position, if the position lies inside, and a multiple of the value elsewhere: no loop is needed.
///
/// Replaces each of `values`, which are to be summed over `axes`, by its sum over those axes for which all of them are of this kind, and
/// removes these axes. Exact where the value elsewhere is 0 (the sum of -0 is 0, as a sum that starts at 0); otherwise n equal summands
/// become a product. What is NaN or infinite elsewhere stays so; what is selected nowhere is not seen.
void sumOneHots(BodyBuilder& b, std::vector<ValueId>& values, std::vector<Axis>& axes);

}  // namespace fusebox::inductor
