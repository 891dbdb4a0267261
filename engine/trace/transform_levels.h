#pragma once

namespace fusebox::trace {

/// Whether a transform of functorch (vmap) is entered on this thread.
bool insideTransform();
/// Leaves every transform that is entered on this thread.
void leaveTransforms();

}  // namespace fusebox::trace
