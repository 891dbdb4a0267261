#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

/// Whether the graphs of a session may be compiled without asking: it was recorded under this machine's name, in a file of this user's. What
/// comes from elsewhere may name any operator.
bool isOwnRecording(const session::Reader& reader);

/// A rule of the person's that was in force when a graph was compiled.
struct RecordedRule {
  bool force = false;
  std::string a, b;  ///< as fusion_decisions names operations
};
/// Those of the compile that `graph` belongs to, read from the reasons of its decisions.
Result<std::vector<RecordedRule>> recordedRules(const session::Reader& reader, int64_t graph);

}  // namespace fusebox::query
