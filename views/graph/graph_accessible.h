#pragma once

namespace fusebox::views {

/// Makes the nodes of every GraphCanvas known to screen readers and tests: name, operator and shape, place, selected state.
/// Call once before the first canvas is shown; further calls do nothing.
void installGraphAccessibility();

}  // namespace fusebox::views
