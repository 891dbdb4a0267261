#pragma once

#include <cstdint>
#include <string>

#include "profiler/session/reader.h"

namespace fusebox::query {

/// A graph that a session holds in the form that can be compiled again alone (engine/graph/serialize).
struct SavedGraph {
  int64_t graph = 0;
  std::string name, stage, direction;  ///< direction: inference, forward or backward
  std::string text;
};

/// Whether savedGraph() would find one for `graph`; quick.
bool hasSavedGraph(const session::Reader& reader, int64_t graph);

/// The saved graph that `graph` is, was compiled from or became: the same compile and direction at another stage. 0:
/// the first that the session has. NotFound says why there is none.
Result<SavedGraph> savedGraph(const session::Reader& reader, int64_t graph = 0);

}  // namespace fusebox::query
