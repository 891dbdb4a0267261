#include "engine/inductor/passes.h"

namespace fusebox::inductor {
PassResult decompose(const graph::Graph&) { return {}; }
}  // namespace fusebox::inductor
