#pragma once

namespace fusebox::trace {

/// Whether a transform of functorch (vmap) is entered on this thread.
bool insideTransform();
/// The name in torch.func of the innermost one; null: none of those that a person enters.
const char* currentTransform();
/// Leaves every transform that is entered on this thread.
void leaveTransforms();

}  // namespace fusebox::trace
