#pragma once

namespace fusebox::python {

/// From now on captures are kept in the cache, and looked for there (capture/entries/kept_captures.h).
void keepCaptures();

}  // namespace fusebox::python
